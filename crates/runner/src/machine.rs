//! Decides what to do next: a pure state machine. Time is an argument; the driver starts, signals
//! and waits.
//!
//! The driver calls [`next`](Machine::next) until it returns [`Action::Wait`] or
//! [`Action::Finish`], and reports the results. A job is in exactly one state: waiting, running on
//! a slot, or over.
//!
//! - Jobs start in the order in which they were supplied. One that finds no cores holds up those
//!   behind it. So even a wide job waits no longer than the jobs that ran when its turn came.
//! - An attempt is over when its process has been reaped; only then does its slot become free or
//!   its next attempt start to wait.
//! - Ending a job takes a bounded time: each escalation ends in SIGKILL, and a process that
//!   survives it is abandoned.
//! - Each job that was supplied gets one verdict, even if the run ends before it starts.

mod canary;
mod exit;
mod settings;
mod stop;
mod suspend;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::process::Signal;
use brigade_time::{Escalation, Monotonic, TimerHeap, TimerKey};

use crate::event::{Need, Reason};
use crate::halt::Finished;
use crate::job::Job;
use crate::limit::Durations;
use crate::outcome::Ending;

use canary::Canaries;
pub(crate) use exit::Verdict;
pub(crate) use settings::Settings;
use stop::{EndAttempt, EndRun};

pub(crate) struct Machine {
    settings: Settings,
    phase: Phase,
    supply: SupplyState,
    waiting: VecDeque<Attempt>,
    slots: Vec<Option<Running>>,
    free: BTreeSet<usize>,
    timers: TimerHeap<Timer>,
    /// The escalation that ends the run; `None` until it is stopped.
    stopping: Option<Escalation<EndRun, 3>>,
    /// The timer of that escalation.
    stop_timer: Option<TimerKey>,
    actions: VecDeque<Action>,
    canaries: Canaries,
    durations: Durations,
    finished: Finished,
    /// `true` if the next job may find cores. After a failed attempt to start it, `false` until
    /// another job ends.
    has_room: bool,
    /// The need that was reported, if no job has started since then.
    reported: Option<Need>,
    not_before: Monotonic,
    next_number: u64,
    supplied: u64,
}

/// An action for the driver to carry out.
#[derive(Debug)]
pub(crate) enum Action {
    /// Take a job from the client, and report the answer.
    Pull,
    /// Start this attempt on this slot, and report whether it started.
    Start(usize, Attempt),
    /// Send a signal to the process group on a slot.
    Signal(usize, Signal),
    /// Emit an event.
    Notify(Notice),
    /// Emit the event of a pause, and report when the handler returns.
    Suspend,
    /// Stop waiting for the attempt on a slot: it has survived SIGKILL for some time.
    Abandon(usize),
    /// Report that this attempt will not start.
    GiveUp(Verdict),
    /// Wait until something happens, but no longer than until this time.
    Wait(Option<Monotonic>),
    /// Return: the run is over.
    Finish,
}

/// An event about the run as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    Halting(Reason),
    Grace { running: usize, left: Duration },
    Signalled { running: usize, signal: &'static str },
    Waiting(Need),
    Tick,
}

/// One run of a job, waiting or running.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) number: u64,
    pub(crate) job: Arc<Job>,
    /// Number of this attempt of its job, from 1.
    pub(crate) nth: u32,
    /// The failure of the previous attempt.
    pub(crate) previous: Option<Ending>,
    /// `true` if it only tests that jobs can run at all.
    pub(crate) is_canary: bool,
}

#[derive(Debug)]
struct Running {
    attempt: Attempt,
    started: Monotonic,
    /// Its time limit, if any.
    limit: Option<Duration>,
    /// Begins with its time limit, if it has one.
    escalation: Escalation<EndAttempt, 3>,
    /// The timer of the escalation, its only one.
    timer: Option<TimerKey>,
    ending: Option<Cause>,
}

/// The reason why we end an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    TimedOut(Duration),
    Stopped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// Nothing more starts.
    Draining,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SupplyState {
    Open,
    /// The client has no job yet, and will wake the runner.
    Later,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Slot(usize),
    Stop,
    Tick,
}

impl Machine {
    pub(crate) fn new(settings: Settings, now: Monotonic) -> Self {
        let slots = settings.slots.get();
        let mut machine = Self {
            phase: Phase::Running,
            supply: SupplyState::Open,
            waiting: VecDeque::new(),
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).collect(),
            timers: TimerHeap::new(),
            stopping: None,
            stop_timer: None,
            actions: VecDeque::new(),
            canaries: Canaries::default(),
            durations: Durations::new(),
            finished: Finished::default(),
            has_room: true,
            reported: None,
            not_before: now,
            next_number: 1,
            supplied: 0,
            settings,
        };
        machine.arm_tick(now);
        machine
    }

    /// Returns the next action. Call it again until it returns [`Action::Wait`].
    pub(crate) fn next(&mut self, now: Monotonic) -> Action {
        self.fire_timers(now);
        if let Some(action) = self.actions.pop_front() {
            return action;
        }
        let idle = self.free.len() == self.slots.len();
        let mut wake = self.timers.next_deadline();
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
        } else if self.phase == Phase::Draining {
            match self.waiting.pop_front() {
                // Now and not at the end: a running job may wait for one that will not start.
                Some(attempt) => return Action::GiveUp(Self::give_up(attempt)),
                None if idle => return Action::Finish,
                None => {}
            }
        }
        Action::Wait(wake)
    }

    /// Handles a job from the client. Returns its number.
    pub(crate) fn supplied(&mut self, job: Job) -> u64 {
        let number = job.number.unwrap_or(self.next_number);
        self.next_number = number.saturating_add(1);
        self.supplied += 1;
        let job = Arc::new(job);
        self.waiting.push_back(Attempt { number, job, nth: 1, previous: None, is_canary: false });
        number
    }

    /// Records the number of jobs still to come, if known.
    pub(crate) fn note_remaining(&mut self, remaining: Option<u64>) {
        self.finished.total = remaining.map(|remaining| self.supplied.saturating_add(remaining));
    }

    /// Handles an answer of the client: no job yet.
    pub(crate) fn supply_later(&mut self) {
        self.supply = SupplyState::Later;
    }

    /// Handles a wake-up: the client may have a job again.
    pub(crate) fn supply_woken(&mut self) {
        if self.supply == SupplyState::Later {
            self.supply = SupplyState::Open;
        }
    }

    /// Handles an answer of the client: no more jobs.
    pub(crate) fn supply_ended(&mut self) {
        self.supply = SupplyState::Ended;
        self.note_remaining(Some(0));
    }

    /// Puts back an attempt that found no cores: it is the first to get those that become free.
    pub(crate) fn no_cores(&mut self, slot: usize, attempt: Attempt) {
        self.no_room(slot, attempt);
        // Else the next job may wait for those of the running ones.
        if self.running() == 0 {
            self.report(Need::Cores);
        }
    }

    /// Puts back an attempt that lacks what running jobs have.
    pub(crate) fn no_room(&mut self, slot: usize, attempt: Attempt) {
        self.free.insert(slot);
        if attempt.is_canary {
            self.canaries.put_back();
        } else {
            self.waiting.push_front(attempt);
        }
        self.has_room = false;
    }

    /// Handles a wake-up: others may have returned cores.
    pub(crate) fn cores_freed(&mut self) {
        self.has_room = true;
    }

    /// Puts back an attempt that lacks something of the machine, and starts nothing before `until`.
    pub(crate) fn hold(&mut self, slot: usize, attempt: Attempt, until: Monotonic, need: Need) {
        self.no_room(slot, attempt);
        self.has_room = true;
        self.not_before = self.not_before.max(until);
        self.report(need);
    }

    /// Reports what is missing, once until a job starts.
    fn report(&mut self, need: Need) {
        if self.reported != Some(need) {
            self.reported = Some(need);
            self.actions.push_back(Action::Notify(Notice::Waiting(need)));
        }
    }

    /// Handles the start of an attempt.
    pub(crate) fn started(&mut self, slot: usize, attempt: Attempt, now: Monotonic) {
        let limit = self.limit_of(&attempt);
        let escalation = self.escalation_of_attempt(now, limit);
        let mut running =
            Running { attempt, started: now, limit, escalation, timer: None, ending: None };
        running.update_timer(&mut self.timers, slot);
        self.slots[slot] = Some(running);
        self.reported = None;
        self.not_before = self.not_before.max(now.saturating_add(self.settings.delay));
    }

    /// Returns the number of running attempts.
    pub(crate) fn running(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Starts no more jobs; running ones may finish.
    pub(crate) fn drain(&mut self, reason: Reason) {
        if self.phase == Phase::Running {
            self.phase = Phase::Draining;
            self.actions.push_back(Action::Notify(Notice::Halting(reason)));
        }
    }

    /// Returns `true` if a waiting job may start now, apart from the delay between starts.
    fn may_start(&self) -> bool {
        self.phase == Phase::Running
            && self.has_room
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
        if self.settings.is_remote {
            return None;
        }
        if attempt.is_canary {
            return Some(self.settings.canary_limit);
        }
        attempt
            .job
            .deadline
            .or_else(|| self.settings.limit.and_then(|limit| self.durations.limit(limit)))
    }

    fn fire_timers(&mut self, now: Monotonic) {
        while let Some(fired) = self.timers.expire(now) {
            match fired.value {
                Timer::Slot(slot) => self.slot_timer(slot, now),
                Timer::Stop => self.stop_timer(now),
                Timer::Tick => {
                    self.actions.push_back(Action::Notify(Notice::Tick));
                    self.arm_tick(now);
                }
            }
        }
    }

    fn arm_tick(&mut self, now: Monotonic) {
        if let Some(tick) = self.settings.tick {
            self.timers.arm(now.saturating_add(tick), Timer::Tick);
        }
    }
}
