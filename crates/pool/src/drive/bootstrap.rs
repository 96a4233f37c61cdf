//! The host's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Every wait covers the control socket and the worker's pidfd, until the deadline of the phase
//! (the handshake, then the initializer). A worker that is silent, dead, or not a worker at all is
//! recognized and named. No path leaves anything behind: the process is killed and reaped, and the
//! folder of the link's server is removed if the worker could not do it.

mod error;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_sys::arena::{ResultView, affordable};
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::Received;
use brigade_sys::executable::{BuildIdentity, FunctionOffset, build_identity};
use brigade_sys::lifeline::GroupLifeline;
use brigade_sys::memory::require_address_space;
use brigade_sys::segment::Segment;
use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, LinkKind, ToWorkerControl, Token};
use brigade_wire::link::connect::{HostConnector, HostEnd};
use brigade_wire::link::{message_limit, ring};
use brigade_wire::ring::Doorbell;
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;

use super::RESERVED_SPACE;
use super::attendant::StartedWorker;
use super::collect::ARENA;
use super::shared::Shared;
use crate::config::CREDIT;
pub(super) use error::Failure;
use error::{HandshakeError, Phase, explain, garbage, unexpected};

/// The connection data of a worker that can take tasks.
pub(super) struct HandshakeResult {
    pub(super) link: Link,
    pub(super) table: Arc<SlotTable>,
    /// The arena for large values of a worker with rings, if the worker could map it.
    pub(super) results: Option<Arc<ResultView>>,
    /// The doorbell descriptors of a worker with rings.
    pub(super) ringers: Option<[OwnedFd; 2]>,
    /// Without it, processes that tasks have started outlive a host that is killed.
    pub(super) lifeline: Option<GroupLifeline>,
}

/// The host's end of the link.
pub(super) enum Link {
    Ring(Box<ring::HostEnd>),
    /// Opened in the handshake.
    Connected(HostEnd),
}

/// Does the handshake. On failure the process is killed and reaped.
pub(super) fn run(shared: &Shared, started: &StartedWorker) -> Result<HandshakeResult, Failure> {
    let phase = Phase::Handshake;
    let deadline = clock::now().saturating_add(phase.limit(&shared.config));
    // Rings need no folder, so they work even if the temporary folder is unusable.
    let connector = shared.config.link.connector();
    let folder = connector.map(|connector| connector.folder(started.process.pid())).transpose();
    let folder = folder.map_err(|reason| Failure { permanent: true, reason })?;
    let token = Token::random();
    let mut handshake = Handshake { shared, started, connector, phase, deadline, token };
    handshake.run(folder.as_deref()).map_err(|error| {
        let failure = explain(shared, started, handshake.phase, error);
        // The worker removes its folder itself, unless it died in between.
        if let Some(folder) = folder {
            shared.folders.remove(folder);
        }
        failure
    })
}

/// Shared memory and descriptors that the worker was sent.
struct Greeted {
    segment: Arc<Segment>,
    results: Option<Arc<ResultView>>,
    ringers: Option<[OwnedFd; 2]>,
}

struct Handshake<'a> {
    shared: &'a Shared,
    started: &'a StartedWorker,
    /// Opens the link; `None` for rings.
    connector: Option<&'static dyn HostConnector>,
    phase: Phase,
    /// Deadline of the current phase.
    deadline: Monotonic,
    token: Token,
}

impl Handshake<'_> {
    fn run(&mut self, folder: Option<&Path>) -> Result<HandshakeResult, HandshakeError> {
        let mut result = self.connect(folder)?;
        // Not earlier: a worker that is killed before its link is open leaves its folder behind.
        result.lifeline = GroupLifeline::bind(&self.started.process).ok();
        if self.shared.config.setup.initializer.is_some() {
            self.phase = Phase::Initializer;
            self.deadline = clock::now().saturating_add(self.phase.limit(&self.shared.config));
            match self.receive()? {
                FromWorkerControl::Initialized => {}
                FromWorkerControl::InitializerFailed { reason } => {
                    // Whatever the initializer needs may be available the next time.
                    return Err(HandshakeError::Transient(reason));
                }
                other => return Err(unexpected(other)),
            }
        }
        Ok(result)
    }

    /// Does the handshake up to a link that is open at both ends.
    fn connect(&self, folder: Option<&Path>) -> Result<HandshakeResult, HandshakeError> {
        let limit = message_limit(self.shared.config.message_limit);
        let Greeted { segment, results, ringers } = self.greet(folder)?;
        let table = Arc::new(SlotTable::new(Arc::clone(&segment), CREDIT));
        let answer = self.answer()?;
        let server = self.check(&answer)?;
        let Some(connector) = self.connector else {
            // The rings exist from the start, so the answer completes the handshake.
            let end = Box::new(ring::HostEnd::new(&segment, CREDIT, limit));
            let results = results.filter(|_| answer.arenas);
            let link = Link::Ring(end);
            return Ok(HandshakeResult { link, table, results, ringers, lifeline: None });
        };
        let connect = || connector.connect(server, &self.token, limit);
        let connected = self.started.state.connect(connect);
        let link = connected.ok_or(HandshakeError::Gone)?.map_err(|error| {
            HandshakeError::Transient(format!("its link could not be opened: {error}"))
        })?;
        self.send(&ToWorkerControl::Go)?;
        match self.receive()? {
            FromWorkerControl::Ready => {}
            other => return Err(unexpected(other)),
        }
        let link = Link::Connected(link);
        Ok(HandshakeResult { link, table, results: None, ringers: None, lifeline: None })
    }

    /// Sends the worker its identity and settings, and the table of task states.
    fn greet(&self, folder: Option<&Path>) -> Result<Greeted, HandshakeError> {
        let collecting = self.shared.collecting.as_ref();
        let (link, words) = match self.connector {
            None => (LinkKind::Ring, ring::words(CREDIT)),
            Some(connector) => (connector.kind(), SlotTable::words(CREDIT)),
        };
        let segment = require_address_space(RESERVED_SPACE)
            .and_then(|()| Segment::create("brigade", words))
            .map_err(|error| {
                HandshakeError::Transient(format!("failed to make its shared memory: {error}"))
            })?;
        // A system that refuses this much address space has to do without arenas.
        let arguments = collecting.and_then(|collecting| collecting.arguments.as_ref());
        let longest = self.shared.config.message_limit;
        let results = arguments
            .and_then(|_| affordable(ARENA, self.shared.target.load(Ordering::Relaxed)))
            .and_then(|bytes| ResultView::create("brigade-results", bytes, longest).ok());
        let arenas = arguments.zip(results.as_ref());
        let setup = &self.shared.config.setup;
        // Without a lifeline the worker relies on its parent-death signal.
        let lifeline = self.shared.lifeline.as_ref().and_then(|lifeline| lifeline.end().ok());
        let hello = Hello {
            arenas: arenas.map_or((0, 0), |(arguments, results)| {
                (arguments.len() as u64, results.len() as u64)
            }),
            version: PROTOCOL_VERSION,
            token: self.token,
            worker: self.started.worker,
            pool: self.shared.config.name.clone(),
            message_limit: self.shared.config.message_limit as u64,
            slots: CREDIT,
            lifeline: lifeline.is_some(),
            link,
            folder: folder.map(Path::to_owned).unwrap_or_default(),
            pinned: self.shared.config.cores.is_some(),
            max_rss: self.shared.config.max_rss.unwrap_or(0),
            depth: brigade_worker::context::depth().unwrap_or(0) + 1,
            identity: *build_identity().as_bytes(),
            initializer: setup.initializer.as_ref().map(|it| it.function.raw()),
            finalizer: setup.finalizer.map(FunctionOffset::raw),
        };
        let packet = ToWorkerControl::Hello(hello).encode().map_err(|error| {
            HandshakeError::Permanent(format!("failed to encode the greeting: {error}"))
        })?;
        let mut descriptors = vec![segment.as_fd()];
        descriptors.extend(lifeline.as_ref().map(AsFd::as_fd));
        let bell = collecting.map(|collecting| &collecting.doorbell);
        let ringers = bell.map(Doorbell::for_worker).transpose().map_err(|error| {
            HandshakeError::Transient(format!("failed to make its doorbell: {error}"))
        })?;
        descriptors.extend(bell.map(|bell| bell.page().as_fd()));
        descriptors.extend(ringers.iter().flatten().map(AsFd::as_fd));
        if let Some((arguments, results)) = arenas {
            descriptors.extend([arguments.as_fd(), results.as_fd()]);
        }
        descriptors.extend(setup.initializer.as_ref().map(|it| it.argument.as_fd()));
        let sent = self.started.control.send(&packet, &descriptors);
        sent.map_err(|error| self.send_failure(&error))?;
        Ok(Greeted { segment: Arc::new(segment), results, ringers })
    }

    fn answer(&self) -> Result<Answer, HandshakeError> {
        match self.receive()? {
            FromWorkerControl::Answer(answer) => Ok(answer),
            other => Err(unexpected(other)),
        }
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
        if answer.pid != self.started.process.pid() && self.shared.config.worker_command.is_none() {
            return Err(garbage("the process id of another process"));
        }
        Ok(&answer.server)
    }

    /// Functions are called by their offset in the executable, so the worker has to run the same
    /// one, or take tasks by name.
    fn check_program(&self, answer: &Answer) -> Result<(), HandshakeError> {
        let config = &self.shared.config;
        let (ours, theirs) = (build_identity(), BuildIdentity::from_bytes(answer.identity));
        let version = answer.program.as_ref().and_then(|program| program.version.as_deref());
        let problem = if ours != theirs && answer.program.is_none() {
            format!(
                "its executable is another build ({theirs}) than this one ({ours}); start workers from the same executable, or run a brigade::worker::Server in the other one and submit tasks by name"
            )
        } else if ours != theirs && !config.setup.is_empty() {
            format!(
                "its executable is another build ({theirs}) than this one ({ours}), so it cannot run the initializer or finalizer of this pool; do the setup in its own main"
            )
        } else if let Some(wanted) =
            config.worker_version.as_deref().filter(|it| version != Some(it))
        {
            let found = version.map_or("no version".to_owned(), |it| format!("version {it:?}"));
            format!(
                "its program has {found}, but `worker_version` requires {wanted:?}; start the program of that version, or change the setting"
            )
        } else {
            return Ok(());
        };
        Err(HandshakeError::Permanent(problem))
    }

    fn send(&self, message: &ToWorkerControl) -> Result<(), HandshakeError> {
        let packet = message.encode().map_err(|error| {
            HandshakeError::Permanent(format!("failed to encode a control message: {error}"))
        })?;
        self.started.control.send(&packet, &[]).map_err(|error| self.send_failure(&error))
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
            HandshakeError::Transient(format!("failed to write to its control socket: {error}"))
        }
    }

    fn receive(&self) -> Result<FromWorkerControl, HandshakeError> {
        let pidfd = self.started.process.pidfd();
        match self.started.control.receive(Some(self.deadline), Some(pidfd)) {
            Ok(Received::Packet { bytes, .. }) => FromWorkerControl::decode(&bytes)
                .map_err(|_| garbage("a malformed handshake message")),
            Ok(Received::PeerDied) => Err(HandshakeError::Gone),
            Ok(Received::Closed) => Err(self.closed()),
            Ok(Received::TimedOut) => Err(self.too_late()),
            Err(error) => Err(HandshakeError::Transient(format!(
                "failed to read from its control socket: {error}"
            ))),
        }
    }

    /// Explains a closed control socket: the process is about to die, or it is not a worker.
    fn closed(&self) -> HandshakeError {
        let pidfd = self.started.process.pidfd();
        match brigade_sys::wait::wait_readable(&[pidfd.as_fd()], Some(self.deadline)) {
            Ok(ready) if ready[0] => HandshakeError::Gone,
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
        format!("{:?} ({})", self.phase.limit(&self.shared.config), self.phase.setting())
    }
}
