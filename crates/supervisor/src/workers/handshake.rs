//! The host's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Every wait covers the control socket and the worker's pidfd, until the deadline of the phase
//! (the handshake, then the initializer). A worker that is silent, dead, or not a worker at all is
//! recognized and named. No path leaves anything behind: the process is killed and reaped, and the
//! folder of the link's server is removed if the worker could not do it.

mod error;

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use brigade_sandbox::Limits;
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::Received;
use brigade_sys::executable::{BuildIdentity, build_identity};
use brigade_sys::memory::address_space_left;
use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, ToWorkerControl, WorkerProgram};
use brigade_wire::link::connect::{HostConnector, HostEnd};
use brigade_wire::link::message_limit;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::error::StartError;
use crate::note;
use crate::workers::connection::Connected;
use crate::workers::greeting::{Kept, hello};
use crate::workers::settings::Settings;
use crate::workers::supervised::Supervised;
use crate::workers::worker_process::WorkerProcess;
use error::{HandshakeError, Phase, explain, garbage, unexpected};

/// Returns `true` if a worker has to say something before it takes tasks. What a forked one would
/// say of its program is known from its server.
pub(crate) fn asks(settings: &Settings, process: &WorkerProcess) -> bool {
    process.program().is_none()
        || settings.connector.is_some()
        || settings.setup.is_awaited(true)
        || settings.sandbox.is_some()
        // They hold from the moment when the worker is ready.
        || settings.limits != Limits::default()
        // It may lack the address space for the arenas.
        || address_space_left().is_some()
}

/// Does the handshake, which waits for nothing unless it `asks`. On failure the process is killed
/// and reaped.
pub(crate) fn run(
    owner: &impl Supervised,
    process: &WorkerProcess,
    asks: bool,
) -> Result<Connected, StartError> {
    let supervisor = owner.supervisor();
    let settings = owner.settings();
    let phase = Phase::Handshake;
    let deadline = clock::now().saturating_add(phase.limit(settings).0);
    let mut hello = hello(settings, process.worker(), process.is_forked());
    hello.asks = asks;
    // Rings need no folder, so they work even if the temporary folder is unusable.
    if let Some(connector) = settings.connector {
        let folder = connector.folder(process.pid().unwrap_or(0));
        hello.folder = folder.map_err(|reason| StartError { is_permanent: true, reason })?;
    }
    let mut handshake = Handshake { owner, settings, process, phase, deadline, hello };
    let connected = handshake.run().map_err(|error| {
        let is_refused = matches!(error, HandshakeError::Transient(_));
        if process.is_forked() && handshake.phase == Phase::Handshake && !is_refused {
            supervisor.is_server_suspect.store(true, Ordering::Release);
        }
        let failure = explain(supervisor, process, handshake.phase, error);
        // The worker removes its folder itself, unless it died in between.
        if settings.connector.is_some() {
            supervisor.folders.remove(handshake.hello.folder);
        }
        failure
    })?;
    process.set_connected();
    Ok(connected)
}

struct Handshake<'a, S> {
    owner: &'a S,
    settings: &'a Settings,
    process: &'a WorkerProcess,
    phase: Phase,
    /// Deadline of the current phase.
    deadline: Monotonic,
    hello: Hello,
}

impl<S: Supervised> Handshake<'_, S> {
    fn run(&mut self) -> Result<Connected, HandshakeError> {
        let mut result = self.connect()?;
        // Not earlier: a worker that is killed before its link is open leaves its folder behind.
        if let Err(error) = self.process.bind_to_host() {
            let worker = self.process.worker();
            note!(
                self.owner.supervisor().output, WARN, %worker, %error,
                "processes that tasks start will outlive a killed host"
            );
        }
        if self.settings.sandbox.is_some() {
            // A worker that opens the memory of another one reads what is not meant for it.
            result.connection.sent_arenas.disable();
        }
        let has_setup = self.settings.setup.is_awaited(self.process.is_forked());
        if has_setup {
            self.phase = Phase::Initializer;
            let now = clock::now();
            result.initializing = Some(now);
            self.deadline = now.saturating_add(self.phase.limit(self.settings).0);
        }
        if has_setup || self.settings.sandbox.is_some() {
            match self.receive()? {
                FromWorkerControl::Initialized { takes_descriptors: true } => {}
                FromWorkerControl::Initialized { takes_descriptors: false } => {
                    result.connection.sent_arenas.disable();
                }
                FromWorkerControl::InitializerFailed { reason } => {
                    // Whatever the initializer needs may be available the next time.
                    return Err(HandshakeError::Transient(reason));
                }
                other => return Err(unexpected(other)),
            }
        }
        // Whatever the worker has used until now was trusted.
        self.process.enforce(self.settings).map_err(HandshakeError::Transient)?;
        Ok(result)
    }

    /// Does the handshake up to a link that is open at both ends.
    fn connect(&self) -> Result<Connected, HandshakeError> {
        let hello = self.hello.clone();
        let kept = Kept::greet(self.owner, self.process, hello, |hello, descriptors| {
            self.send(&ToWorkerControl::Hello(hello), descriptors)
        })?;
        let answer = self.answer()?;
        self.process.set_worker_pid(answer.pid);
        let opened = match self.settings.connector {
            // The rings are usable at once.
            None => None,
            Some(connector) => Some(self.open(connector, &answer.server)?),
        };
        Ok(kept.connect(self.settings, self.process, &answer, opened))
    }

    /// Opens a link that is not a ring.
    fn open(&self, connector: &dyn HostConnector, server: &str) -> Result<HostEnd, HandshakeError> {
        let limit = message_limit(self.settings.message_limit);
        let connect = || connector.connect(&self.hello.folder, server, &self.hello.token, limit);
        let connected = self.process.connect(connect);
        let link = connected.ok_or(HandshakeError::Gone)?.map_err(|error| {
            HandshakeError::Transient(format!("its link cannot be opened: {error}"))
        })?;
        self.send(&ToWorkerControl::Go, &[])?;
        match self.receive()? {
            FromWorkerControl::Ready => Ok(link),
            other => Err(unexpected(other)),
        }
    }

    /// Returns the worker's answer, and checks that it comes from the started worker and from a
    /// usable program.
    fn answer(&self) -> Result<Answer, HandshakeError> {
        let pid = self.process.pid();
        let answer = match self.process.program() {
            Some(program) if !self.hello.asks => Answer {
                version: PROTOCOL_VERSION,
                token: self.hello.token,
                pid: pid.unwrap_or(0),
                program: program.clone(),
                server: String::new(),
                arenas: true,
            },
            _ => match self.receive()? {
                FromWorkerControl::Answer(answer) => answer,
                other => return Err(unexpected(other)),
            },
        };
        if answer.version != PROTOCOL_VERSION {
            return Err(HandshakeError::Permanent(format!(
                "it uses version {} of the protocol and this program uses version {PROTOCOL_VERSION}; build both from the same release",
                answer.version
            )));
        }
        self.check_program(&answer.program)?;
        if answer.token != self.hello.token {
            return Err(garbage("a wrong token"));
        }
        // With a wrapper script, the worker may be a child of the started process. Signals go to
        // the process group that the started process leads.
        if pid != Some(answer.pid) && self.settings.command.is_none() {
            return Err(garbage("the process id of another process"));
        }
        Ok(answer)
    }

    /// Functions are called by their offset in the executable, so the worker has to run the same
    /// one, or take tasks by name.
    fn check_program(&self, program: &WorkerProgram) -> Result<(), HandshakeError> {
        let settings = self.settings;
        let (ours, theirs) = (build_identity(), BuildIdentity::from_bytes(program.identity));
        let version = program.version.as_deref();
        let problem = if ours != theirs && !program.has_names {
            format!(
                "its executable is another build ({theirs}) than this one ({ours}); start workers from the same executable, or run a brigade::worker::Server in the other one and submit tasks by name"
            )
        } else if ours != theirs && !settings.setup.is_empty() {
            format!(
                "its executable is another build ({theirs}) than this one ({ours}), so it cannot run the initializer or finalizer of this pool; do the setup in its own main"
            )
        } else if let Some(wanted) = settings.version.as_deref().filter(|it| version != Some(it)) {
            let found = version.map_or("no version".to_owned(), |it| format!("version {it:?}"));
            format!(
                "its program has {found}, but `worker_version` requires {wanted:?}; start the program of that version, or change the setting"
            )
        } else {
            return Ok(());
        };
        Err(HandshakeError::Permanent(problem))
    }

    fn send(
        &self,
        message: &ToWorkerControl,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), HandshakeError> {
        let packet = message.encode().map_err(|error| {
            HandshakeError::Permanent(format!("cannot encode a control message: {error}"))
        })?;
        let control = self.process.control().ok_or(HandshakeError::Gone)?;
        control.send(&packet, descriptors).map_err(|error| match error.kind() {
            // The worker closed its end: find out how it ended, or what it had sent before.
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                self.receive().map_or_else(|error| error, unexpected)
            }
            _ => HandshakeError::Transient(format!("cannot write to its control socket: {error}")),
        })
    }

    fn receive(&self) -> Result<FromWorkerControl, HandshakeError> {
        let control = self.process.control().ok_or(HandshakeError::Gone)?;
        loop {
            return match control.receive(Some(self.deadline), self.process.pidfd()) {
                Ok(Received::Packet { bytes, .. }) => match FromWorkerControl::decode(&bytes) {
                    // It is about to end, and is not killed before, so that its exit status is its
                    // own.
                    Ok(FromWorkerControl::Crashed) => continue,
                    message => message.map_err(|_| garbage("a malformed handshake message")),
                },
                Ok(Received::PeerDied) => Err(HandshakeError::Gone),
                Ok(Received::Closed) => Err(self.closed()),
                Ok(Received::TimedOut) => Err(self.too_late()),
                Err(error) => Err(HandshakeError::Transient(format!(
                    "cannot read from its control socket: {error}"
                ))),
            };
        }
    }

    /// Explains a closed control socket: the process is about to die, or it is not a worker.
    fn closed(&self) -> HandshakeError {
        let pidfd: Vec<BorrowedFd<'_>> = self.process.pidfd().into_iter().collect();
        match brigade_sys::wait::wait_readable(&pidfd, Some(self.deadline)) {
            Ok(ready) if ready.first() == Some(&true) => HandshakeError::Gone,
            _ => HandshakeError::Permanent(format!(
                "it closed its control socket (its standard input at the start), and {} within {}",
                self.phase.incomplete(),
                self.limit()
            )),
        }
    }

    /// Explains that the deadline of the phase has passed.
    fn too_late(&self) -> HandshakeError {
        let late = format!("{} within {}", self.phase.incomplete(), self.limit());
        match self.phase {
            Phase::Handshake => HandshakeError::Permanent(format!(
                "{late}; is brigade::init() the first line of its main?"
            )),
            // Whatever the initializer waited for may be available the next time.
            Phase::Initializer => HandshakeError::Transient(late),
        }
    }

    fn limit(&self) -> String {
        let (limit, setting) = self.phase.limit(self.settings);
        format!("{limit:?} ({setting})")
    }
}
