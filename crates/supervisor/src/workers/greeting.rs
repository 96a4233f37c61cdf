//! The host's greeting: who the worker is, its settings, and the memory that it shares.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_crash::Files;
use brigade_sandbox::Prepared;
use brigade_sys::arena::{ResultView, Terms, affordable};
use brigade_sys::crash::{self, CrashArea};
use brigade_sys::executable::{FunctionOffset, build_identity};
use brigade_sys::lifeline::Lifeline;
use brigade_sys::orphans::come_here;
use brigade_sys::segment::Segment;
use brigade_wire::WorkerId;
use brigade_wire::handshake::{Answer, Given, Hello, LinkKind, Token};
use brigade_wire::link::connect::{HostConnector, HostEnd};
use brigade_wire::link::{message_limit, ring};
use brigade_wire::slots::SlotTable;

use crate::workers::connection::{Connected, Connection, HostLink};
use crate::workers::settings::Settings;
use crate::workers::setup::Initializer;
use crate::workers::supervised::{SharedMemory, Supervised};
use crate::workers::supervisor::require_reserve;
use crate::workers::worker_process::WorkerProcess;

/// A worker that keeps more than this part of the limit on memory after a task is replaced, so that
/// the next task has the rest.
const KEPT: u64 = 8;

/// Returns the greeting of a worker, with which nothing comes along yet, and which asks for an
/// answer.
pub(crate) fn hello(settings: &Settings, worker: WorkerId, is_forked: bool) -> Hello {
    let offset = |it: &Option<Initializer>| it.as_ref().map(|it| it.function.raw());
    let setup = &settings.setup;
    Hello {
        token: Token::random(),
        asks: true,
        given: Given::default(),
        worker,
        message_limit: settings.message_limit as u64,
        slots: settings.credit,
        events: settings.events.map(Into::into),
        link: settings.connector.map_or(LinkKind::Ring, HostConnector::kind),
        arenas: (0, 0),
        terms: Terms::default(),
        folder: PathBuf::new(),
        pinned: settings.is_pinned,
        // Copies that are killed would become zombies of a host that has become a subreaper.
        copies: settings.copies.map(|it| if come_here() { Duration::ZERO } else { it }),
        max_rss: settings.max_rss.unwrap_or(0),
        max_growth: settings.limits.memory_limit().map_or(0, |limit| limit / KEPT),
        depth: settings.depth,
        identity: *build_identity().as_bytes(),
        preload: offset(&setup.preload).filter(|_| !is_forked),
        initializer: offset(&setup.initializer),
        finalizer: setup.finalizer.map(FunctionOffset::raw),
        sandbox: settings.sandbox.as_ref().map(|it| Box::new(it.with_limits(&settings.limits))),
    }
}

/// The host's part of a greeting.
pub(crate) struct Kept<'a> {
    shared: Option<SharedMemory<'a>>,
    segment: Arc<Segment>,
    results: Option<Arc<ResultView>>,
    ringers: Option<[OwnedFd; 2]>,
}

impl<'a> Kept<'a> {
    /// Makes what the host shares with a worker. The error can follow "the worker could not be
    /// started: ".
    fn new(owner: &'a impl Supervised, words: usize) -> Result<Self, String> {
        let shared = owner.shared_memory();
        let segment = require_reserve()
            .and_then(|()| Segment::create("brigade", words + crash::WORDS))
            .map_err(|error| format!("cannot make its shared memory: {error}"))?;
        // A system that refuses this much address space has to do without arenas.
        let results = shared.and_then(|shared| {
            let bytes = affordable(shared.most_results, owner.max_workers())?;
            let longest = owner.settings().message_limit;
            ResultView::create("brigade-results", bytes, longest, shared.terms).ok()
        });
        let ringers = shared.map(|shared| shared.doorbell.for_worker()).transpose();
        let ringers = ringers.map_err(|error| format!("cannot make its doorbell: {error}"))?;
        Ok(Self { shared, segment: Arc::new(segment), results, ringers })
    }

    /// Greets a worker: makes all that comes along, binds the process to it, and passes it to
    /// `send`. The error can follow "the worker could not be started: ".
    pub(crate) fn greet<E: From<String>>(
        owner: &'a impl Supervised,
        process: &WorkerProcess,
        mut hello: Hello,
        send: impl FnOnce(Hello, &[BorrowedFd<'_>]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let (settings, words) = (owner.settings(), hello.words());
        let kept = Self::new(owner, words)?;
        let output = &owner.supervisor().output;
        let events = hello.events.and(process.streams());
        let events = events.map(|it| require_reserve().and_then(|()| output.open_events(it)));
        let events = events.transpose();
        let events =
            events.map_err(|error| format!("cannot make the pipe for its events: {error}"))?;
        let files = settings.sandbox.as_ref().map_or(Ok(None), Prepared::files);
        let files = files.map_err(|error| error.to_string())?;
        // Without a lifeline the worker relies on its parent-death signal.
        let (ours, lifeline) = Lifeline::new().ok().unzip();
        let is_confined = settings.sandbox.is_some();
        let read = if is_confined { Files::OfThisProcess } else { Files::OfWorker };
        process.bind(ours, CrashArea::new(&kept.segment, words).map(|area| (area, read)));
        let results = kept.results.as_deref();
        let arguments = kept.shared.and_then(|it| it.arguments).filter(|_| results.is_some());
        hello.arenas = (
            arguments.map_or(0, |arena| arena.len() as u64),
            results.map_or(0, |arena| arena.len() as u64),
        );
        hello.terms = kept.shared.map(|it| it.terms).unwrap_or_default();
        let [thread, caller] = [0, 1].map(|it| kept.ringers.as_ref().map(|all| all[it].as_fd()));
        let argument = |it: &'a Option<Initializer>| it.as_ref().map(|it| it.argument.as_fd());
        let descriptors = hello.give(Given {
            segment: Some(kept.segment.as_fd()),
            lifeline: lifeline.as_ref().map(AsFd::as_fd),
            events: events.as_ref().map(AsFd::as_fd),
            page: kept.shared.map(|it| it.doorbell.page().as_fd()),
            thread,
            caller,
            arguments: arguments.map(AsFd::as_fd),
            results: results.map(AsFd::as_fd),
            preload: argument(&settings.setup.preload).filter(|_| hello.preload.is_some()),
            initializer: argument(&settings.setup.initializer),
            files: files.as_ref().map(AsFd::as_fd),
        });
        send(hello, &descriptors)?;
        Ok(kept)
    }

    /// Returns the connection to a worker with this answer, over its rings or over the link that
    /// was opened in the handshake.
    pub(crate) fn connect(
        self,
        settings: &Settings,
        process: &WorkerProcess,
        answer: &Answer,
        opened: Option<HostEnd>,
    ) -> Connected {
        let Self { shared, segment, results, ringers } = self;
        let table = Arc::new(SlotTable::new(Arc::clone(&segment), settings.credit));
        let same_build = answer.program.identity == *build_identity().as_bytes();
        let (link, receiver, end_mark) = if let Some(opened) = opened {
            (HostLink::Connected(opened.sender), Some(opened.receiver), Some(opened.end_mark))
        } else {
            let limit = message_limit(settings.message_limit);
            let end = ring::HostEnd::new(&segment, settings.credit, limit);
            (HostLink::Ring(Box::new(end)), None, None)
        };
        let results = results.filter(|_| answer.arenas);
        // A worker that a wrapper has started, or that is in another namespace, is not the process
        // that the host knows. Copies of the worker name memory of theirs, which its process has
        // not.
        let pid = process.pid().filter(|pid| *pid == answer.pid && settings.copies.is_none());
        if let (Some(results), Some(pid)) = (&results, pid) {
            results.set_worker(pid);
        }
        let reads_arguments = shared.is_some_and(|shared| shared.arguments.is_some());
        let mut connection = Connection::new(link, table, same_build);
        connection.end_mark = end_mark;
        connection.results = results;
        connection.reads_arguments = reads_arguments;
        connection.ringers = ringers;
        Connected { connection, receiver, initializing: None }
    }
}
