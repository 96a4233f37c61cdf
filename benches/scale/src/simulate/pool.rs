//! A model of one pool: threads that submit tasks and then collect outcomes, one lock, and workers
//! with a ring each.
//!
//! It follows the pool where that decides about scale. Submitters look for outcomes once per
//! [`COLLECT_EVERY`] tasks. When all is submitted, one caller at a time listens: it looks, sends
//! what waits in the queue, and sleeps until a worker announces outcomes. Links hold as many frames
//! as in `prefetch` of the scheduler, and short tasks are packed as in `packing`. A lock that is
//! free is taken by whoever comes first, so a thread that comes back at once keeps it, but not for
//! long ([`MAX_PASSED`]).
//!
//! The collector thread looks while all callers take outcomes that they have.
//!
//! Left out: stealing at the end, deadlines, payloads, and preemption of the holder of the lock.
//! Tasks belong to the callers in turn.

use std::collections::VecDeque;

use super::clock::Clock;
use super::costs::Costs;
use crate::rate::count;

/// The way in which the host finds workers with news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Look {
    /// Looks at the ring of each worker.
    Slots,
    /// Looks at a word for 64 workers, in which workers with news set a bit.
    Words,
}

/// One run of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) cores: u32,
    pub(crate) workers: u32,
    pub(crate) submitters: u32,
    /// The time of a task, in nanoseconds.
    pub(crate) grain: f64,
    /// Tasks that are submitted under one lock.
    pub(crate) batch: u32,
    pub(crate) look: Look,
    pub(crate) most_tasks: u32,
    pub(crate) seed: u64,
}

/// Rate, share and limit of a run of the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prediction {
    pub(crate) per_second: f64,
    /// The share of the time of the workers' cores in which tasks ran.
    pub(crate) share: f64,
    pub(crate) limit: Limit,
}

/// The first part of a pool that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The cores: tasks, what workers do besides, and threads of the host on the same cores.
    Cores,
    /// The lock, which two threads or more want all the time.
    Lock,
    /// Waking workers that have gone to sleep takes the host most of its time.
    WakeUps,
    /// Workers wait while threads still submit.
    Submitter,
    /// Workers wait although everything is submitted.
    Collector,
}

/// Runs the model.
pub(crate) fn simulate(setting: Setting, costs: &Costs) -> Prediction {
    let mut pool = Pool::new(setting, costs);
    for host in 0..pool.collector() {
        pool.go_on(host);
    }
    while let Some((passed, event)) = pool.clock.next() {
        pool.account(passed);
        match event {
            Event::Host(host, turn) if pool.hosts[host].turn == turn => pool.host(host),
            Event::Worker(worker, turn) if pool.workers[worker].turn == turn => pool.worker(worker),
            Event::Free(turn) if pool.lock.turn == turn => pool.take_turn(),
            Event::Host(..) | Event::Worker(..) | Event::Free(_) => {}
        }
        if pool.callers().iter().all(|host| host.state == State::Done) {
            break;
        }
    }
    pool.prediction()
}

/// Something that happens. One whose turn is over was planned before its owner changed its mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Host(usize, u32),
    Worker(usize, u32),
    /// A thread that waits has noticed that the lock is free.
    Free(u32),
}

struct Pool<'a> {
    setting: Setting,
    costs: &'a Costs,
    clock: Clock<Event>,
    lock: Lock,
    /// The threads that submit, and the collector thread as the last one.
    hosts: Vec<Host>,
    workers: Vec<Worker>,
    /// Tasks that no worker has.
    queue: u32,
    /// Workers without a task; the one that was used last is the next.
    idle: Vec<usize>,
    /// The worker that was sent the last task.
    current: usize,
    submitted: u32,
    listener: Option<usize>,
    /// The thread to which the next outcome belongs.
    owner: usize,
    random: u64,
    /// Frames of a worker, and the most while many tasks wait.
    depth: u32,
    deepest: u32,
    totals: Totals,
}

#[derive(Debug, Default)]
struct Totals {
    tasks: u32,
    /// Time of tasks, without what workers do besides.
    ran: f64,
    idle_workers: f64,
    /// Time of workers without a task, while threads submit, and after it.
    idle: [f64; 2],
    /// Time in which the lock was held or wanted, and in which a thread waited for it.
    locked: f64,
    contended: f64,
    /// Work of the host to wake workers.
    waking: f64,
}

#[derive(Debug, Default)]
struct Lock {
    holder: Option<usize>,
    last: usize,
    waiting: VecDeque<usize>,
    /// Times that others were faster than the thread that waits longest.
    passed: u32,
    turn: u32,
}

#[derive(Debug, Clone, Copy)]
struct Host {
    state: State,
    turn: u32,
    /// Tasks to submit, tasks without outcome, and outcomes to take.
    left: u32,
    pending: u32,
    ready: u32,
    /// Work for wake-ups that follows.
    owes: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Prepare,
    /// Waits for the lock, and looks at it.
    Lock,
    LockAsleep,
    Submit(u32),
    /// Collects the outcomes of workers from this one on, of which it has this number so far.
    Collect {
        from: usize,
        of_next: u32,
        found: u32,
    },
    Take,
    Spin,
    Sleep,
    WakeUp,
    Done,
}

#[derive(Debug, Default)]
struct Worker {
    state: Work,
    turn: u32,
    /// Frames that it has not begun.
    ring: u32,
    /// Frames that it was sent, whose outcomes are not collected.
    load: u32,
    outcomes: u32,
    /// The time of the first outcome that was not announced.
    silent_since: Option<f64>,
    task: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Work {
    Run,
    Spin,
    WakeUp,
    #[default]
    Sleep,
}

/// Constants of the pool, in nanoseconds: see `docs/tuning.md`.
const COLLECT_EVERY: u32 = 32;
const PREFETCHED_WORK: f64 = 500_000.0;
const CREDIT: u32 = 1_024;
const MAX_DEEPER: u32 = 8;
const FEW: u32 = 2;
const SHORT: f64 = 2_000.0;
const SPIN: f64 = 50_000.0;
const WAKE_UP: f64 = 60_000.0;
const DELAY: f64 = 3_000_000.0;
const DONE_PER_LEFT: f64 = 3.0;
const LONG_PATIENCE: f64 = 4_000_000.0;

/// The time of as many looks at a lock that is held, before the thread sleeps. Assumed.
const LOOKS: f64 = 2_000.0;

/// A thread that waits for a lock that is free time and again gets it after this many times.
/// Assumed.
const MAX_PASSED: u32 = 8;

/// Simulated time of a run, if it has at least the fewest tasks, and at most those of the setting.
const RUN: f64 = 60_000_000.0;
const FEWEST: u32 = 20_000;

/// Tasks take up to this much more or less than usual, so that nothing runs in lockstep.
const JITTER: f64 = 0.05;

impl<'a> Pool<'a> {
    fn new(setting: Setting, costs: &'a Costs) -> Self {
        let one = setting.grain + costs.worker;
        let ideal = f64::from(setting.workers.min(setting.cores)) * RUN / one;
        let each = count(ideal).clamp(FEWEST, setting.most_tasks) / setting.submitters;
        let depth = count(PREFETCHED_WORK / setting.grain.max(1.0)).clamp(2, CREDIT);
        let deepest = if depth > FEW { (MAX_DEEPER * depth).min(CREDIT) } else { depth };
        let caller =
            Host { state: State::Sleep, turn: 0, left: each, pending: each, ready: 0, owes: 0.0 };
        let collector = Host { left: 0, pending: 0, ..caller };
        let callers = (0..setting.submitters).map(|_| caller);
        Self {
            setting,
            costs,
            clock: Clock::new(setting.cores, setting.submitters),
            lock: Lock::default(),
            hosts: callers.chain([collector]).collect(),
            workers: (0..setting.workers).map(|_| Worker::default()).collect(),
            queue: 0,
            idle: (0..setting.workers as usize).rev().collect(),
            current: 0,
            submitted: 0,
            listener: None,
            owner: 0,
            random: setting.seed,
            depth,
            deepest,
            totals: Totals {
                tasks: each * setting.submitters,
                idle_workers: setting.workers.into(),
                ..Totals::default()
            },
        }
    }

    /// Returns the index of the collector thread.
    fn collector(&self) -> usize {
        self.hosts.len() - 1
    }

    fn callers(&self) -> &[Host] {
        &self.hosts[..self.collector()]
    }

    /// Returns `true` while a thread submits, which looks for outcomes by and by.
    fn is_submitting(&self) -> bool {
        self.callers().iter().any(|host| host.left > 0)
    }

    fn account(&mut self, passed: f64) {
        let submits = self.is_submitting();
        self.totals.idle[usize::from(!submits)] += passed * self.totals.idle_workers;
        let waits = !self.lock.waiting.is_empty();
        if waits || self.lock.holder.is_some() {
            self.totals.locked += passed;
        }
        if waits {
            self.totals.contended += passed;
        }
    }

    fn prediction(&self) -> Prediction {
        let Totals { tasks, ran, idle, locked, contended, waking, .. } = self.totals;
        let time = self.clock.time;
        let room = time * f64::from(self.setting.workers.min(self.setting.cores));
        let share = ran / room;
        let of_workers = time * f64::from(self.setting.workers);
        let limit = if (idle[0] + idle[1]) / of_workers < (1.0 - share) / 2.0 {
            Limit::Cores
        } else if waking / time > 0.5 {
            Limit::WakeUps
        } else if locked / time > 0.9 && contended / time > 0.5 {
            Limit::Lock
        } else if idle[0] > idle[1] {
            Limit::Submitter
        } else {
            Limit::Collector
        };
        Prediction { per_second: f64::from(tasks) / time * 1e9, share, limit }
    }

    /// Returns `true` if there is a core for each busy worker and one more thread.
    fn may_spin(&self) -> bool {
        let busy = self.workers.iter().filter(|worker| worker.load > 0).count();
        busy < self.setting.cores as usize
    }

    /// Returns a number from 0 to 1, by splitmix64.
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let half = u32::try_from((bits ^ (bits >> 31)) >> 32).unwrap_or_default();
        f64::from(half) / f64::from(u32::MAX)
    }
}

mod host;
mod worker;
