//! The state shared by a pool's threads, and the functions that callers use.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brigade_base::Inventory;
use brigade_scheduler::journal::Journal;
use brigade_scheduler::{Event, Outbox, Scheduler, TaskRef, WorkerStatus};
use brigade_supervisor::{Jobs, Orders, Supervisor};
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::fork::Origin;
use brigade_sys::sync::{Condvar, Mutex, MutexGuard};
use brigade_wire::ring::Watch;
use brigade_wire::{TaskId, WorkerId};
use tracing::Level;

use super::collect::collecting::Collecting;
use super::collect::glances::woken::WokenFutures;
use super::collect::listeners::Listeners;
use super::deferred::Deferred;
use super::observer::{Observer, Observers};
use super::outcome::EventData;
use super::send::room::{Blocked, Line};
use super::starts::worker_slot::WorkerSlot;
use super::user_code::queue::{UserCode, UserCodeQueue};
use crate::cell::{Facts, TaskCell};
use crate::config::Config;
use crate::error::PoolError;
use crate::payload::Value;
use crate::task_span::TaskSpan;
use brigade_task::backend::{Callbacks, Sleeper};

/// The state shared by a pool's threads.
pub(crate) struct Shared {
    pub(crate) config: Config,
    origin: Origin,
    core: Mutex<Core>,
    /// Notified when the queue has room, for submitters that found it full; see `room`.
    pub(super) room: Condvar,
    /// Notified on progress, for callers of `warm_up` and `shutdown`.
    pub(super) progress: Condvar,
    next_task: AtomicU64,
    pub(super) supervisor: Supervisor,
    pub(super) user_code: UserCodeQueue,
    /// Futures that were woken.
    pub(crate) woken: WokenFutures,
    /// Process ids of workers that could not be killed.
    pub(super) left_behind: Mutex<Vec<u32>>,
    pub(crate) callbacks: Arc<Callbacks<Value>>,
    /// Set if workers write outcomes to rings in shared memory; otherwise each worker's attendant
    /// reads its link.
    pub(super) collecting: Option<Collecting>,
    /// Maximum number of workers; changed under the core's lock.
    pub(crate) target: AtomicUsize,
    /// Held while the number of workers is changed.
    pub(super) resizing: Mutex<()>,
    /// Number of cores that this process and its workers may use.
    pub(super) cores: usize,
    /// The number of the pool in this process, once it has one.
    #[cfg(feature = "recording")]
    pub(super) number: std::sync::OnceLock<u64>,
}

/// The state behind the core's lock.
pub(super) struct Core {
    pub(super) scheduler: Scheduler<TaskCell>,
    pub(super) worker_slots: Vec<Option<WorkerSlot>>,
    /// The rings of the workers in `worker_slots`, for callers that spin.
    pub(super) watched: Arc<[Watch]>,
    /// The time at which the reaper wakes up for the scheduler, or has woken up.
    pub(super) next_tick: Option<Monotonic>,
    /// Empty between calls; kept so that handling an event allocates nothing.
    pub(super) outbox: Outbox<TaskCell>,
    pub(super) journal: Option<Box<Journal>>,
    pub(super) replies: VecDeque<Event<TaskCell>>,
    pub(super) head: Vec<u8>,
    pub(super) message_limit: usize,
    pub(super) resources: Inventory,
    /// Workers are in a sandbox, and not to be trusted.
    pub(super) distrusts: bool,
    /// A task had a limit on memory or processor time.
    pub(super) has_limits: bool,
    pub(super) submitted: usize,
    /// Threads that wait for room; see `room`.
    pub(super) blocked: Blocked,
    /// Threads that wait for room while they collect outcomes; see `submit`.
    pub(super) sleeping_for_room: Vec<Sleeper>,
    /// Futures that wait for room; see `room`.
    pub(super) line_for_room: Line,
    pub(super) waiting_for_progress: usize,
    /// `true` if the worker that was sent the last task was asleep.
    pub(super) woke_worker: bool,
    pub(super) observers: Observers,
    /// See `collect`.
    pub(super) listeners: Listeners,
    pub(super) shutdown_began: Option<Instant>,
    pub(super) elapsed: Option<Duration>,
}

/// Orders of the spawner and jobs of the cleaner.
pub(super) type Work = (Orders, Jobs);

impl Shared {
    pub(super) fn new(config: Config) -> Result<(Arc<Self>, Work), PoolError> {
        let workers = config.scheduler.workers;
        let slots = workers + config.scheduler.spare_workers;
        let journal = config.create_journal()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let core = Core {
            scheduler: Scheduler::new(config.scheduler.clone(), TaskCell::split_off),
            journal: journal.map(Box::new),
            worker_slots: std::iter::repeat_with(|| None).take(slots).collect(),
            watched: Arc::new([]),
            next_tick: None,
            outbox: Outbox::default(),
            replies: VecDeque::new(),
            head: Vec::new(),
            message_limit: config.supervisor.message_limit,
            resources: config.resources.clone(),
            distrusts: config.is_sandboxed(),
            has_limits: false,
            submitted: 0,
            blocked: Blocked::default(),
            sleeping_for_room: Vec::new(),
            line_for_room: Line::default(),
            waiting_for_progress: 0,
            woke_worker: false,
            observers: Observers::new(&config)?,
            listeners: Listeners::new(cores),
            shutdown_began: None,
            elapsed: None,
        };
        let collecting = if config.supervisor.has_rings() {
            let budget = (!config.is_sandboxed()).then(|| config.buffer_terms().budget);
            let collecting = Collecting::new(budget, cores);
            Some(collecting.map_err(PoolError::system("make the pool's doorbell"))?)
        } else {
            None
        };
        let (supervisor, orders, jobs) = Supervisor::new(config.supervisor.env.stdio)
            .map_err(PoolError::system("make its event and epoll descriptors"))?;
        let shared = Self {
            target: AtomicUsize::new(workers),
            resizing: Mutex::new(()),
            callbacks: Callbacks::new(config.supervisor.pool.clone()),
            config,
            origin: Origin::here(),
            core: Mutex::new(core),
            room: Condvar::new(),
            progress: Condvar::new(),
            next_task: AtomicU64::new(1),
            supervisor,
            user_code: UserCodeQueue::default(),
            woken: WokenFutures::default(),
            left_behind: Mutex::default(),
            collecting,
            cores,
            #[cfg(feature = "recording")]
            number: std::sync::OnceLock::new(),
        };
        Ok((Arc::new(shared), (orders, jobs)))
    }

    /// Returns `true` if this process is a fork of the one that built the pool. Nothing of the pool
    /// may be used then: its locks may have been held at the fork, its threads do not exist here,
    /// and its memory is shared with the workers of the other process.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        !self.origin.is_here()
    }

    /// Returns `true` if workers are started by another command, and may be another program.
    #[inline]
    pub(crate) fn runs_other_command(&self) -> bool {
        self.config.supervisor.command.is_some()
    }

    /// Locks the core. Call it only after `is_forked` has returned `false`.
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under this lock is a bug of the pool, but going on is better than blocking every
        // caller.
        self.core.lock()
    }

    /// Passes an event to the scheduler and carries out its actions.
    pub(super) fn step(&self, event: Event<TaskCell>, data: EventData) {
        self.with_core(|core, deferred| core.handle(now(), event, data, self, deferred));
    }

    /// Locks the core for `act`, and runs what that defers after the lock is released.
    pub(super) fn with_core<T>(&self, act: impl FnOnce(&mut Core, &mut Deferred) -> T) -> T {
        let mut deferred = Deferred::default();
        let result = act(&mut self.lock(), &mut deferred);
        deferred.run(self);
        result
    }

    /// Reserves `count` consecutive task ids and returns the first.
    pub(crate) fn next_task_ids(&self, count: u64) -> TaskId {
        TaskId::new(self.next_task.fetch_add(count, Ordering::Relaxed))
    }

    /// Cancels a task that has not started, or the items of a chunk that have not.
    pub(crate) fn cancel(&self, cell: &Facts) {
        self.with_core(|core, deferred| {
            // The key of a chunk that was just divided from another is set under the lock.
            if let Some(task) = cell.task_ref() {
                core.handle(now(), Event::Cancel(task), EventData::Nothing, self, deferred);
            }
        });
    }

    /// Ends a task even if it is running. Returns `true` if its worker is being killed.
    pub(crate) fn kill(&self, task: TaskRef) -> bool {
        self.with_core(|core, deferred| {
            // A task whose outcome has arrived must not be killed.
            core.collect(None, self, deferred);
            core.handle(now(), Event::Kill(task), EventData::Nothing, self, deferred);
            core.scheduler.is_being_killed(task)
        })
    }

    /// Returns the time at which a worker started the task, or `None` if it is not running.
    pub(crate) fn running_since(&self, task: TaskRef) -> Option<Monotonic> {
        let core = self.lock();
        let (worker, ring_index, _) = core.scheduler.assignment(task)?;
        core.connection(worker)?.table.running_since(ring_index)
    }

    /// Queues an event if any subscriber may want its level.
    pub(crate) fn note(&self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        self.supervisor.output.note(level, emit);
    }

    /// Opens the span of a task that the current thread is going to submit, if anybody is
    /// interested. `items` is the number of items of a chunk.
    #[inline]
    pub(crate) fn open_span(
        &self,
        task: TaskId,
        label: Option<&Arc<str>>,
        items: Option<u32>,
    ) -> Option<Box<TaskSpan>> {
        if self.wants_spans() { self.open_wanted_span(task, label, items) } else { None }
    }

    /// Returns `true` if somebody may be interested in spans of tasks.
    #[inline]
    pub(crate) fn wants_spans(&self) -> bool {
        TaskSpan::is_wanted(self.config.trace_context.as_ref())
    }

    #[cold]
    fn open_wanted_span(
        &self,
        task: TaskId,
        label: Option<&Arc<str>>,
        items: Option<u32>,
    ) -> Option<Box<TaskSpan>> {
        let (pool, context) = (&self.config.supervisor.pool, self.config.trace_context.as_ref());
        let span = TaskSpan::open(pool, context, task, label.map(AsRef::as_ref), items)?;
        // Spans are not lost. So that they do not pile up, callers that submit more than the output
        // thread can close help it.
        self.supervisor.output.help(pool);
        Some(span)
    }

    /// Closes the span of a task that has its outcome.
    pub(super) fn close_span(&self, span: TaskSpan) {
        let pool = &self.config.supervisor.pool;
        self.supervisor.output.keep(pool, Box::new(move |_| span.close()));
    }

    /// Wakes the caller that sleeps at the doorbell.
    pub(crate) fn ring_caller(&self) {
        if let Some(collecting) = &self.collecting {
            collecting.doorbell.caller().wake();
        }
    }

    pub(crate) fn worker_pids(&self) -> Vec<u32> {
        if self.is_forked() {
            return Vec::new();
        }
        let core = self.lock();
        // A worker gets its connection before the scheduler knows that it is ready.
        let is_ready = |status| !matches!(status, WorkerStatus::Vacant | WorkerStatus::Starting);
        let ready = core.scheduler.workers().filter(|(_, status)| is_ready(*status));
        ready.filter_map(|(worker, _)| core.worker_slot(worker)?.process.pid()).collect()
    }

    pub(crate) fn restarts(&self) -> u64 {
        if self.is_forked() {
            return 0;
        }
        self.lock().scheduler.counters().respawned
    }

    /// Ends the pool's threads, which have nothing left to do.
    pub(super) fn release_threads(&self) {
        // Handles may outlive the pool, but its cores must not stay reserved.
        if let Some(cores) = &self.config.cores {
            self.call(cores.keep(0, |_| false).into_iter().map(UserCode::Lease).collect());
        }
        self.supervisor.end();
        self.lock().observers.pool_ended();
        self.callbacks.end();
        match &self.collecting {
            Some(collecting) => collecting.end(),
            None => self.user_code.end(),
        }
    }

    /// Passes the task whose outcome a worker has to send next to `with`.
    pub(super) fn with_due<T>(
        &self,
        worker: WorkerId,
        with: impl FnOnce(Option<&TaskCell>) -> T,
    ) -> T {
        with(self.lock().scheduler.due(worker))
    }

    /// Breaks the pool because one of its threads cannot do its work anymore, so that nobody waits
    /// for something that will not happen. Its workers are killed, so that all tasks get outcomes.
    pub(super) fn give_up(&self, part: &str, problem: &dyn fmt::Display) {
        let reason = format!("cannot {part}: {problem}");
        self.step(Event::Break { reason: reason.into() }, EventData::Nothing);
        let workers: Vec<WorkerId> =
            self.lock().worker_slots.iter().flatten().map(|slot| slot.id).collect();
        for worker in workers {
            self.step(Event::Misbehaved { worker }, EventData::Nothing);
        }
    }
}

impl Core {
    /// Wakes callers whose condition may have become true; called after each event.
    #[inline]
    pub(super) fn wake_waiters(&mut self, shared: &Shared, deferred: &mut Deferred) {
        if self.is_room_awaited() {
            self.wake_for_room(shared, deferred);
        }
        if self.waiting_for_progress > 0 {
            shared.progress.notify_all();
        }
    }
}
