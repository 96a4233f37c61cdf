//! A worker's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Until the link stands, a worker waits on nothing but its control socket. Either the kernel kills it when the host
//! ends, or (while there is a folder to remove) the control socket hangs up and it ends by itself. The host bounds
//! the time: it kills a worker that is not ready by the start deadline. So no wait in here has a deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::process;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentView, ResultArena};
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::executable::{BuildIdentity, build_identity};
use brigade_sys::sealed::SealedView;
use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_sys::{descriptors, lifeline, parent_death, signals};
use brigade_wire::codec;
use brigade_wire::handshake::{
    Answer, FromWorkerControl, Hello, LinkKind, ServerProgram, ToWorkerControl,
};
use brigade_wire::link::ipc::{Channels, Server};
use brigade_wire::link::{message_limit, ring};
use brigade_wire::ring::Knocker;
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::context;
use crate::error::StartError;
use crate::event_loop::Arenas;
use crate::marker::Marker;
use crate::setup::Setup;
use crate::start::Program;

/// What a worker has beside its link.
pub(crate) struct Connected {
    pub(crate) slots: SlotTable,
    pub(crate) arenas: Option<Arenas>,
    pub(crate) message_limit: usize,
    /// Held open for life: its end tells the host that this process is gone or has lost its descriptors.
    pub(crate) control: Control,
    pub(crate) host: BuildIdentity,
    pub(crate) setup: Setup,
}

/// The worker's end of the link, of either flavour.
pub(crate) enum Link {
    Ring(Box<ring::WorkerEnd>),
    Ipc(Channels),
}

/// Does the handshake.
pub(crate) fn connect(program: &Program) -> Result<(Link, Connected), StartError> {
    let marker = Marker::read()?;
    signals::reset();
    parent_death::bind(marker.host)?;
    descriptors::shed_inherited();
    let control =
        descriptors::take_stdin().map_err(failed_to("take the control socket from stdin"))?;
    let control = Control(ControlSocket::from_fd(control));
    let newborn = Newborn { marker, control: &control, program };
    match newborn.introduce() {
        Ok(Introduced { link, slots, arenas, message_limit, host, setup }) => {
            Ok((link, Connected { slots, arenas, message_limit, control, host, setup }))
        }
        Err(error) => {
            newborn.refuse(&error);
            Err(error)
        }
    }
}

/// What comes of the handshake.
struct Introduced {
    link: Link,
    slots: SlotTable,
    arenas: Option<Arenas>,
    message_limit: usize,
    host: BuildIdentity,
    setup: Setup,
}

/// The control socket, as a worker uses it.
#[derive(Debug)]
pub(crate) struct Control(ControlSocket);

/// A worker that has only its control socket.
struct Newborn<'a> {
    marker: Marker,
    control: &'a Control,
    program: &'a Program,
}

impl Newborn<'_> {
    fn introduce(&self) -> Result<Introduced, StartError> {
        Marker::take_away();
        check_version(self.marker.version)?;
        let (hello, descriptors) = self.hello()?;
        check_version(hello.version)?;
        // The host bounds what it sends; a limit beyond the address space is none.
        let limit = usize::try_from(hello.message_limit).unwrap_or(usize::MAX);
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(StartError::Unexpected("too few descriptors"));
        let words = match hello.link {
            LinkKind::Ring => ring::words(hello.slots),
            LinkKind::Ipc => SlotTable::words(hello.slots),
        };
        let table = next()
            .map_err(|_| StartError::Unexpected("a greeting without the table of task states"))?;
        let segment = Arc::new(Segment::open(table, words).map_err(StartError::Slots)?);
        let slots = SlotTable::new(Arc::clone(&segment), hello.slots);
        let lifeline = if hello.lifeline { Some(next()?) } else { None };
        descriptors::name_process(&format!("brigade-{}", hello.worker.slot));
        context::become_worker(hello.worker, hello.depth, hello.max_rss, hello.pinned);
        let mut arenas = None;
        let setup;
        let link = match hello.link {
            LinkKind::Ring => {
                let page = next()?;
                let (thread, caller) =
                    (RemoteWaker::from_fd(next()?), RemoteWaker::from_fd(next()?));
                let knocker = Knocker::new(page, thread, caller).map_err(StartError::Slots)?;
                arenas = open_arenas(hello.arenas, &mut next)?;
                setup = open_setup(&hello, next)?;
                let end =
                    ring::WorkerEnd::new(&segment, hello.slots, knocker, message_limit(limit));
                self.answer(&hello, String::new(), arenas.is_some())?;
                Link::Ring(Box::new(end))
            }
            LinkKind::Ipc => {
                setup = open_setup(&hello, next)?;
                let channels = self.open_link(&hello)?;
                self.control.tell(&FromWorkerControl::Ready)?;
                Link::Ipc(channels)
            }
        };
        hold_on(lifeline)?;
        let host = BuildIdentity::from_bytes(hello.identity);
        Ok(Introduced { link, slots, arenas, message_limit: limit, host, setup })
    }

    fn hello(&self) -> Result<(Hello, Vec<OwnedFd>), StartError> {
        match self.control.receive()? {
            (ToWorkerControl::Hello(hello), descriptors) => Ok((hello, descriptors)),
            (ToWorkerControl::Go, _) => Err(StartError::Unexpected("`go` before the greeting")),
        }
    }

    /// Makes the socket to which the host connects, tells its name, and accepts the host.
    ///
    /// From the first to the last line the kernel does not kill this process when the host ends, because then
    /// nobody would remove the folder.
    fn open_link(&self, hello: &Hello) -> Result<Channels, StartError> {
        parent_death::unbind();
        // The server removes its folder when it is dropped.
        let (server, name) = Server::create(&hello.folder).map_err(StartError::Server)?;
        self.answer(hello, name, false)?;
        match self.control.receive()? {
            (ToWorkerControl::Go, _) => {}
            (ToWorkerControl::Hello(_), _) => {
                return Err(StartError::Unexpected("a second greeting"));
            }
        }
        // The host has connected before it said go, so this does not wait.
        let channels = server.accept().map_err(StartError::Accept)?;
        if channels.token != hello.token {
            return Err(StartError::Token);
        }
        parent_death::bind(self.marker.host)?;
        Ok(channels)
    }

    /// Tells the host not to try again, where that makes sense.
    fn refuse(&self, error: &StartError) {
        if error.is_permanent() {
            // If it fails, the exit code and the line on stderr have to do.
            let _ = self.control.tell(&FromWorkerControl::Refused { reason: codec::chain(error) });
        }
    }

    /// Says who we are; `server` is where the host finds our end of an ipc link.
    fn answer(&self, hello: &Hello, server: String, arenas: bool) -> Result<(), StartError> {
        let Program { server: is_server, version, .. } = self.program;
        self.control.tell(&FromWorkerControl::Answer(Answer {
            version: PROTOCOL_VERSION,
            token: hello.token,
            pid: process::id(),
            identity: *build_identity().as_bytes(),
            server,
            arenas,
            program: is_server.then(|| ServerProgram { version: version.clone() }),
        }))
    }
}

impl Control {
    /// Sends a message to the host.
    pub(crate) fn tell(&self, message: &FromWorkerControl) -> Result<(), StartError> {
        let packet = message.encode().map_err(StartError::Message)?;
        self.0.send(&packet, &[]).map_err(|source| match source.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => StartError::ControlClosed,
            _ => failed_to("write to the control socket")(source),
        })
    }

    fn receive(&self) -> Result<(ToWorkerControl, Vec<OwnedFd>), StartError> {
        match self.0.receive(None, None).map_err(failed_to("read from the control socket"))? {
            Received::Packet { bytes, descriptors } => {
                let message = ToWorkerControl::decode(&bytes).map_err(StartError::Message)?;
                Ok((message, descriptors))
            }
            // Without a deadline and a process to watch there is nothing else that ends the wait.
            Received::Closed | Received::TimedOut | Received::PeerDied => {
                Err(StartError::ControlClosed)
            }
        }
    }
}

/// The arenas of the greeting, if it has any and this process has the address space for them.
fn open_arenas(
    (arguments, results): (u64, u64),
    mut next: impl FnMut() -> Result<OwnedFd, StartError>,
) -> Result<Option<Arenas>, StartError> {
    if arguments == 0 || results == 0 {
        return Ok(None);
    }
    // Sizes beyond the address space cannot be mapped, which is the error then.
    let bytes = |size| usize::try_from(size).unwrap_or(usize::MAX);
    let (of_arguments, of_results) = (next()?, next()?);
    let opened = ArgumentView::open(of_arguments, bytes(arguments)).and_then(|arguments| {
        let results = ResultArena::open(of_results, bytes(results))?;
        Ok(Arenas { arguments, results })
    });
    match opened {
        Ok(arenas) => Ok(Some(arenas)),
        // A limit that was set after the host had mapped them, or that this process has alone.
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Ok(None),
        Err(error) => Err(StartError::Slots(error)),
    }
}

/// What is to run before the first task and before the end.
fn open_setup(
    hello: &Hello,
    next: impl FnOnce() -> Result<OwnedFd, StartError>,
) -> Result<Setup, StartError> {
    let initializer = match hello.initializer {
        Some(offset) => Some((offset, SealedView::open(next()?).map_err(StartError::Argument)?)),
        None => None,
    };
    Ok(Setup { initializer, finalizer: hello.finalizer })
}

/// From now on the kernel kills this process when the host ends, even if a task or the initializer changes its user.
///
/// Not earlier: a worker with a link of ipc removes a folder first.
fn hold_on(lifeline: Option<OwnedFd>) -> Result<(), StartError> {
    match lifeline.map(lifeline::arm) {
        Some(Ok(false)) => Err(StartError::ControlClosed),
        // A system without such signals has the parent-death signal still.
        Some(Ok(true) | Err(_)) | None => Ok(()),
    }
}

fn check_version(version: u32) -> Result<(), StartError> {
    if version == PROTOCOL_VERSION { Ok(()) } else { Err(StartError::Version(version)) }
}

fn failed_to(operation: &'static str) -> impl Fn(io::Error) -> StartError {
    move |source| StartError::Control { operation, source }
}
