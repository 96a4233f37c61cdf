//! The worker's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Until the link is established, a worker waits on nothing but its control socket. If the host
//! ends, either the kernel kills the worker or (while there is a folder to remove) the control
//! socket hangs up and the worker ends by itself. The host bounds the time: it kills a worker that
//! is not ready by the start deadline. So no wait in this module needs a deadline.

use std::os::fd::OwnedFd;
use std::process;
use std::sync::Arc;

use brigade_sys::control::ControlSocket;
use brigade_sys::sealed::SealedView;
use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_sys::{crash, descriptors, lifeline, parent_death, signals};
use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, LinkKind, ToWorkerControl};
use brigade_wire::link::connect::{WorkerConnector, WorkerEnd};
use brigade_wire::link::{message_limit, ring};
use brigade_wire::ring::RemoteDoorbell;
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::arenas::Arenas;
use crate::context;
use crate::control::{Control, Host, failed_to};
use crate::error::{CannotStart, TOO_FEW};
use crate::fork_server;
use crate::forward;
use crate::marker::Marker;
use crate::memory_limit::MemoryLimit;
use crate::program::Program;
use crate::sandbox::WorkerSandbox;
use crate::setup::WorkerSetup;

/// Everything that a worker has before its initializer, apart from its link.
pub(crate) struct NewWorker {
    pub(crate) hello: Hello,
    pub(crate) host: Host,
    pub(crate) slots: SlotTable,
    pub(crate) arenas: Option<Arenas>,
    pub(crate) memory_limit: MemoryLimit,
    pub(crate) setup: WorkerSetup,
    pub(crate) sandbox: Option<WorkerSandbox>,
}

/// The worker's end of the link.
pub(crate) enum WorkerLink {
    Ring(Box<ring::WorkerEnd>),
    /// Opened in the handshake.
    Connected(WorkerEnd),
}

/// Performs the handshake.
pub(crate) fn connect(program: &Program) -> Result<(WorkerLink, NewWorker), CannotStart> {
    let marker = Marker::read()?;
    signals::reset();
    parent_death::bind(marker.host)?;
    descriptors::shed_inherited();
    let control =
        descriptors::take_stdin().map_err(failed_to("take the control socket from stdin"))?;
    let mut control = Control::new(ControlSocket::from_fd(control));
    Marker::remove();
    if marker.version != PROTOCOL_VERSION {
        let error = CannotStart::Version(marker.version);
        control.refuse(&error);
        return Err(error);
    }
    let (mut first, mut descriptors) = control.receive()?;
    let is_forked = matches!(first, ToWorkerControl::Serve(_));
    if let ToWorkerControl::Serve(serve) = first {
        control = fork_server::serve(control, &marker, program, &serve, descriptors)?;
        (first, descriptors) = control.receive()?;
    }
    let ToWorkerControl::Hello(hello) = first else {
        return Err(CannotStart::Unexpected("another packet before the greeting"));
    };
    let (control, asks) = (Arc::new(control), hello.asks);
    let handshake =
        OpenHandshake { marker, control: Arc::clone(&control), program, is_forked, hello };
    handshake.run(descriptors).inspect_err(|error| {
        if asks {
            control.refuse(error);
        }
    })
}

/// A handshake in progress, for which the worker has only its control socket.
struct OpenHandshake<'a> {
    marker: Marker,
    control: Arc<Control>,
    program: &'a Program,
    is_forked: bool,
    hello: Hello,
}

impl OpenHandshake<'_> {
    fn run(self, descriptors: Vec<OwnedFd>) -> Result<(WorkerLink, NewWorker), CannotStart> {
        let hello = &self.hello;
        let given = hello.take(descriptors).ok_or(TOO_FEW)?;
        let connector = match hello.link {
            LinkKind::Ring => None,
            kind @ LinkKind::Ipc => Some(self.program.connector(kind)?),
        };
        let segment = given
            .segment
            .ok_or(CannotStart::Unexpected("a greeting without the table of task states"))?;
        let segment = Segment::open(segment, hello.words() + crash::WORDS);
        let segment = Arc::new(segment.map_err(CannotStart::Slots)?);
        self.control.report_crashes(&segment, hello.words());
        if let Some((level, pipe)) = hello.events.zip(given.events) {
            forward::install(level, pipe);
        }
        descriptors::name_process(&format!("brigade-{}", hello.worker.slot));
        context::become_worker(hello.worker, hello.depth, hello.pinned);
        let memory_limit = MemoryLimit::open(hello.max_rss, hello.max_growth, self.is_forked)
            .map_err(CannotStart::MemoryLimit)?;
        let arenas = Arenas::open(hello, &self.control, given.arguments, given.results)?;
        let open = |argument: Option<OwnedFd>| argument.map(SealedView::open).transpose();
        let arguments = open(given.preload).and_then(|it| Ok([it, open(given.initializer)?]));
        let setup = WorkerSetup::new(hello, arguments.map_err(CannotStart::Argument)?);
        // The host bounds what it sends. A limit beyond the address space is no limit.
        let limit = message_limit(usize::try_from(hello.message_limit).unwrap_or(usize::MAX));
        let link = if let Some(connector) = connector {
            WorkerLink::Connected(self.open_link(connector, limit)?)
        } else {
            let (Some(page), Some(thread), Some(caller)) = (given.page, given.thread, given.caller)
            else {
                return Err(TOO_FEW);
            };
            let [thread, caller] = [thread, caller].map(RemoteWaker::from_fd);
            let doorbell = RemoteDoorbell::new(page, thread, caller).map_err(CannotStart::Slots)?;
            self.answer(String::new(), arenas.is_some())?;
            WorkerLink::Ring(Box::new(ring::WorkerEnd::new(&segment, hello.slots, doorbell, limit)))
        };
        arm_lifeline(given.lifeline, hello.copies.is_some())?;
        let slots = SlotTable::new(segment, hello.slots);
        let (mut hello, host) = (self.hello, Host::Process(self.control));
        let sandbox = hello.sandbox.take().map(|it| WorkerSandbox::new(*it, given.files));
        Ok((link, NewWorker { hello, host, slots, arenas, memory_limit, setup, sandbox }))
    }

    /// Creates the socket to which the host connects, sends its name to the host, and accepts the
    /// connection.
    ///
    /// In this function the kernel does not kill this process when the host ends, because then the
    /// folder would never be removed.
    fn open_link(
        &self,
        connector: &dyn WorkerConnector,
        limit: usize,
    ) -> Result<WorkerEnd, CannotStart> {
        parent_death::unbind();
        // The server removes its folder when it is dropped.
        let server = connector.listen(&self.hello.folder).map_err(CannotStart::Server)?;
        self.answer(server.name().to_owned(), false)?;
        match self.control.receive()? {
            (ToWorkerControl::Go, _) => {}
            _ => return Err(CannotStart::Unexpected("another packet than `go`")),
        }
        // The host connects before it sends `Go`, so this does not block.
        let end = server.accept(&self.hello.token, limit).map_err(CannotStart::Accept)?;
        parent_death::bind(self.marker.host)?;
        self.control.send(&FromWorkerControl::Ready)?;
        Ok(end)
    }

    /// Sends the identity of this worker, if the host asks for it. `server` is the name of the
    /// server of a link that is opened in the handshake.
    fn answer(&self, server: String, arenas: bool) -> Result<(), CannotStart> {
        if !self.hello.asks {
            return Ok(());
        }
        self.control.send(&FromWorkerControl::Answer(Answer {
            version: PROTOCOL_VERSION,
            token: self.hello.token,
            pid: process::id(),
            program: self.program.describe(),
            server,
            arenas,
        }))
    }
}

/// Makes the kernel kill this process when the host ends, even if a task or the initializer changes
/// its user.
///
/// Not earlier, because a worker whose link is opened in the handshake has to remove a folder
/// first.
fn arm_lifeline(lifeline: Option<OwnedFd>, copies: bool) -> Result<(), CannotStart> {
    let arm = if copies { lifeline::arm_group } else { lifeline::arm };
    match lifeline.map(arm) {
        Some(Ok(false)) => Err(CannotStart::ControlClosed),
        // A system without such signals still has the parent-death signal.
        Some(Ok(true) | Err(_)) | None => Ok(()),
    }
}
