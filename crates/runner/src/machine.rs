//! Decides what to do next: a pure state machine. Time is an argument; the driver starts, signals
//! and waits.
//!
//! The driver reports each [`Event`] to [`handle`](Machine::handle), carries out the actions in
//! order, and waits until [`next_deadline`](Machine::next_deadline) when there are none. A job is
//! in exactly one state: waiting, in the pause before its next attempt, running on a slot, or over.
//!
//! - Jobs start in the order in which they were supplied. One that finds no cores holds up those
//!   behind it. So even a wide job waits no longer than the jobs that ran when its turn came.
//! - An attempt is over when its process has been reaped; only then does its slot become free or
//!   its next attempt start to wait.
//! - Ending a job takes a bounded time: each escalation ends in SIGKILL, and a process that
//!   survives it is abandoned.
//! - Each job that was supplied gets one verdict, even if the run ends before it starts.

mod canary;
mod event;
mod exit;
mod settings;
mod stop;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use brigade_base::{Escalation, Monotonic, TimerHeap, TimerKey};
use brigade_sys::process::Signal;

use crate::event::{Event as Notice, Need, Reason};
use crate::halt::Finished;
use crate::job::Job;
use crate::limit::Durations;
use crate::outcome::{Ending, Outcome};

pub(crate) use event::{Action, Event};
pub(crate) use exit::Verdict;
pub(crate) use settings::Settings;
use stop::{EndAttempt, EndRun};

pub(crate) struct Machine {
    settings: Settings,
    /// The time of the event that is being handled.
    now: Monotonic,
    /// While an event is handled: the actions to carry out, behind those that were not carried out.
    actions: Vec<Action>,
    /// `true` if nothing more starts.
    is_draining: bool,
    supply: SupplyState,
    waiting: VecDeque<Attempt>,
    /// Attempts in the pause after the one before, by its end and the number of the job.
    paused: BTreeMap<(Monotonic, u64), Attempt>,
    slots: Vec<Option<Running>>,
    free: BTreeSet<usize>,
    timers: TimerHeap<Timer>,
    /// The escalation that ends the run; `None` until it is stopped.
    stopping: Option<Escalation<EndRun, 3>>,
    /// The timer of that escalation.
    stop_timer: Option<TimerKey>,
    /// The preludes with which a canary has passed.
    passed: HashSet<Option<String>>,
    is_canary_running: bool,
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

impl Attempt {
    /// Returns its outcome, of which nothing is known yet.
    pub(crate) fn outcome(&self) -> Outcome {
        Outcome::not_started(self.number, Arc::clone(&self.job))
    }

    /// Returns the event of its start: on a slot, and at a time since the start of the run.
    pub(crate) fn started(
        &self,
        slot: usize,
        host: Option<Arc<str>>,
        (pid, cores): (u32, Vec<u32>),
        at: Duration,
    ) -> Notice {
        let (number, job, attempt) = (self.number, Arc::clone(&self.job), self.nth);
        Notice::Started { number, job, attempt, slot: slot + 1, host, pid, cores, at }
    }
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
    ending: Option<EndCause>,
}

/// The reason why we end an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndCause {
    TimedOut(Duration),
    Stopped,
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
            is_draining: false,
            supply: SupplyState::Open,
            waiting: VecDeque::new(),
            paused: BTreeMap::new(),
            slots: (0..slots).map(|_| None).collect(),
            free: (0..slots).collect(),
            timers: TimerHeap::new(),
            stopping: None,
            stop_timer: None,
            passed: HashSet::new(),
            is_canary_running: false,
            durations: Durations::new(),
            finished: Finished::default(),
            has_room: true,
            reported: None,
            now,
            actions: Vec::new(),
            not_before: now,
            next_number: 1,
            supplied: 0,
            settings,
        };
        machine.arm_tick();
        machine
    }

    /// Handles an event, and appends the actions to carry out.
    pub(crate) fn handle(&mut self, now: Monotonic, event: Event, out: &mut Vec<Action>) {
        self.now = now;
        mem::swap(&mut self.actions, out);
        match event {
            Event::Ready => self.proceed(),
            Event::Supplied { job, remaining } => self.supplied(*job, remaining),
            Event::SupplyLater => self.supply = SupplyState::Later,
            Event::SupplyEnded => {
                self.supply = SupplyState::Ended;
                self.note_remaining(Some(0));
            }
            Event::SupplyWoken => self.supply_woken(),
            Event::CoresFreed => self.has_room = true,
            Event::Started(slot, attempt) => self.started(slot, attempt),
            Event::StartFailed(slot, attempt, failure) => {
                self.start_failed(slot, attempt, failure);
            }
            Event::NoCores(slot, attempt) => {
                self.put_back(slot, attempt);
                // Else the next job may wait for those of the running ones.
                if self.running() == 0 {
                    self.report(Need::Cores);
                }
            }
            Event::NoRoom(slot, attempt) => self.put_back(slot, attempt),
            Event::Lacking { slot, attempt, need, until } => {
                self.put_back(slot, attempt);
                self.has_room = true;
                self.not_before = self.not_before.max(until);
                self.report(need);
            }
            Event::Ended(slot, ending) => self.ended(slot, ending),
            Event::Reported { slot, ending, wall } => self.reported(slot, ending, wall),
            Event::Withdrawn(slot) => self.withdrawn(slot),
            Event::InputFailed(number) => self.input_failed(number),
            Event::Stop => self.stop(),
            Event::Suspend => self.suspend(),
            Event::Resumed => self.signal_all(Signal::Continue),
            Event::Drain(reason) => self.drain(reason),
        }
        mem::swap(&mut self.actions, out);
    }

    /// Returns the time at which the machine needs `Ready` at the latest.
    pub(crate) fn next_deadline(&self) -> Option<Monotonic> {
        let is_delayed = self.may_start() && !self.waiting.is_empty();
        let start = is_delayed.then_some(self.not_before);
        let retry = self.paused.first_key_value().map(|((due, _), _)| *due);
        self.timers.next_deadline().into_iter().chain(start).chain(retry).min()
    }

    /// Carries on with the run: timers first, then the next job.
    fn proceed(&mut self) {
        self.fire_timers();
        if !self.actions.is_empty() {
            return;
        }
        self.end_pauses();
        let is_idle = self.running() == 0;
        if self.may_start() {
            match (self.waiting.is_empty(), self.supply) {
                (true, SupplyState::Open) => self.actions.push(Action::Pull),
                (true, SupplyState::Ended) if is_idle && self.paused.is_empty() => {
                    self.actions.push(Action::Finish);
                }
                (false, _) if self.now >= self.not_before => self.start_next(),
                // A job arrives or ends first, or the delay between two starts.
                _ => {}
            }
        } else if self.is_draining {
            // Now and not at the end: a running job may wait for one that will not start.
            let paused = mem::take(&mut self.paused).into_values();
            let attempts: Vec<Attempt> = self.waiting.drain(..).chain(paused).collect();
            for attempt in attempts {
                self.give_up(attempt);
            }
            if self.actions.is_empty() && is_idle {
                self.actions.push(Action::Finish);
            }
        }
    }

    /// Lets the attempts whose pause is over wait for a slot. They go to the back of the queue: a
    /// wide job at the front must not wait for retries of narrow ones.
    fn end_pauses(&mut self) {
        while let Some(entry) = self.paused.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            self.waiting.push_back(entry.remove());
        }
    }

    /// Returns `true` if an attempt waits for a slot, or for the end of its pause.
    fn has_waiting(&self) -> bool {
        !self.waiting.is_empty() || !self.paused.is_empty()
    }

    fn supplied(&mut self, job: Job, remaining: Option<u64>) {
        let number = job.number.unwrap_or(self.next_number);
        self.next_number = number.saturating_add(1);
        self.supplied += 1;
        self.note_remaining(remaining);
        let job = Arc::new(job);
        self.waiting.push_back(Attempt { number, job, nth: 1, previous: None, is_canary: false });
    }

    /// Asks the client again if it had no job.
    fn supply_woken(&mut self) {
        if self.supply == SupplyState::Later {
            self.supply = SupplyState::Open;
        }
    }

    /// Records the number of jobs still to come, if known.
    fn note_remaining(&mut self, remaining: Option<u64>) {
        self.finished.total = remaining.map(|remaining| self.supplied.saturating_add(remaining));
    }

    /// Puts back an attempt that cannot start before another job ends.
    fn put_back(&mut self, slot: usize, attempt: Attempt) {
        self.free.insert(slot);
        if attempt.is_canary {
            self.is_canary_running = false;
        } else {
            self.waiting.push_front(attempt);
        }
        self.has_room = false;
    }

    /// Reports what is missing, once until a job starts.
    fn report(&mut self, need: Need) {
        if self.reported != Some(need) {
            self.reported = Some(need);
            self.actions.push(Action::Notify(Notice::Waiting { need }));
        }
    }

    fn started(&mut self, slot: usize, attempt: Attempt) {
        let limit = self.limit_of(&attempt);
        let escalation = self.escalation_of_attempt(limit);
        let mut running =
            Running { attempt, started: self.now, limit, escalation, timer: None, ending: None };
        running.update_timer(&mut self.timers, slot);
        self.slots[slot] = Some(running);
        self.reported = None;
        self.not_before = self.not_before.max(self.now.saturating_add(self.settings.delay));
    }

    /// Returns the number of running attempts.
    fn running(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Starts no more jobs; running ones may finish.
    fn drain(&mut self, reason: Reason) {
        if !mem::replace(&mut self.is_draining, true) {
            self.actions.push(Action::Notify(Notice::Halting(reason)));
        }
    }

    /// Returns `true` if a waiting job may start now, apart from the delay between starts.
    fn may_start(&self) -> bool {
        !self.is_draining && self.has_room && !self.free.is_empty() && !self.is_canary_running
    }

    fn start_next(&mut self) {
        let next = self.canary_for_next().or_else(|| self.waiting.pop_front());
        if let (Some(attempt), Some(slot)) = (next, self.free.pop_first()) {
            self.actions.push(Action::Start(slot, attempt));
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

    fn fire_timers(&mut self) {
        while let Some(fired) = self.timers.expire(self.now) {
            match fired.value {
                Timer::Slot(slot) => self.slot_timer(slot),
                Timer::Stop => self.stop_timer(),
                Timer::Tick => {
                    self.actions.push(Action::Notify(Notice::Tick));
                    self.arm_tick();
                }
            }
        }
    }

    fn arm_tick(&mut self) {
        if let Some(tick) = self.settings.tick {
            self.timers.arm(self.now.saturating_add(tick), Timer::Tick);
        }
    }
}
