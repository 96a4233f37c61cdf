//! The host's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Every wait is on the control socket and the worker's pidfd together, until the deadline of the phase (the handshake, then
//! the initializer), so a worker that is silent, dead or somebody else is told apart and named. Nothing is left behind on any path: the
//! process is killed and reaped, and the folder of the link's server is removed if the worker could not do it.

mod trouble;

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brigade_sys::arena::{ResultView, affordable};
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::Received;
use brigade_sys::executable::{BuildIdentity, FunctionOffset, build_identity};
use brigade_sys::memory::require_address_space;
use brigade_sys::segment::Segment;
use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, LinkKind, ToWorkerControl, Token};
use brigade_wire::link::{ipc, message_limit, ring};
use brigade_wire::ring::Doorbell;
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;

use super::SPACE_LEFT;
use super::attendant::Newborn;
use super::collect::ARENA;
use super::shared::Shared;
use crate::config::CREDIT;
pub(super) use trouble::Failure;
use trouble::{Phase, Trouble, explain, garbage, unexpected};

/// A worker that can take tasks.
pub(super) struct Ready {
    pub(super) link: Link,
    pub(super) slots: Arc<SlotTable>,
    /// Where a worker with rings puts large results, if it could map the arenas.
    pub(super) results: Option<Arc<ResultView>>,
    /// What a worker with rings rings by.
    pub(super) ringers: Option<[OwnedFd; 2]>,
}

/// The host's end of the link, of either flavour.
pub(super) enum Link {
    Ring(Box<ring::HostEnd>),
    Ipc(ipc::HostEnd),
}

/// Does the handshake; on failure the process is killed and reaped.
pub(super) fn run(shared: &Shared, newborn: &Newborn) -> Result<Ready, Failure> {
    let phase = Phase::Handshake;
    let deadline = clock::now().saturating_add(phase.limit(&shared.config));
    // Rings need no folder, so a temporary folder that cannot be used does not matter to them.
    let folder = match shared.collecting {
        Some(_) => None,
        None => Some(server_folder(newborn).map_err(|reason| Failure { permanent: true, reason })?),
    };
    let mut handshake = Handshake { shared, newborn, phase, deadline, token: Token::random() };
    handshake.run(folder.as_deref()).map_err(|trouble| {
        let failure = explain(shared, newborn, handshake.phase, trouble);
        // The worker removes its folder itself, unless it died in between.
        if let Some(folder) = folder {
            shared.folders.remove(folder);
        }
        failure
    })
}

/// What the worker was given a share of.
struct Greeted {
    segment: Arc<Segment>,
    results: Option<Arc<ResultView>>,
    ringers: Option<[OwnedFd; 2]>,
}

struct Handshake<'a> {
    shared: &'a Shared,
    newborn: &'a Newborn,
    phase: Phase,
    /// Of the phase.
    deadline: Monotonic,
    token: Token,
}

impl Handshake<'_> {
    fn run(&mut self, folder: Option<&Path>) -> Result<Ready, Trouble> {
        let ready = self.connect(folder)?;
        if self.shared.config.setup.initializer.is_some() {
            self.phase = Phase::Initializer;
            self.deadline = clock::now().saturating_add(self.phase.limit(&self.shared.config));
            match self.receive()? {
                FromWorkerControl::Initialised => {}
                FromWorkerControl::InitializerFailed { reason } => {
                    // What it needs may be there the next time.
                    return Err(Trouble::Passing(reason));
                }
                other => return Err(unexpected(other)),
            }
        }
        Ok(ready)
    }

    /// The handshake up to a link that is open at both ends.
    fn connect(&self, folder: Option<&Path>) -> Result<Ready, Trouble> {
        let limit = message_limit(self.shared.config.message_limit);
        let Greeted { segment, results, ringers } = self.greet(folder)?;
        let slots = Arc::new(SlotTable::new(Arc::clone(&segment), CREDIT));
        let answer = self.answer()?;
        let server = self.check(&answer)?;
        if self.shared.collecting.is_some() {
            // The rings are there from the beginning: the answer was the last word.
            let end = Box::new(ring::HostEnd::new(&segment, CREDIT, limit));
            let results = results.filter(|_| answer.arenas);
            return Ok(Ready { link: Link::Ring(end), slots, results, ringers });
        }
        let connected = self.newborn.life.connect(|| ipc::connect(server, &self.token, limit));
        let link = connected
            .ok_or(Trouble::Gone)?
            .map_err(|error| Trouble::Passing(format!("its link could not be opened: {error}")))?;
        self.send(&ToWorkerControl::Go)?;
        match self.receive()? {
            FromWorkerControl::Ready => {}
            other => return Err(unexpected(other)),
        }
        Ok(Ready { link: Link::Ipc(link), slots, results: None, ringers: None })
    }

    /// Says who the worker is to be, and hands over the table of task states.
    fn greet(&self, folder: Option<&Path>) -> Result<Greeted, Trouble> {
        let collecting = self.shared.collecting.as_ref();
        let (link, words) = match collecting {
            Some(_) => (LinkKind::Ring, ring::words(CREDIT)),
            None => (LinkKind::Ipc, SlotTable::words(CREDIT)),
        };
        let segment = require_address_space(SPACE_LEFT)
            .and_then(|()| Segment::create("brigade", words))
            .map_err(|error| {
                Trouble::Passing(format!("failed to make its shared memory: {error}"))
            })?;
        // A system that refuses so much address space has to do without arenas.
        let arguments = collecting.and_then(|collecting| collecting.arguments.as_ref());
        let longest = self.shared.config.message_limit;
        let results = arguments
            .and_then(|_| affordable(ARENA, self.shared.target.load(Ordering::Relaxed)))
            .and_then(|bytes| ResultView::create("brigade-results", bytes, longest).ok());
        let arenas = arguments.zip(results.as_ref());
        let setup = &self.shared.config.setup;
        // Without it the worker has its parent-death signal.
        let lifeline = self.shared.lifeline.as_ref().and_then(|lifeline| lifeline.end().ok());
        let hello = Hello {
            arenas: arenas.map_or((0, 0), |(arguments, results)| {
                (arguments.len() as u64, results.len() as u64)
            }),
            version: PROTOCOL_VERSION,
            token: self.token,
            worker: self.newborn.worker,
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
            Trouble::Permanent(format!("failed to encode the greeting: {error}"))
        })?;
        let mut descriptors = vec![segment.as_fd()];
        descriptors.extend(lifeline.as_ref().map(AsFd::as_fd));
        let bell = collecting.map(|collecting| &collecting.doorbell);
        let ringers = bell
            .map(Doorbell::for_worker)
            .transpose()
            .map_err(|error| Trouble::Passing(format!("failed to make its doorbell: {error}")))?;
        descriptors.extend(bell.map(|bell| bell.page().as_fd()));
        descriptors.extend(ringers.iter().flatten().map(AsFd::as_fd));
        if let Some((arguments, results)) = arenas {
            descriptors.extend([arguments.as_fd(), results.as_fd()]);
        }
        descriptors.extend(setup.initializer.as_ref().map(|it| it.argument.as_fd()));
        let sent = self.newborn.control.send(&packet, &descriptors);
        sent.map_err(|error| self.send_failure(&error))?;
        Ok(Greeted { segment: Arc::new(segment), results, ringers })
    }

    fn answer(&self) -> Result<Answer, Trouble> {
        match self.receive()? {
            FromWorkerControl::Answer(answer) => Ok(answer),
            other => Err(unexpected(other)),
        }
    }

    /// Whether the answer is of our worker and of a program that we can use; if so, the name of its server.
    fn check<'answer>(&self, answer: &'answer Answer) -> Result<&'answer str, Trouble> {
        if answer.version != PROTOCOL_VERSION {
            return Err(Trouble::Permanent(format!(
                "it speaks version {} of the protocol, this program version {PROTOCOL_VERSION}; build both from the same release",
                answer.version
            )));
        }
        self.check_program(answer)?;
        if answer.token != self.token {
            return Err(garbage("a token that is not the one it was given"));
        }
        // A wrapper script may stay between us and the worker; the group it leads is what we signal.
        if answer.pid != self.newborn.process.pid() && self.shared.config.worker_command.is_none() {
            return Err(garbage("the process id of another process"));
        }
        Ok(&answer.server)
    }

    /// Functions are called by their offset in the program, so it must be this one, or take tasks by name.
    fn check_program(&self, answer: &Answer) -> Result<(), Trouble> {
        let config = &self.shared.config;
        let (ours, theirs) = (build_identity(), BuildIdentity::from_bytes(answer.identity));
        let version = answer.program.as_ref().and_then(|program| program.version.as_deref());
        let problem = if ours != theirs && answer.program.is_none() {
            format!(
                "its executable is another build ({theirs}) than this one ({ours}); a worker must be started from the same executable, or run a brigade::worker::Server and be given tasks by name"
            )
        } else if ours != theirs && !config.setup.is_empty() {
            format!(
                "its executable is another build ({theirs}) than this one ({ours}), so it can run no initializer or finalizer of this pool; what it needs is set up by its own main"
            )
        } else if let Some(wanted) =
            config.worker_version.as_deref().filter(|it| version != Some(it))
        {
            let found = version.map_or("no version".to_owned(), |it| format!("version {it:?}"));
            format!(
                "its program says that it is {found}, and this pool asks for {wanted:?} (worker_version); start the program of that version, or ask for the one that is there"
            )
        } else {
            return Ok(());
        };
        Err(Trouble::Permanent(problem))
    }

    fn send(&self, message: &ToWorkerControl) -> Result<(), Trouble> {
        let packet = message.encode().map_err(|error| {
            Trouble::Permanent(format!("failed to encode a control message: {error}"))
        })?;
        self.newborn.control.send(&packet, &[]).map_err(|error| self.send_failure(&error))
    }

    fn send_failure(&self, error: &std::io::Error) -> Trouble {
        if matches!(
            error.kind(),
            std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset
        ) {
            // It closed its end; see how it ended, if it did.
            match self.receive() {
                Err(trouble) => trouble,
                // Said before it left.
                Ok(FromWorkerControl::Refused { reason }) => {
                    Trouble::Permanent(format!("it refused: {reason}"))
                }
                Ok(_) => garbage("a message and a closed control socket"),
            }
        } else {
            Trouble::Passing(format!("failed to write to its control socket: {error}"))
        }
    }

    fn receive(&self) -> Result<FromWorkerControl, Trouble> {
        let pidfd = self.newborn.process.pidfd();
        match self.newborn.control.receive(Some(self.deadline), Some(pidfd)) {
            Ok(Received::Packet { bytes, .. }) => FromWorkerControl::decode(&bytes)
                .map_err(|_| garbage("something that is no handshake")),
            Ok(Received::PeerDied) => Err(Trouble::Gone),
            Ok(Received::Closed) => Err(self.closed()),
            Ok(Received::TimedOut) => Err(self.too_late()),
            Err(error) => {
                Err(Trouble::Passing(format!("failed to read from its control socket: {error}")))
            }
        }
    }

    /// The control socket is closed: a process that is about to die, or one that does not know us.
    fn closed(&self) -> Trouble {
        let pidfd = self.newborn.process.pidfd();
        match brigade_sys::wait::wait_readable(&[pidfd.as_fd()], Some(self.deadline)) {
            Ok(ready) if ready[0] => Trouble::Gone,
            _ => Trouble::Permanent(format!(
                "it closed its control socket (its standard input at the start), and {} within {}",
                self.phase.incomplete(),
                self.limit()
            )),
        }
    }

    /// The deadline of the phase has come.
    fn too_late(&self) -> Trouble {
        let late = format!("{} within {}", self.phase.incomplete(), self.limit());
        match self.phase {
            Phase::Handshake => Trouble::Permanent(format!(
                "{late}; is brigade::init() the first line of its main?"
            )),
            // Whatever it waited for may be there the next time.
            Phase::Initializer => Trouble::Passing(late),
        }
    }

    fn limit(&self) -> String {
        format!("{:?} ({})", self.phase.limit(&self.shared.config), self.phase.setting())
    }
}

/// The folder that the worker shall make for its server: short enough for a socket's path.
fn server_folder(newborn: &Newborn) -> Result<PathBuf, String> {
    let name = format!("brigade-{}-{}", newborn.process.pid(), Token::random().short());
    let preferred = std::env::temp_dir().join(&name);
    if preferred.to_str().is_none() {
        return Err(format!(
            "the path of the temporary folder ({}) is not UTF-8; set TMPDIR to one that is, or use rings",
            preferred.display()
        ));
    }
    if ipc::fits(&preferred) {
        return Ok(preferred);
    }
    let fallback = Path::new("/tmp").join(name);
    if fallback.parent().is_some_and(Path::is_dir) {
        Ok(fallback)
    } else {
        Err(format!(
            "the path of the temporary folder ({}) is too long for a socket; set TMPDIR to a shorter one",
            preferred.display()
        ))
    }
}
