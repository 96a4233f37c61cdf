//! The host's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Every wait covers the control socket and the worker's pidfd, until the deadline of the phase
//! (the handshake, then the initializer). A worker that is silent, dead, or not a worker at all is
//! recognized and named. No path leaves anything behind: the process is killed and reaped, and the
//! folder of the link's server is removed if the worker could not do it.

mod error;

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::Received;
use brigade_sys::executable::{BuildIdentity, build_identity};
use brigade_wire::handshake::{Answer, FromWorkerControl, ToWorkerControl, Token};
use brigade_wire::link::message_limit;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::error::StartError;
use crate::note;
use crate::workers::connection::Connected;
use crate::workers::greeting::Greeting;
use crate::workers::settings::Settings;
use crate::workers::supervised::Supervised;
use crate::workers::worker_process::WorkerProcess;
use error::{HandshakeError, Phase, explain, garbage, unexpected};

/// Does the handshake. On failure the process is killed and reaped.
pub(crate) fn run(
    owner: &impl Supervised,
    process: &WorkerProcess,
) -> Result<Connected, StartError> {
    let supervisor = owner.supervisor();
    let settings = owner.settings();
    let phase = Phase::Handshake;
    let deadline = clock::now().saturating_add(phase.limit(settings).0);
    // Rings need no folder, so they work even if the temporary folder is unusable.
    let pid = process.pid().unwrap_or(0);
    let folder = settings.connector.map(|connector| connector.folder(pid)).transpose();
    let folder = folder.map_err(|reason| StartError { is_permanent: true, reason })?;
    let token = Token::random();
    let mut handshake = Handshake { owner, settings, process, phase, deadline, token };
    let connected = handshake.run(folder.as_deref()).map_err(|error| {
        let failure = explain(supervisor, process, handshake.phase, error);
        if process.is_forked() && handshake.phase == Phase::Handshake {
            supervisor.is_server_suspect.store(true, Ordering::Release);
        }
        // The worker removes its folder itself, unless it died in between.
        if let Some(folder) = folder {
            supervisor.folders.remove(folder);
        }
        failure
    })?;
    process.set_connected();
    Ok(connected)
}

/// Completes the start of a worker that needs no handshake. On failure the process is killed and
/// reaped.
pub(crate) fn skip(owner: &impl Supervised, process: &WorkerProcess) -> Result<(), StartError> {
    process.set_worker_pid(process.pid().unwrap_or(0));
    bind_to_host(owner, process);
    process.enforce(owner.settings()).map_err(|reason| {
        let error = HandshakeError::Transient(reason);
        explain(owner.supervisor(), process, Phase::Handshake, error)
    })?;
    process.set_connected();
    Ok(())
}

fn bind_to_host(owner: &impl Supervised, process: &WorkerProcess) {
    if let Err(error) = process.bind_to_host() {
        let worker = process.worker();
        note!(
            owner.supervisor().output, WARN, %worker, %error,
            "processes that tasks start will outlive a killed host"
        );
    }
}

struct Handshake<'a, S> {
    owner: &'a S,
    settings: &'a Settings,
    process: &'a WorkerProcess,
    phase: Phase,
    /// Deadline of the current phase.
    deadline: Monotonic,
    token: Token,
}

impl<S: Supervised> Handshake<'_, S> {
    fn run(&mut self, folder: Option<&Path>) -> Result<Connected, HandshakeError> {
        let mut result = self.connect(folder)?;
        // Not earlier: a worker that is killed before its link is open leaves its folder behind.
        bind_to_host(self.owner, self.process);
        if self.settings.sandbox.is_some() {
            // A worker that opens the memory of another one reads what is not meant for it.
            result.connection.takes_no_descriptors();
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
                    result.connection.takes_no_descriptors();
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
    fn connect(&self, folder: Option<&Path>) -> Result<Connected, HandshakeError> {
        let limit = message_limit(self.settings.message_limit);
        let is_forked = self.process.is_forked();
        let mut greeting = Greeting::new(self.owner, self.process, folder, self.token, is_forked)
            .map_err(HandshakeError::Transient)?;
        greeting.bind(self.process);
        let hello = ToWorkerControl::Hello(greeting.hello.clone());
        self.send(&hello, &greeting.descriptors())?;
        let answer = match self.receive()? {
            FromWorkerControl::Answer(answer) => answer,
            other => return Err(unexpected(other)),
        };
        let server = self.check(&answer)?;
        self.process.set_worker_pid(answer.pid);
        let same_build = BuildIdentity::from_bytes(answer.identity) == build_identity();
        let Some((connector, folder)) = self.settings.connector.zip(folder) else {
            // The answer completes the handshake. A worker that a wrapper has started, or that is
            // in another namespace, is not the process that the host knows.
            let pid = self.process.pid().filter(|pid| *pid == answer.pid);
            return Ok(greeting.into_rings(pid, same_build, answer.arenas));
        };
        let connect = || connector.connect(folder, server, &self.token, limit);
        let connected = self.process.connect(connect);
        let link = connected.ok_or(HandshakeError::Gone)?.map_err(|error| {
            HandshakeError::Transient(format!("its link cannot be opened: {error}"))
        })?;
        self.send(&ToWorkerControl::Go, &[])?;
        match self.receive()? {
            FromWorkerControl::Ready => {}
            other => return Err(unexpected(other)),
        }
        Ok(greeting.into_connected(link, same_build))
    }

    /// Checks that the answer comes from the started worker and from a usable program. Returns the
    /// name of its server.
    fn check<'answer>(&self, answer: &'answer Answer) -> Result<&'answer str, HandshakeError> {
        if answer.version != PROTOCOL_VERSION {
            return Err(HandshakeError::Permanent(format!(
                "it uses version {} of the protocol and this program uses version {PROTOCOL_VERSION}; build both from the same release",
                answer.version
            )));
        }
        self.check_program(answer)?;
        if answer.token != self.token {
            return Err(garbage("a wrong token"));
        }
        // With a wrapper script, the worker may be a child of the started process. Signals go to
        // the process group that the started process leads.
        if self.process.pid() != Some(answer.pid) && self.settings.command.is_none() {
            return Err(garbage("the process id of another process"));
        }
        Ok(&answer.server)
    }

    /// Functions are called by their offset in the executable, so the worker has to run the same
    /// one, or take tasks by name.
    fn check_program(&self, answer: &Answer) -> Result<(), HandshakeError> {
        let settings = self.settings;
        let (ours, theirs) = (build_identity(), BuildIdentity::from_bytes(answer.identity));
        let version = answer.program.as_ref().and_then(|program| program.version.as_deref());
        let problem = if ours != theirs && answer.program.is_none() {
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
        control.send(&packet, descriptors).map_err(|error| self.send_failure(&error))
    }

    fn send_failure(&self, error: &std::io::Error) -> HandshakeError {
        if matches!(
            error.kind(),
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset
        ) {
            // The worker closed its end; find out whether and how it ended.
            match self.receive() {
                Err(error) => error,
                // Sent before the worker exited.
                Ok(FromWorkerControl::Refused { reason }) => {
                    HandshakeError::Permanent(format!("it refused: {reason}"))
                }
                Ok(_) => garbage("a message before it closed its control socket"),
            }
        } else {
            HandshakeError::Transient(format!("cannot write to its control socket: {error}"))
        }
    }

    fn receive(&self) -> Result<FromWorkerControl, HandshakeError> {
        let control = self.process.control().ok_or(HandshakeError::Gone)?;
        let mut received = control.receive(Some(self.deadline), self.process.pidfd());
        // It is about to end, and is not killed before, so that its exit status is its own.
        while matches!(&received, Ok(Received::Packet { bytes, .. }) if is_crash(bytes)) {
            received = control.receive(Some(self.deadline), self.process.pidfd());
        }
        match received {
            Ok(Received::Packet { bytes, .. }) => FromWorkerControl::decode(&bytes)
                .map_err(|_| garbage("a malformed handshake message")),
            Ok(Received::PeerDied) => Err(HandshakeError::Gone),
            Ok(Received::Closed) => Err(self.closed()),
            Ok(Received::TimedOut) => Err(self.too_late()),
            Err(error) => Err(HandshakeError::Transient(format!(
                "cannot read from its control socket: {error}"
            ))),
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

fn is_crash(packet: &[u8]) -> bool {
    matches!(FromWorkerControl::decode(packet), Ok(FromWorkerControl::Crashed))
}
