//! The worker's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Until the link is established, a worker waits on nothing but its control socket. If the host
//! ends, either the kernel kills the worker or (while there is a folder to remove) the control
//! socket hangs up and the worker ends by itself. The host bounds the time: it kills a worker that
//! is not ready by the start deadline. So no wait in this module needs a deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::confine::Confinement;
use brigade_sys::control::ControlSocket;
use brigade_sys::executable::{BuildIdentity, build_identity};
use brigade_sys::sealed::SealedView;
use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_sys::{crash, descriptors, lifeline, parent_death, signals};
use brigade_wire::handshake::{
    Answer, FromWorkerControl, Hello, LinkKind, ServerProgram, ToWorkerControl,
};
use brigade_wire::link::connect::{WorkerConnector, WorkerEnd};
use brigade_wire::link::{message_limit, ring};
use brigade_wire::ring::RemoteDoorbell;
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::arenas::Arenas;
use crate::context;
use crate::control::{Control, failed_to};
use crate::error::StartError;
use crate::fork_server::{self, Greeting};
use crate::forward;
use crate::marker::Marker;
use crate::memory_limit::MemoryLimit;
use crate::program::Program;
use crate::sandbox::Sandbox;
use crate::setup::Setup;

/// Everything that a worker receives in the handshake, apart from its link.
pub(crate) struct Connected {
    pub(crate) slots: SlotTable,
    pub(crate) arenas: Option<Arenas>,
    pub(crate) memory_limit: MemoryLimit,
    pub(crate) message_limit: usize,
    /// Kept open for the life of the process: its end tells the host that this process is gone or
    /// has lost its descriptors.
    pub(crate) control: Arc<Control>,
    pub(crate) host: BuildIdentity,
    pub(crate) setup: Setup,
    pub(crate) sandbox: Option<Sandbox>,
    /// Time that a copy may take to exit, if each task runs in a copy of this process.
    pub(crate) copies: Option<Duration>,
}

/// The worker's end of the link.
pub(crate) enum Link {
    Ring(Box<ring::WorkerEnd>),
    /// Opened in the handshake.
    Connected(WorkerEnd),
}

/// Performs the handshake.
pub(crate) fn connect(program: &Program) -> Result<(Link, Connected), StartError> {
    let marker = Marker::read()?;
    signals::reset();
    parent_death::bind(marker.host)?;
    descriptors::shed_inherited();
    let control =
        descriptors::take_stdin().map_err(failed_to("take the control socket from stdin"))?;
    let control = Control::new(ControlSocket::from_fd(control));
    let (control, greeting) = fork_server::greeted(control, &marker)?;
    let control = Arc::new(control);
    let is_answered = greeting.is_answered;
    let handshake = Handshake { marker, control: &control, program };
    handshake.run(greeting).inspect_err(|error| {
        if is_answered {
            control.refuse(error);
        }
    })
}

/// A handshake in progress, for which the worker has only its control socket.
struct Handshake<'a> {
    marker: Marker,
    control: &'a Arc<Control>,
    program: &'a Program,
}

impl Handshake<'_> {
    fn run(&self, greeting: Greeting) -> Result<(Link, Connected), StartError> {
        let Greeting { hello, descriptors, is_answered, is_forked } = greeting;
        check_version(hello.version)?;
        // The host bounds what it sends. A limit beyond the address space is no limit.
        let limit = usize::try_from(hello.message_limit).unwrap_or(usize::MAX);
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or(StartError::Unexpected("too few descriptors"));
        let (connector, words) = match hello.link {
            LinkKind::Ring => (None, ring::words(hello.slots)),
            kind @ LinkKind::Ipc => {
                (Some(self.program.connector(kind)?), SlotTable::words(hello.slots))
            }
        };
        let table = next()
            .map_err(|_| StartError::Unexpected("a greeting without the table of task states"))?;
        let segment = Segment::open(table, words + crash::WORDS).map_err(StartError::Slots)?;
        let segment = Arc::new(segment);
        self.control.report_crashes(&segment, words);
        let slots = SlotTable::new(Arc::clone(&segment), hello.slots);
        let lifeline = if hello.lifeline { Some(next()?) } else { None };
        if let Some(level) = hello.events {
            forward::install(level, next()?);
        }
        descriptors::name_process(&format!("brigade-{}", hello.worker.slot));
        context::become_worker(hello.worker, hello.depth, hello.pinned);
        let memory_limit = MemoryLimit::open(hello.max_rss, hello.max_growth, is_forked)
            .map_err(StartError::MemoryLimit)?;
        let mut arenas = None;
        let (setup, sandbox);
        let link = match connector {
            None => {
                let page = next()?;
                let (thread, caller) =
                    (RemoteWaker::from_fd(next()?), RemoteWaker::from_fd(next()?));
                let doorbell =
                    RemoteDoorbell::new(page, thread, caller).map_err(StartError::Slots)?;
                arenas = Arenas::open(hello.arenas, hello.terms, self.control, &mut next)?;
                (setup, sandbox) = (open_setup(&hello, &mut next)?, open_sandbox(&hello, next)?);
                let end =
                    ring::WorkerEnd::new(&segment, hello.slots, doorbell, message_limit(limit));
                if is_answered {
                    self.answer(&hello, String::new(), arenas.is_some())?;
                } else if arenas.is_none() && hello.arenas.1 != 0 {
                    return Err(StartError::Slots(io::ErrorKind::OutOfMemory.into()));
                }
                Link::Ring(Box::new(end))
            }
            Some(connector) => {
                (setup, sandbox) = (open_setup(&hello, &mut next)?, open_sandbox(&hello, next)?);
                let end = self.open_link(connector, &hello, message_limit(limit))?;
                self.control.send(&FromWorkerControl::Ready)?;
                Link::Connected(end)
            }
        };
        arm_lifeline(lifeline, hello.copies.is_some())?;
        let host = BuildIdentity::from_bytes(hello.identity);
        let control = Arc::clone(self.control);
        let (message_limit, copies) = (limit, hello.copies);
        let connected = Connected {
            slots,
            arenas,
            memory_limit,
            message_limit,
            control,
            host,
            setup,
            sandbox,
            copies,
        };
        Ok((link, connected))
    }

    /// Creates the socket to which the host connects, sends its name to the host, and accepts the
    /// connection.
    ///
    /// In this function the kernel does not kill this process when the host ends, because then the
    /// folder would never be removed.
    fn open_link(
        &self,
        connector: &dyn WorkerConnector,
        hello: &Hello,
        limit: usize,
    ) -> Result<WorkerEnd, StartError> {
        parent_death::unbind();
        // The server removes its folder when it is dropped.
        let server = connector.listen(&hello.folder).map_err(StartError::Server)?;
        self.answer(hello, server.name().to_owned(), false)?;
        match self.control.receive()? {
            (ToWorkerControl::Go, _) => {}
            _ => return Err(StartError::Unexpected("another packet than `go`")),
        }
        // The host connects before it sends `Go`, so this does not block.
        let end = server.accept(&hello.token, limit).map_err(StartError::Accept)?;
        parent_death::bind(self.marker.host)?;
        Ok(end)
    }

    /// Sends the identity of this worker. `server` is the name of the server
    /// of a link that is opened in the handshake.
    fn answer(&self, hello: &Hello, server: String, arenas: bool) -> Result<(), StartError> {
        let Program { server: is_server, version, .. } = self.program;
        self.control.send(&FromWorkerControl::Answer(Answer {
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

/// Reads the initializer and the finalizer from the greeting.
fn open_setup(
    hello: &Hello,
    mut next: impl FnMut() -> Result<OwnedFd, StartError>,
) -> Result<Setup, StartError> {
    let mut open = |offset| -> Result<_, StartError> {
        Ok((offset, SealedView::open(next()?).map_err(StartError::Argument)?))
    };
    let preload = hello.preload.map(&mut open).transpose()?;
    let initializer = hello.initializer.map(open).transpose()?;
    Ok(Setup { preload, initializer, finalizer: hello.finalizer })
}

/// Reads the sandbox from the greeting.
fn open_sandbox(
    hello: &Hello,
    next: impl FnOnce() -> Result<OwnedFd, StartError>,
) -> Result<Option<Sandbox>, StartError> {
    let Some(confinement) = &hello.sandbox else { return Ok(None) };
    let files = if confinement.files { Some(next()?) } else { None };
    Ok(Some(Sandbox::new(Confinement::clone(confinement), files)))
}

/// Makes the kernel kill this process when the host ends, even if a task or the initializer changes
/// its user.
///
/// Not earlier, because a worker whose link is opened in the handshake has to remove a folder
/// first.
fn arm_lifeline(lifeline: Option<OwnedFd>, copies: bool) -> Result<(), StartError> {
    let arm = if copies { lifeline::arm_group } else { lifeline::arm };
    match lifeline.map(arm) {
        Some(Ok(false)) => Err(StartError::ControlClosed),
        // A system without such signals still has the parent-death signal.
        Some(Ok(true) | Err(_)) | None => Ok(()),
    }
}

pub(crate) fn check_version(version: u32) -> Result<(), StartError> {
    if version == PROTOCOL_VERSION { Ok(()) } else { Err(StartError::Version(version)) }
}
