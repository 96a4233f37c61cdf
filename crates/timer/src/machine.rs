//! What a server decides: which worker is reaped, when, and what becomes of its timers. No clock, no IO, no process.
//!
//! ```text
//!              a deadline comes                 Gone, Logged, Panicked
//!  watched ----------------------> being reaped ----------------------> watched
//!                                     |    |  Kept                        ^
//!                                     |    +-----> kept: again after a    | the expired scopes are
//!                                     |            pause that doubles ----+ released or acquired anew
//!                                     |  Again
//!                                     +----------> doomed: the next step of the ladder after a pause,
//!                                                  requests are ignored
//! ```
//! However many timers of a worker have expired, it is reaped once. A worker that exits is forgotten at once, in any state.

mod expired;

use std::collections::HashMap;
use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Swept;

use crate::event::{ExpiredTimer, TimerEvent};
use crate::heap::{TimerHeap, TimerKey};
use crate::ladder::Ladder;
use crate::scope::Scope;
use expired::Expired;

/// A process as this server knows it; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WorkerId(pub(crate) u64);

/// What has happened.
#[derive(Debug)]
pub(crate) enum Event {
    Registered {
        worker: WorkerId,
        pid: u32,
    },
    Acquire {
        worker: WorkerId,
        scope: Scope,
        deadline: u64,
        ladder: Option<Ladder>,
    },
    Release {
        worker: WorkerId,
        scope: Scope,
    },
    Exited {
        worker: WorkerId,
    },
    /// An answer to [`Action::Reap`].
    Reaped {
        worker: WorkerId,
        result: Reaped,
    },
    /// Time has passed.
    Tick,
}

#[derive(Debug)]
pub(crate) enum Reaped {
    Gone(Swept),
    Kept(String),
    Again(Duration),
    Logged,
    Panicked(String),
}

/// What is to be done, in this order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Answered by [`Event::Reaped`], before time goes on.
    Reap {
        worker: WorkerId,
        timers: Vec<ExpiredTimer>,
        step: u32,
    },
    Report(TimerEvent),
    /// The worker that has just exited was doomed, since this deadline.
    CleanUp {
        pid: u32,
        deadline: Monotonic,
    },
    /// The worker wants too much; its timers stay.
    Disconnect {
        worker: WorkerId,
        reason: String,
    },
}

/// So many timers a worker may have: an honest one has a few, a broken one must not take all memory.
pub(crate) const TIMERS_PER_WORKER: usize = 65_536;

/// The pause before a worker that was kept is reaped again; each is twice as long as the one before.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Machine {
    alarms: TimerHeap<Alarm>,
    workers: HashMap<WorkerId, Worker>,
    /// Whose alarms have gone off in this tick, in that order; empty between ticks.
    touched: Vec<WorkerId>,
}

#[derive(Debug)]
struct Alarm {
    worker: WorkerId,
    /// `None`: the worker is to be reaped again.
    scope: Option<Scope>,
}

#[derive(Debug)]
struct Worker {
    pid: u32,
    armed: HashMap<Scope, Armed>,
    /// The earliest first.
    expired: Expired,
    phase: Phase,
    /// How many times in a row the reaper has kept it.
    kept: u32,
    /// Of this tick, between ticks nothing: how many timers have expired, and whether to reap.
    new: usize,
    due: bool,
}

#[derive(Debug)]
struct Armed {
    alarm: TimerKey,
    ladder: Option<Ladder>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Watched,
    /// Until it is reaped again.
    Kept {
        alarm: TimerKey,
    },
    /// Before this step.
    Doomed {
        alarm: TimerKey,
        step: u32,
    },
}

impl Machine {
    /// When the next [`Event::Tick`] is due.
    pub(crate) fn next_deadline(&self) -> Option<u64> {
        self.alarms.next_deadline()
    }

    /// How many timers a worker has, those that have expired and were kept included.
    pub(crate) fn timers(&self, worker: WorkerId) -> usize {
        self.workers.get(&worker).map_or(0, Worker::timers)
    }

    /// Takes one event, at a time that never goes back, and appends what is to be done.
    pub(crate) fn handle(&mut self, now: u64, event: Event, outbox: &mut Vec<Action>) {
        match event {
            Event::Registered { worker, pid } => self.register(worker, pid, outbox),
            Event::Acquire { worker, scope, deadline, ladder } => {
                self.acquire(worker, scope, deadline, ladder, outbox);
            }
            Event::Release { worker, scope } => self.release(worker, &scope),
            Event::Exited { worker } => self.exited(worker, outbox),
            Event::Reaped { worker, result } => self.reaped(now, worker, result, outbox),
            Event::Tick => self.tick(now, outbox),
        }
    }

    fn register(&mut self, id: WorkerId, pid: u32, outbox: &mut Vec<Action>) {
        let worker = Worker {
            pid,
            armed: HashMap::new(),
            expired: Expired::default(),
            phase: Phase::Watched,
            kept: 0,
            new: 0,
            due: false,
        };
        self.workers.insert(id, worker);
        outbox.push(Action::Report(TimerEvent::Registered { pid }));
    }

    fn acquire(
        &mut self,
        id: WorkerId,
        scope: Scope,
        deadline: u64,
        ladder: Option<Ladder>,
        outbox: &mut Vec<Action>,
    ) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        if matches!(worker.phase, Phase::Doomed { .. }) {
            return;
        }
        worker.forgive(&scope, &mut self.alarms);
        if let Some(armed) = worker.armed.get_mut(&scope) {
            self.alarms.rearm(armed.alarm, deadline);
            armed.ladder = ladder;
        } else if worker.timers() >= TIMERS_PER_WORKER {
            let reason = format!("more than {TIMERS_PER_WORKER} timers at once");
            let refused = TimerEvent::Refused { pid: worker.pid, reason: reason.clone() };
            outbox.push(Action::Report(refused));
            outbox.push(Action::Disconnect { worker: id, reason });
        } else {
            let alarm = self.alarms.arm(deadline, Alarm { worker: id, scope: Some(scope.clone()) });
            worker.armed.insert(scope, Armed { alarm, ladder });
        }
    }

    /// A scope that is not armed is no error: it may have expired on the way.
    fn release(&mut self, id: WorkerId, scope: &Scope) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        worker.forgive(scope, &mut self.alarms);
        if let Some(armed) = worker.armed.remove(scope) {
            self.alarms.cancel(armed.alarm);
        }
    }

    fn exited(&mut self, id: WorkerId, outbox: &mut Vec<Action>) {
        let Some(mut worker) = self.workers.remove(&id) else { return };
        let timers = worker.timers();
        if let (Phase::Doomed { .. }, Some(first)) = (worker.phase, worker.expired.first()) {
            outbox.push(Action::CleanUp { pid: worker.pid, deadline: first.deadline });
        }
        worker.clear(&mut self.alarms);
        outbox.push(Action::Report(TimerEvent::Exited { pid: worker.pid, timers }));
    }

    fn tick(&mut self, now: u64, outbox: &mut Vec<Action>) {
        while let Some(fired) = self.alarms.expire(now) {
            let Alarm { worker: id, scope } = fired.value;
            let Some(worker) = self.workers.get_mut(&id) else { continue };
            if worker.new == 0 && !worker.due {
                self.touched.push(id);
            }
            if let Some(scope) = scope {
                let ladder = worker.armed.remove(&scope).and_then(|armed| armed.ladder);
                let deadline = Monotonic::from_nanos(fired.deadline);
                worker.expired.push(ExpiredTimer { scope, deadline, ladder });
                worker.new += 1;
                // A worker that is kept is reaped at its own time.
                worker.due |= matches!(worker.phase, Phase::Watched);
            } else {
                worker.due = true;
            }
        }
        for id in self.touched.drain(..) {
            let Some(worker) = self.workers.get_mut(&id) else { continue };
            let new = std::mem::take(&mut worker.new);
            if new > 0 {
                let timers = worker.expired.latest(new);
                let lateness = Monotonic::from_nanos(now).saturating_since(timers[0].deadline);
                let report = TimerEvent::Expired { pid: worker.pid, timers, lateness };
                outbox.push(Action::Report(report));
            }
            if std::mem::take(&mut worker.due) {
                let step = match worker.phase {
                    Phase::Doomed { step, .. } => step,
                    Phase::Watched | Phase::Kept { .. } => 0,
                };
                outbox.push(Action::Reap { worker: id, timers: worker.expired.to_vec(), step });
            }
        }
    }

    fn reaped(&mut self, now: u64, id: WorkerId, result: Reaped, outbox: &mut Vec<Action>) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let pid = worker.pid;
        let alarm_in = |pause: Duration, alarms: &mut TimerHeap<Alarm>| {
            let deadline = Monotonic::from_nanos(now).saturating_add(pause).as_nanos();
            alarms.arm(deadline, Alarm { worker: id, scope: None })
        };
        match result {
            Reaped::Gone(swept) => {
                let first = worker.expired.first().map(|timer| timer.deadline);
                let lateness = first.map_or(Duration::ZERO, |deadline| {
                    Monotonic::from_nanos(now).saturating_since(deadline)
                });
                worker.clear(&mut self.alarms);
                outbox.push(Action::Report(TimerEvent::Killed { pid, lateness, swept }));
            }
            Reaped::Panicked(reason) => {
                worker.clear(&mut self.alarms);
                let failed = TimerEvent::Failed { pid, reason, retry_in: None };
                outbox.push(Action::Report(failed));
            }
            Reaped::Logged => {
                worker.expired.clear();
                worker.phase = Phase::Watched;
                worker.kept = 0;
            }
            Reaped::Kept(reason) => {
                let pause = retry_after(worker.kept);
                worker.kept = worker.kept.saturating_add(1);
                let alarm = alarm_in(pause, &mut self.alarms);
                worker.phase = match worker.phase {
                    // The ladder goes on where it was.
                    Phase::Doomed { step, .. } => Phase::Doomed { alarm, step },
                    Phase::Watched | Phase::Kept { .. } => Phase::Kept { alarm },
                };
                let failed = TimerEvent::Failed { pid, reason, retry_in: Some(pause) };
                outbox.push(Action::Report(failed));
            }
            Reaped::Again(pause) => {
                let step = match worker.phase {
                    Phase::Doomed { step, .. } => step.saturating_add(1),
                    Phase::Watched | Phase::Kept { .. } => 1,
                };
                let expired = std::mem::take(&mut worker.expired);
                worker.clear(&mut self.alarms);
                worker.expired = expired;
                worker.phase = Phase::Doomed { alarm: alarm_in(pause, &mut self.alarms), step };
            }
        }
    }
}

impl Worker {
    /// Those of a worker that is kept have expired and are waited for all the same.
    fn timers(&self) -> usize {
        self.armed.len() + self.expired.len()
    }

    /// A scope that has expired is not overdue any more; with the last one goes the reason to reap a worker that was kept.
    fn forgive(&mut self, scope: &Scope, alarms: &mut TimerHeap<Alarm>) {
        if let Phase::Kept { alarm } = self.phase {
            self.expired.remove(scope);
            if self.expired.is_empty() {
                alarms.cancel(alarm);
                self.phase = Phase::Watched;
                self.kept = 0;
            }
        }
    }

    /// As if it had never acquired anything.
    fn clear(&mut self, alarms: &mut TimerHeap<Alarm>) {
        for (_, armed) in self.armed.drain() {
            alarms.cancel(armed.alarm);
        }
        if let Phase::Kept { alarm } | Phase::Doomed { alarm, .. } = self.phase {
            alarms.cancel(alarm);
        }
        self.expired.clear();
        self.phase = Phase::Watched;
        self.kept = 0;
    }
}

fn retry_after(kept: u32) -> Duration {
    let doubled = 1_u32.checked_shl(kept).unwrap_or(u32::MAX);
    FIRST_RETRY.saturating_mul(doubled).min(LAST_RETRY)
}

#[cfg(test)]
mod tests;
