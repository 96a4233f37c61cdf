//! The host's half of the handshake; see `brigade_wire::handshake` for the sequence.
//!
//! Every wait is on the control socket and the worker's pidfd together, until the start deadline, so a worker
//! that is silent, dead or somebody else is told apart and named. Nothing is left behind on any path: the
//! process is killed and reaped, and the folder of the link's server is removed if the worker could not do it.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brigade_sys::arena::ResultView;
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::Received;
use brigade_sys::executable::{BuildIdentity, build_identity};
use brigade_sys::process::Signal;
use brigade_sys::segment::Segment;
use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, LinkKind, ToWorkerControl, Token};
use brigade_wire::link::{ipc, message_limit, ring};
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;
use brigade_worker::exit_code;

use super::attendant::Newborn;
use super::collect::ARENA;
use super::shared::Shared;
use crate::config::CREDIT;

/// A worker that can take tasks.
pub(super) struct Ready {
    pub(super) link: Link,
    pub(super) slots: Arc<SlotTable>,
    /// Where a worker with rings puts large results.
    pub(super) results: Option<Arc<ResultView>>,
}

/// The host's end of the link, of either flavour.
pub(super) enum Link {
    Ring(Box<ring::HostEnd>),
    Ipc(ipc::HostEnd),
}

/// Why there is none.
pub(super) struct Failure {
    pub(super) permanent: bool,
    pub(super) reason: String,
}

/// What went wrong before it is known how the process ended.
enum Trouble {
    /// The process is gone.
    Gone,
    /// It will not get better by trying again.
    Permanent(String),
    /// The system refused something that it may grant later.
    Passing(String),
}

/// Does the handshake; on failure the process is killed and reaped.
pub(super) fn run(shared: &Shared, newborn: &Newborn) -> Result<Ready, Failure> {
    let deadline = clock::now().saturating_add(shared.config.start_timeout);
    let folder = server_folder(newborn).map_err(|reason| Failure { permanent: true, reason })?;
    let handshake = Handshake { shared, newborn, deadline, token: Token::random() };
    handshake.run(&folder).map_err(|trouble| {
        let failure = explain(shared, newborn, trouble);
        remove_folder(&folder);
        failure
    })
}

struct Handshake<'a> {
    shared: &'a Shared,
    newborn: &'a Newborn,
    deadline: Monotonic,
    token: Token,
}

impl Handshake<'_> {
    fn run(&self, folder: &Path) -> Result<Ready, Trouble> {
        let limit = message_limit(self.shared.config.message_limit);
        let (segment, results) = self.greet(folder)?;
        let slots = Arc::new(SlotTable::new(Arc::clone(&segment), CREDIT));
        let answer = self.answer()?;
        let server = self.check(&answer)?;
        if self.shared.collecting.is_some() {
            // The rings are there from the beginning: the answer was the last word.
            let end = Box::new(ring::HostEnd::new(&segment, CREDIT, limit));
            return Ok(Ready { link: Link::Ring(end), slots, results });
        }
        let connected = self.newborn.life.connect(|| ipc::connect(server, &self.token, limit));
        let link = connected
            .ok_or(Trouble::Gone)?
            .map_err(|error| Trouble::Passing(format!("its link could not be opened: {error}")))?;
        self.send(&ToWorkerControl::Go)?;
        match self.receive()? {
            FromWorkerControl::Ready => {}
            FromWorkerControl::Refused { reason } => {
                return Err(Trouble::Permanent(format!("it refused: {reason}")));
            }
            FromWorkerControl::Answer(_) => return Err(garbage("a second answer")),
        }
        Ok(Ready { link: Link::Ipc(link), slots, results: None })
    }

    /// Says who the worker is to be, and hands over the table of task states.
    fn greet(&self, folder: &Path) -> Result<(Arc<Segment>, Option<Arc<ResultView>>), Trouble> {
        let collecting = self.shared.collecting.as_ref();
        let (link, words) = match collecting {
            Some(_) => (LinkKind::Ring, ring::words(CREDIT)),
            None => (LinkKind::Ipc, SlotTable::words(CREDIT)),
        };
        let segment = Segment::create("brigade", words).map_err(|error| {
            Trouble::Passing(format!("failed to make its shared memory: {error}"))
        })?;
        // A system that refuses so much address space has to do without arenas.
        let arguments = collecting.and_then(|collecting| collecting.arguments.as_ref());
        let results = arguments.and_then(|_| ResultView::create("brigade-results", ARENA).ok());
        let arenas = arguments.zip(results.as_ref());
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
            link,
            folder: folder.to_owned(),
            max_rss: self.shared.config.max_rss.unwrap_or(0),
            depth: brigade_worker::context::depth().unwrap_or(0) + 1,
        };
        let packet = ToWorkerControl::Hello(hello).encode().map_err(|error| {
            Trouble::Permanent(format!("failed to encode the greeting: {error}"))
        })?;
        let mut descriptors = vec![segment.as_fd()];
        if let Some(doorbell) = collecting.map(|collecting| &collecting.doorbell) {
            descriptors.extend([
                doorbell.page().as_fd(),
                doorbell.thread().as_fd(),
                doorbell.caller().as_fd(),
            ]);
        }
        if let Some((arguments, results)) = arenas {
            descriptors.extend([arguments.as_fd(), results.as_fd()]);
        }
        let sent = self.newborn.control.send(&packet, &descriptors);
        sent.map_err(|error| self.send_failure(&error))?;
        Ok((Arc::new(segment), results))
    }

    fn answer(&self) -> Result<Answer, Trouble> {
        match self.receive()? {
            FromWorkerControl::Answer(answer) => Ok(answer),
            FromWorkerControl::Refused { reason } => {
                Err(Trouble::Permanent(format!("it refused: {reason}")))
            }
            FromWorkerControl::Ready => Err(garbage("`ready` before an answer")),
        }
    }

    /// Whether the answer is of our worker and of our build; if so, the name of its server.
    fn check<'answer>(&self, answer: &'answer Answer) -> Result<&'answer str, Trouble> {
        if answer.version != PROTOCOL_VERSION {
            return Err(Trouble::Permanent(format!(
                "it speaks version {} of the protocol, this program version {PROTOCOL_VERSION}; build both from the same release",
                answer.version
            )));
        }
        let ours = build_identity();
        if answer.identity != *ours.as_bytes() {
            let theirs = BuildIdentity::from_bytes(answer.identity);
            return Err(Trouble::Permanent(format!(
                "its executable is another build ({theirs}) than this one ({ours}); a worker must be started from the same executable"
            )));
        }
        if answer.token != self.token {
            return Err(garbage("a token that is not the one it was given"));
        }
        // A wrapper script may stay between us and the worker; the group it leads is what we signal.
        if answer.pid != self.newborn.process.pid() && self.shared.config.worker_command.is_none() {
            return Err(garbage("the process id of another process"));
        }
        Ok(&answer.server)
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
            Ok(Received::TimedOut) => Err(Trouble::Permanent(format!(
                "it did not complete the handshake within {:?}; is brigade::init() the first line of its main?",
                self.shared.config.start_timeout
            ))),
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
                "it closed its control socket (its standard input) and did not complete the handshake within {:?}",
                self.shared.config.start_timeout
            )),
        }
    }
}

fn garbage(what: &str) -> Trouble {
    Trouble::Permanent(format!(
        "it sent {what}; the program that was started is not a worker of this release"
    ))
}

/// Ends the process and says in one sentence what happened.
fn explain(shared: &Shared, newborn: &Newborn, trouble: Trouble) -> Failure {
    // Both fail only for a process that is gone already.
    let _ = newborn.process.signal_group(Signal::Kill);
    let exit = newborn.process.reap();
    let last_words = shared.console.last_words(&newborn.stderr);
    let (permanent, what) = match (trouble, exit) {
        (Trouble::Permanent(what), _) => (true, what),
        (Trouble::Passing(what), _) => (false, what),
        (Trouble::Gone, Ok(exit)) => {
            let known =
                exit_code::describe_exit(exit).map(|text| format!(", {text}")).unwrap_or_default();
            (false, format!("it ended before the handshake was complete: {exit}{known}"))
        }
        (Trouble::Gone, Err(error)) => {
            (false, format!("it ended before the handshake was complete ({error})"))
        }
    };
    let mut reason =
        format!("{} (pid {}) could not be started: {what}", newborn.worker, newborn.process.pid());
    if let Some(line) = last_words.lines().rev().find(|line| !line.trim().is_empty()) {
        reason.push_str("; its last line on stderr: ");
        reason.push_str(line);
    }
    Failure { permanent, reason }
}

/// The folder that the worker shall make for its server: short enough for a socket's path.
fn server_folder(newborn: &Newborn) -> Result<PathBuf, String> {
    let name = format!("brigade-{}-{}", newborn.process.pid(), Token::random().short());
    let preferred = std::env::temp_dir().join(&name);
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

/// The worker removes its folder itself, unless it died in between.
fn remove_folder(folder: &Path) {
    // Not there is the rule.
    let _ = std::fs::remove_dir_all(folder);
}
