//! What all threads of a pool share, and the calls that users' threads make.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::fork::Origin;
use brigade_sys::lifeline::Lifeline;
use brigade_wire::slots::{SlotState, SlotTable};
use brigade_wire::{TaskId, WorkerId};
use crossbeam_channel::{Receiver, Sender, unbounded};
use tracing::{Level, warn};

use super::afterwards::Afterwards;
use super::cleaner::{Cleaner, Job};
use super::collect::Collecting;
use super::console::Console;
use super::folders::Folders;
use super::foreign::{Foreign, ForeignQueue};
use super::outcome::Facts;
use super::post::{Life, Line, Post};
use super::reaper::Reaper;
use super::spawner::SpawnOrder;
use crate::awaited::Sleeper;
use crate::callbacks::Callbacks;
use crate::cell::TaskCell;
use crate::config::{CREDIT, Config, Link};
use crate::error::PoolError;
use crate::journal::Journal;
use crate::machine::{Event, Machine, Now, Outbox, Settings, TaskRef};

/// See the module's documentation.
pub(crate) struct Shared {
    pub(crate) config: Config,
    origin: Origin,
    core: Mutex<Core>,
    /// Submitters that found the queue full wait here.
    pub(super) room: Condvar,
    /// Callers of `warm_up` and `shutdown` wait here.
    pub(super) progress: Condvar,
    next_task: AtomicU64,
    spawn_orders: Mutex<Option<Sender<SpawnOrder>>>,
    pub(super) reaper: Reaper,
    pub(super) console: Console,
    pub(super) cleaner: Cleaner,
    pub(super) foreign: ForeignQueue,
    /// Processes that could not be killed.
    pub(super) left_behind: Mutex<Vec<u32>>,
    pub(super) folders: Folders,
    pub(crate) callbacks: Arc<Callbacks>,
    /// For answers through shared memory; without it links are ipc.
    pub(super) collecting: Option<Collecting>,
    /// By which workers end with this process; `None` where the system has none to give.
    pub(super) lifeline: Option<Lifeline>,
    /// The most workers; changed under the core's lock.
    pub(crate) target: AtomicUsize,
    /// Held while the number of workers is changed.
    pub(super) resizing: Mutex<()>,
    /// Cores that this process and its workers may use.
    pub(super) cores: usize,
}

/// What the core's lock guards.
pub(super) struct Core {
    pub(super) machine: Machine<Arc<TaskCell>>,
    pub(super) posts: Vec<Option<Post>>,
    /// Empty between calls, and kept so that handling an event allocates nothing.
    pub(super) outbox: Outbox<Arc<TaskCell>>,
    pub(super) journal: Option<Box<Journal>>,
    pub(super) answers: VecDeque<Event<Arc<TaskCell>>>,
    pub(super) head: Vec<u8>,
    pub(super) submitted: usize,
    pub(super) waiting_for_room: usize,
    /// Of those that wait for room the ones that handle answers meanwhile: see `submit`.
    pub(super) sleeping_for_room: Vec<Sleeper>,
    pub(super) waiting_for_progress: usize,
    /// Whether the worker that was sent the last task slept.
    pub(super) woke_worker: bool,
    /// See `collect`.
    pub(super) caller_listens: bool,
    pub(super) thread_is_quiet: bool,
    pub(super) waiting_callers: Vec<Thread>,
    pub(super) taken_by_callers: u64,
    pub(super) shutdown_began: Option<Instant>,
    pub(super) elapsed: Option<Duration>,
}

/// What the spawner and the cleaner are to do.
pub(super) type Work = (Receiver<SpawnOrder>, Receiver<Job>);

impl Shared {
    pub(super) fn new(config: Config) -> Result<(Arc<Self>, Work), PoolError> {
        let settings = Settings {
            workers: config.workers,
            min_workers: config.min_workers,
            idle_timeout: config.idle_timeout,
            max_tasks: config.max_tasks,
            max_age: config.max_age,
            quarantine: config.quarantine,
            queue_limit: config.queue_limit,
            credit: CREDIT,
            restart_limit: config.restart_limit,
            restart_window: config.restart_window,
            stop_grace: config.stop_grace,
        };
        let journal =
            config.journal.as_deref().map(|path| Journal::create(path, &settings)).transpose()?;
        let core = Core {
            machine: Machine::new(settings),
            journal: journal.map(Box::new),
            posts: std::iter::repeat_with(|| None).take(config.workers).collect(),
            outbox: Outbox::default(),
            answers: VecDeque::new(),
            head: Vec::new(),
            submitted: 0,
            waiting_for_room: 0,
            sleeping_for_room: Vec::new(),
            waiting_for_progress: 0,
            woke_worker: false,
            caller_listens: false,
            thread_is_quiet: false,
            waiting_callers: Vec::new(),
            taken_by_callers: 0,
            shutdown_began: None,
            elapsed: None,
        };
        let collecting = match config.link {
            Link::Ipc => None,
            Link::Auto | Link::Ring => {
                Some(Collecting::new().map_err(PoolError::system("make the pool's doorbell"))?)
            }
        };
        let (sender, receiver) = unbounded();
        let (cleaner, jobs) = Cleaner::new();
        let stdio = config.surroundings.stdio;
        let shared = Self {
            target: AtomicUsize::new(config.workers),
            resizing: Mutex::new(()),
            callbacks: Callbacks::new(config.name.clone()),
            config,
            origin: Origin::here(),
            core: Mutex::new(core),
            room: Condvar::new(),
            progress: Condvar::new(),
            next_task: AtomicU64::new(1),
            spawn_orders: Mutex::new(Some(sender)),
            reaper: Reaper::new().map_err(PoolError::system("make an event descriptor"))?,
            console: Console::new(stdio).map_err(PoolError::system("make an event descriptor"))?,
            cleaner,
            foreign: ForeignQueue::default(),
            left_behind: Mutex::default(),
            folders: Folders::default(),
            collecting,
            lifeline: Lifeline::new().ok(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        };
        Ok((Arc::new(shared), (receiver, jobs)))
    }

    /// Whether this process is a fork of the one that built the pool. Then nothing of the pool may be touched: its locks may
    /// have been held at the fork, its threads are not here, and its memory is shared with the other process's workers.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        !self.origin.is_here()
    }

    /// Only after `is_forked` was false.
    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under this lock is a defect of ours; going on beats hanging every caller.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an event to the machine and does what follows.
    pub(super) fn step(&self, event: Event<Arc<TaskCell>>, facts: Facts) {
        let mut after = Afterwards::default();
        self.lock().handle(now(), event, facts, self, &mut after);
        after.run(self);
    }

    /// The first of so many numbers for tasks, one after the other.
    pub(crate) fn next_task_ids(&self, count: u64) -> TaskId {
        TaskId::new(self.next_task.fetch_add(count, Ordering::Relaxed))
    }

    /// Takes a task back; true when it never ran and never will.
    pub(crate) fn cancel(&self, place: TaskRef, cell: &TaskCell) -> bool {
        if self.is_forked() {
            return false;
        }
        self.step(Event::Cancel(place), Facts::Nothing);
        cell.ended() == Some(true)
    }

    /// Ends a task, also while it runs; true when it is gone before it began, or its worker is killed now.
    pub(crate) fn kill(&self, place: TaskRef, cell: &TaskCell) -> bool {
        let mut after = Afterwards::default();
        let mut core = self.lock();
        // What has been answered is not killed.
        core.collect(self, &mut after);
        core.handle(now(), Event::Kill(place), Facts::Nothing, self, &mut after);
        let killed = core.machine.is_being_killed(place);
        drop(core);
        after.run(self);
        killed || cell.ended() == Some(true)
    }

    /// Whether a task that has no outcome yet has begun.
    pub(crate) fn state_of(&self, place: TaskRef, cell: &TaskCell) -> crate::TaskState {
        use crate::TaskState;
        let running = self.running_since(place).is_some();
        match (cell.ended(), running) {
            (Some(true), _) => TaskState::Cancelled,
            (Some(false), _) => TaskState::Done,
            (None, true) => TaskState::Running,
            (None, false) => TaskState::Queued,
        }
    }

    /// When a worker has begun a task that has no outcome yet.
    pub(crate) fn running_since(&self, place: TaskRef) -> Option<Monotonic> {
        let core = self.lock();
        let (worker, link_slot, _) = core.machine.assignment(place)?;
        match core.post(worker)?.line.as_ref()?.slots.state(link_slot) {
            SlotState::Running { since } => Some(since),
            SlotState::Free | SlotState::Queued | SlotState::Revoked => None,
        }
    }

    /// A worker says that the task that it runs has begun a section: the last one that it has begun, as answers may be under
    /// way to tasks before.
    pub(super) fn section_begun(&self, worker: WorkerId, due: Now) {
        let mut after = Afterwards::default();
        let mut core = self.lock();
        let slots = core.post(worker).and_then(|post| post.line.as_ref()).map(|line| &line.slots);
        let running = slots.and_then(|slots| {
            let occupants = core.machine.occupants(worker);
            let runs = |link_slot| matches!(slots.state(link_slot), SlotState::Running { .. });
            occupants.into_iter().rev().map(|(link_slot, ..)| link_slot).find(|slot| runs(*slot))
        });
        if let Some(link_slot) = running {
            let event = Event::SectionBegun { worker, link_slot, due };
            core.handle(now(), event, Facts::Nothing, self, &mut after);
        }
        drop(core);
        after.run(self);
    }

    pub(crate) fn worker_pids(&self) -> Vec<u32> {
        if self.is_forked() {
            return Vec::new();
        }
        let core = self.lock();
        let ready = core.posts.iter().flatten().filter(|post| post.line.is_some());
        ready.filter_map(|post| post.life.pid()).collect()
    }

    pub(crate) fn restarts(&self) -> u64 {
        if self.is_forked() {
            return 0;
        }
        self.lock().machine.counters().respawned
    }

    /// Lets the pool's threads end; there is nothing left for them.
    pub(super) fn release_threads(&self) {
        // Handles may outlive the pool, and its cores are free.
        if let Some(cores) = &self.config.cores {
            self.call(cores.keep(0, |_| false).into_iter().map(Foreign::Lease).collect());
        }
        self.spawn_orders.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.reaper.end();
        self.console.end();
        self.cleaner.end();
        self.callbacks.end();
        match &self.collecting {
            Some(collecting) => collecting.end(),
            None => self.foreign.end(),
        }
    }

    /// A worker can take tasks from the next event on.
    pub(super) fn open_line(&self, worker: WorkerId, line: Line) {
        if let Some(post) = self.lock().post_mut(worker) {
            post.line = Some(line);
        }
    }

    /// What is left of a worker: its process, and its table if it was ready.
    pub(super) fn post_of(&self, worker: WorkerId) -> Option<(Arc<Life>, Option<Arc<SlotTable>>)> {
        let core = self.lock();
        let post = core.post(worker)?;
        Some((Arc::clone(&post.life), post.line.as_ref().map(|line| Arc::clone(&line.slots))))
    }

    /// Lends the task that a worker has to answer next.
    pub(super) fn with_due<T>(
        &self,
        worker: WorkerId,
        with: impl FnOnce(Option<&Arc<TaskCell>>) -> T,
    ) -> T {
        with(self.lock().machine.due(worker))
    }

    /// What a worker wrote made no sense: it is killed, and what it says that it has begun is not believed.
    pub(super) fn misbehaved(&self, worker: WorkerId, problem: &str) {
        let problem = problem.to_owned();
        self.console.note(
            Level::WARN,
            move |pool| warn!(pool, %worker, problem, "worker broke the protocol"),
        );
        let mut after = Afterwards::default();
        let mut core = self.lock();
        if let Some(line) = core.post_mut(worker).and_then(|post| post.line.as_mut()) {
            line.broken = true;
        }
        core.handle(now(), Event::Misbehaved { worker }, Facts::Nothing, self, &mut after);
        drop(core);
        after.run(self);
    }

    /// The last event of a worker's process. The post goes in the same step: the slot may get its next process in it.
    pub(super) fn bury(&self, worker: WorkerId, event: Event<Arc<TaskCell>>, facts: Facts) {
        let mut after = Afterwards::default();
        let turn = self
            .config
            .cores
            .as_ref()
            .map(|_| self.resizing.lock().unwrap_or_else(PoisonError::into_inner));
        let mut core = self.lock();
        if core.post(worker).is_some() {
            core.posts[worker.slot as usize] = None;
        }
        core.handle(now(), event, facts, self, &mut after);
        // The same step may have started the slot's next process.
        let is_vacant = core.posts.get(worker.slot as usize).is_none_or(Option::is_none);
        let cores = self.config.cores.as_ref().filter(|_| is_vacant);
        let unneeded = cores.and_then(|cores| cores.release(worker.slot)).map(Foreign::Lease);
        drop(core);
        // Before the next turn of a resize, which may need them.
        self.call(unneeded.into_iter().collect());
        drop(turn);
        after.run(self);
    }

    pub(super) fn order_spawn(&self, worker: WorkerId, life: Arc<Life>) {
        let orders = self.spawn_orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(orders) = &*orders {
            // The spawner takes orders as long as this end exists.
            let _ = orders.send(SpawnOrder { worker, life });
        }
    }
}

impl Core {
    /// After each event: callers whose condition may hold now.
    pub(super) fn wake_waiters(&mut self, shared: &Shared) {
        if self.waiting_for_room > 0 && (self.machine.has_room() || !self.machine.is_open()) {
            shared.room.notify_all();
            for sleeper in self.sleeping_for_room.drain(..) {
                if sleeper.wake()
                    && let Some(collecting) = &shared.collecting
                {
                    collecting.doorbell.caller().wake();
                }
            }
        }
        if self.waiting_for_progress > 0 {
            shared.progress.notify_all();
        }
    }
}

/// The machine's clock.
pub(super) fn now() -> Now {
    clock::now().since_zero()
}
