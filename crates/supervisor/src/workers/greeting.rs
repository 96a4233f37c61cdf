//! The host's greeting: who the worker is, its settings, and the memory that it shares.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brigade_crash::Files;
use brigade_sandbox::Prepared;
use brigade_sys::arena::{ArgumentArena, ResultView, affordable};
use brigade_sys::crash::{self, CrashArea};
use brigade_sys::executable::{FunctionOffset, build_identity};
use brigade_sys::lifeline::Lifeline;
use brigade_sys::orphans::come_here;
use brigade_sys::segment::Segment;
use brigade_wire::handshake::{Hello, LinkKind, Token};
use brigade_wire::link::connect::HostEnd;
use brigade_wire::link::{message_limit, ring};
use brigade_wire::slots::SlotTable;
use brigade_wire::version::PROTOCOL_VERSION;

use crate::workers::connection::{Connected, Connection, HostLink};
use crate::workers::reserve::require_reserve;
use crate::workers::settings::Settings;
use crate::workers::setup::Initializer;
use crate::workers::supervised::{SharedMemory, Supervised};
use crate::workers::worker_process::WorkerProcess;

/// A greeting, with everything that goes along.
pub(crate) struct Greeting<'a> {
    pub(crate) hello: Hello,
    settings: &'a Settings,
    shared: Option<SharedMemory<'a>>,
    segment: Arc<Segment>,
    crash_area: Option<CrashArea>,
    arenas: Option<Arenas<'a>>,
    lifeline: Option<OwnedFd>,
    host_lifeline: Option<Lifeline>,
    events: Option<OwnedFd>,
    ringers: Option<[OwnedFd; 2]>,
    preload: Option<&'a Initializer>,
    /// The rules of its sandbox, to which the worker adds its own entries in `/proc`.
    files: Option<OwnedFd>,
}

struct Arenas<'a> {
    /// `None` if workers may not read each other's arguments.
    arguments: Option<&'a ArgumentArena>,
    results: Arc<ResultView>,
}

/// A worker that keeps more than this part of the limit on memory after a task is replaced, so that
/// the next task has the rest.
const KEPT: u64 = 8;

impl<'a> Greeting<'a> {
    /// Prepares a greeting. `folder` is that of a link that is opened in the handshake. The error
    /// can follow "the worker could not be started: ".
    pub(crate) fn new(
        owner: &'a impl Supervised,
        process: &WorkerProcess,
        folder: Option<&Path>,
        token: Token,
        is_forked: bool,
    ) -> Result<Self, String> {
        let (settings, shared) = (owner.settings(), owner.shared_memory());
        let supervisor = owner.supervisor();
        let (link, words) = match settings.connector {
            None => (LinkKind::Ring, ring::words(settings.credit)),
            Some(connector) => (connector.kind(), SlotTable::words(settings.credit)),
        };
        let segment = require_reserve()
            .and_then(|()| Segment::create("brigade", words + crash::WORDS))
            .map_err(|error| format!("cannot make its shared memory: {error}"))?;
        let segment = Arc::new(segment);
        let crash_area = CrashArea::new(&segment, words);
        // A system that refuses this much address space has to do without arenas.
        let arenas = shared.and_then(|shared| {
            let bytes = affordable(shared.most_results, owner.max_workers())?;
            let longest = settings.message_limit;
            let results = ResultView::create("brigade-results", bytes, longest, shared.terms);
            Some(Arenas { arguments: shared.arguments, results: results.ok()? })
        });
        // Without a lifeline the worker relies on its parent-death signal.
        let (host_lifeline, lifeline) = Lifeline::new().ok().unzip();
        let events = settings.events.zip(process.streams()).map(|(level, streams)| {
            let end = require_reserve().and_then(|()| supervisor.output.open_events(streams));
            end.map(|end| (level, end))
        });
        let events = events.transpose();
        let events =
            events.map_err(|error| format!("cannot make the pipe for its events: {error}"))?;
        let ringers = shared.map(|shared| shared.doorbell.for_worker()).transpose();
        let ringers = ringers.map_err(|error| format!("cannot make its doorbell: {error}"))?;
        let preload = settings.setup.preload.as_ref().filter(|_| !is_forked);
        let files = settings.sandbox.as_ref().map_or(Ok(None), Prepared::files);
        let files = files.map_err(|error| error.to_string())?;
        let hello = Hello {
            arenas: arenas.as_ref().map_or((0, 0), |arenas| {
                let arguments = arenas.arguments.map_or(0, |arena| arena.len() as u64);
                (arguments, arenas.results.len() as u64)
            }),
            terms: shared.map(|shared| shared.terms).unwrap_or_default(),
            version: PROTOCOL_VERSION,
            token,
            worker: process.worker(),
            pool: settings.pool.clone(),
            message_limit: settings.message_limit as u64,
            slots: settings.credit,
            lifeline: lifeline.is_some(),
            events: events.as_ref().map(|(level, _)| (*level).into()),
            link,
            folder: folder.map(Path::to_owned).unwrap_or_default(),
            pinned: settings.is_pinned,
            // Copies that are killed would become zombies of a host that has become a subreaper.
            copies: settings.copies.map(|it| if come_here() { Duration::ZERO } else { it }),
            max_rss: settings.max_rss.unwrap_or(0),
            max_growth: settings.limits.memory_limit().map_or(0, |limit| limit / KEPT),
            depth: settings.depth,
            identity: *build_identity().as_bytes(),
            preload: preload.map(|it| it.function.raw()),
            initializer: settings.setup.initializer.as_ref().map(|it| it.function.raw()),
            finalizer: settings.setup.finalizer.map(FunctionOffset::raw),
            sandbox: settings.sandbox.as_ref().map(|it| Box::new(it.with_limits(&settings.limits))),
        };
        let events = events.map(|(_, end)| end);
        Ok(Self {
            hello,
            settings,
            shared,
            segment,
            crash_area,
            arenas,
            lifeline,
            host_lifeline,
            events,
            ringers,
            preload,
            files,
        })
    }

    /// Binds the process to its lifeline, and lets its crashes be looked for in the memory of this
    /// greeting. Call it only if no other process can follow.
    pub(crate) fn bind(&mut self, process: &WorkerProcess) {
        if let Some(lifeline) = self.host_lifeline.take() {
            process.set_lifeline(lifeline);
        }
        if let Some(area) = self.crash_area.take() {
            let is_confined = self.settings.sandbox.is_some();
            let files = if is_confined { Files::OfThisProcess } else { Files::OfWorker };
            process.set_crash_area(area, files);
        }
    }

    /// Returns the descriptors that go along, in their order.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut descriptors = vec![self.segment.as_fd()];
        descriptors.extend(self.lifeline.as_ref().map(AsFd::as_fd));
        descriptors.extend(self.events.as_ref().map(AsFd::as_fd));
        descriptors.extend(self.shared.map(|shared| shared.doorbell.page().as_fd()));
        descriptors.extend(self.ringers.iter().flatten().map(AsFd::as_fd));
        if let Some(Arenas { arguments, results }) = &self.arenas {
            descriptors.extend(arguments.map(AsFd::as_fd));
            descriptors.push(results.as_fd());
        }
        descriptors.extend(self.preload.map(|it| it.argument.as_fd()));
        let initializer = self.settings.setup.initializer.as_ref();
        descriptors.extend(initializer.map(|it| it.argument.as_fd()));
        descriptors.extend(self.files.as_ref().map(AsFd::as_fd));
        descriptors
    }

    /// Returns the link over rings to the worker with this process id. They exist from the start.
    pub(crate) fn into_rings(
        self,
        pid: Option<u32>,
        same_build: bool,
        has_arenas: bool,
    ) -> Connected {
        let (table, settings) = (self.table(), self.settings);
        let limit = message_limit(settings.message_limit);
        let end = Box::new(ring::HostEnd::new(&self.segment, settings.credit, limit));
        let reads_arguments = self.shared.is_some_and(|shared| shared.arguments.is_some());
        let results = self.arenas.map(|arenas| arenas.results).filter(|_| has_arenas);
        // Copies of the worker name memory of theirs, which its process has not.
        let pid = pid.filter(|_| settings.copies.is_none());
        if let (Some(results), Some(pid)) = (&results, pid) {
            results.set_worker(pid);
        }
        let connection = Connection::new(HostLink::Ring(end), table, same_build);
        let connection = connection.with_memory(results, reads_arguments, self.ringers);
        Connected { connection, receiver: None, initializing: None }
    }

    /// Returns the link that was opened in the handshake.
    pub(crate) fn into_connected(self, link: HostEnd, same_build: bool) -> Connected {
        let HostEnd { sender, receiver, end_mark } = link;
        let mut connection = Connection::new(HostLink::Connected(sender), self.table(), same_build);
        connection.end_mark = Some(end_mark);
        Connected { connection, receiver: Some(receiver), initializing: None }
    }

    fn table(&self) -> Arc<SlotTable> {
        Arc::new(SlotTable::new(Arc::clone(&self.segment), self.settings.credit))
    }
}
