//! What to do next: a pure state machine. Time is an argument; starting, signalling and waiting are somebody else's.
//!
//! The driver asks [`next`](Machine::next) until it says to wait, and reports what came of it. A job is in exactly one
//! place: waiting, or running on a slot, or over.
//!
//! - Jobs start in the order in which they came. One that finds no cores holds up those behind it, so it waits no longer
//!   than the jobs that ran when it was its turn, however wide it is.
//! - An attempt is over when its process was reaped; only then does its slot get free or the next attempt wait.
//! - Whatever is to be ended ends: each ladder ends in SIGKILL, and what survives that is waited for no longer.
//! - Each job that was supplied gets one verdict, also if the run ends before it starts.

mod canary;
mod exit;
mod settings;
mod stop;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;

use crate::event::Reason;
use crate::halt::Finished;
use crate::job::Job;
use crate::limit::Durations;
use crate::outcome::Ending;

use canary::Canaries;
pub(crate) use exit::Verdict;
pub(crate) use settings::Settings;
use stop::Ladder;

pub(crate) struct Machine {
    settings: Settings,
    course: Course,
    supply: SupplyState,
    waiting: VecDeque<Attempt>,
    slots: Vec<Option<Running>>,
    free: BTreeSet<usize>,
    timers: BTreeSet<(Monotonic, Timer)>,
    orders: VecDeque<Action>,
    canaries: Canaries,
    ladder: Ladder,
    durations: Durations,
    finished: Finished,
    /// Whether the next job may find cores; it may not again before another has ended.
    room: bool,
    not_before: Monotonic,
    next_number: u64,
    supplied: u64,
}

/// What the driver is to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Take a job from the source, and say what it answered.
    Pull,
    /// Start this on that slot, and say whether it started.
    Start(usize, Attempt),
    /// Send a signal to the group on a slot.
    Signal(usize, Signal),
    /// Tell the user.
    Tell(Notice),
    /// Wait no longer for what runs on a slot: it was killed some time ago, and lives.
    Abandon(usize),
    /// Tell that this will not be started any more.
    GiveUp(Verdict),
    /// Wait for something to happen, until this time at most.
    Wait(Option<Monotonic>),
    /// All is over.
    Finish,
}

/// What the user is told besides what happens to jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    Halting(Reason),
    Grace { running: usize, left: Duration },
    Signalled { running: usize, signal: &'static str },
    Tick,
}

/// One run of a job, to be started or running.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) number: u64,
    pub(crate) job: Arc<Job>,
    /// Which attempt of its job, from 1.
    pub(crate) nth: u32,
    /// How the attempt before it failed.
    pub(crate) before: Option<Ending>,
    /// Whether it tries out whether jobs can run at all.
    pub(crate) is_canary: bool,
}

#[derive(Debug)]
struct Running {
    attempt: Attempt,
    started: Monotonic,
    /// What it is allowed, if anything limits it.
    limit: Option<Duration>,
    /// The one timer that it has.
    timer: Option<Monotonic>,
    ending: Option<Cause>,
    is_killed: bool,
}

/// Why we end an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    TimedOut(Duration),
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Running,
    /// Nothing more is started.
    Draining,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SupplyState {
    Open,
    /// It will say when there is something.
    Later,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Slot(usize),
    Ladder,
    Tick,
}

impl Machine {
    pub(crate) fn new(settings: Settings, now: Monotonic) -> Self {
        let slots = settings.slots.get();
        let mut machine = Self {
            course: Course::Running,
            supply: SupplyState::Open,
            waiting: VecDeque::new(),
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).collect(),
            timers: BTreeSet::new(),
            orders: VecDeque::new(),
            canaries: Canaries::default(),
            ladder: Ladder::Idle,
            durations: Durations::new(),
            finished: Finished::default(),
            room: true,
            not_before: now,
            next_number: 1,
            supplied: 0,
            settings,
        };
        machine.arm_tick(now);
        machine
    }

    /// What to do now. To be asked again until it says to wait.
    pub(crate) fn next(&mut self, now: Monotonic) -> Action {
        self.fire_timers(now);
        if let Some(order) = self.orders.pop_front() {
            return order;
        }
        let idle = self.free.len() == self.slots.len();
        let mut wake = self.timers.first().map(|(time, _)| *time);
        if self.may_start() {
            if self.waiting.is_empty() {
                match self.supply {
                    SupplyState::Open => return Action::Pull,
                    SupplyState::Ended if idle => return Action::Finish,
                    SupplyState::Later | SupplyState::Ended => {}
                }
            } else if now >= self.not_before {
                return self.start_next();
            } else {
                wake = Some(wake.map_or(self.not_before, |time| time.min(self.not_before)));
            }
        } else if idle && self.course == Course::Draining {
            return match self.waiting.pop_front() {
                Some(attempt) => Action::GiveUp(Self::give_up(attempt)),
                None => Action::Finish,
            };
        }
        Action::Wait(wake)
    }

    /// The source has given a job. Answers its number.
    pub(crate) fn supplied(&mut self, job: Job) -> u64 {
        let number = job.number.unwrap_or(self.next_number);
        self.next_number = number.saturating_add(1);
        self.supplied += 1;
        let job = Arc::new(job);
        self.waiting.push_back(Attempt { number, job, nth: 1, before: None, is_canary: false });
        number
    }

    /// How many jobs are still to come, if that is known.
    pub(crate) fn note_remaining(&mut self, remaining: Option<u64>) {
        self.finished.total = remaining.map(|remaining| self.supplied.saturating_add(remaining));
    }

    /// The source has nothing yet.
    pub(crate) fn supply_later(&mut self) {
        self.supply = SupplyState::Later;
    }

    /// The source may have something again.
    pub(crate) fn supply_woken(&mut self) {
        if self.supply == SupplyState::Later {
            self.supply = SupplyState::Open;
        }
    }

    /// The source has no more.
    pub(crate) fn supply_ended(&mut self) {
        self.supply = SupplyState::Ended;
        self.note_remaining(Some(0));
    }

    /// There were no cores for what was to be started: it is the first to get those that come free.
    pub(crate) fn no_room(&mut self, slot: usize, attempt: Attempt) {
        self.free.insert(slot);
        if attempt.is_canary {
            self.canaries.put_back();
        } else {
            self.waiting.push_front(attempt);
        }
        self.room = false;
    }

    /// There may be cores again that somebody else had.
    pub(crate) fn cores_freed(&mut self) {
        self.room = true;
    }

    /// Nothing is to be started before this time; what was to be started goes back.
    pub(crate) fn hold(&mut self, slot: usize, attempt: Attempt, until: Monotonic) {
        self.no_room(slot, attempt);
        self.room = true;
        self.not_before = self.not_before.max(until);
    }

    /// What was to be started runs.
    pub(crate) fn started(&mut self, slot: usize, attempt: Attempt, now: Monotonic) {
        let limit = self.limit_of(&attempt);
        let mut running =
            Running { attempt, started: now, limit, timer: None, ending: None, is_killed: false };
        if let Some(limit) = limit {
            set_timer(&mut self.timers, slot, &mut running, Some(now.saturating_add(limit)));
        }
        self.slots[slot] = Some(running);
        self.not_before = self.not_before.max(now.saturating_add(self.settings.delay));
    }

    /// How many attempts run.
    pub(crate) fn running(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// No more is started; what runs may finish.
    pub(crate) fn drain(&mut self, reason: Reason) {
        if self.course == Course::Running {
            self.course = Course::Draining;
            self.orders.push_back(Action::Tell(Notice::Halting(reason)));
        }
    }

    /// Whether something may be started, if it is there and it is time.
    fn may_start(&self) -> bool {
        self.course == Course::Running
            && self.room
            && !self.free.is_empty()
            && !self.canaries.is_running()
    }

    fn start_next(&mut self) -> Action {
        let Some(attempt) = self.canary_for_next().or_else(|| self.waiting.pop_front()) else {
            return Action::Wait(None);
        };
        match self.free.pop_first() {
            Some(slot) => Action::Start(slot, attempt),
            None => Action::Wait(None),
        }
    }

    fn limit_of(&self, attempt: &Attempt) -> Option<Duration> {
        if attempt.is_canary {
            return Some(self.settings.canary_limit);
        }
        attempt
            .job
            .deadline
            .or_else(|| self.settings.limit.and_then(|limit| self.durations.limit(limit)))
    }

    fn fire_timers(&mut self, now: Monotonic) {
        while let Some((time, timer)) =
            self.timers.first().copied().filter(|(time, _)| *time <= now)
        {
            self.timers.remove(&(time, timer));
            match timer {
                Timer::Slot(slot) => self.slot_timer(slot, now),
                Timer::Ladder => self.ladder_timer(now),
                Timer::Tick => {
                    self.orders.push_back(Action::Tell(Notice::Tick));
                    self.arm_tick(now);
                }
            }
        }
    }

    fn arm_tick(&mut self, now: Monotonic) {
        if let Some(tick) = self.settings.tick {
            self.timers.insert((now.saturating_add(tick), Timer::Tick));
        }
    }
}

/// A running attempt has one timer at most.
fn set_timer(
    timers: &mut BTreeSet<(Monotonic, Timer)>,
    slot: usize,
    running: &mut Running,
    time: Option<Monotonic>,
) {
    if let Some(before) = running.timer {
        timers.remove(&(before, Timer::Slot(slot)));
    }
    if let Some(time) = time {
        timers.insert((time, Timer::Slot(slot)));
    }
    running.timer = time;
}
