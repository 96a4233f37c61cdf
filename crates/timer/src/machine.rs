//! The server's decisions: which process is reaped and when, and what happens to its timers.
//! A pure state machine: no clock, no IO, no processes.
//!
//! ```text
//!            a deadline passes                Gone, Logged, a panic
//!  watched --------------------> being reaped ----------------------> watched
//!                                   |    |  Kept, an error              ^
//!                                   |    +-----> kept: reaped again     | the expired scopes are
//!                                   |            after a growing pause -+ released or moved
//!                                   |  Again
//!                                   +----------> escalating: the next step after a pause,
//!                                                requests are ignored
//! ```
//! The machine does not know the steps of an escalation: the reaper, which may be the user's,
//! chooses each of them and the pause after it, and may go on forever. So this is a repetition, not
//! a [`brigade_base::Escalation`], whose steps are fixed when it begins.
//!
//! A process is reaped once, however many of its timers have expired. A process that exits is
//! forgotten at once, in any state.

mod expired;

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use brigade_base::{Monotonic, TimerHeap, TimerKey};

use crate::escalation::Escalation;
use crate::event::{ExpiredTimer, TimerEvent};
use crate::reaper::Reap;
use crate::scope::Scope;
use expired::Expired;

/// Identifies a client process for the lifetime of the server; never reused, unlike a pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(pub(crate) u64);

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Event {
    Registered {
        client: ClientId,
        pid: u32,
    },
    Acquire {
        client: ClientId,
        scope: Scope,
        deadline: Monotonic,
        escalation: Option<Escalation>,
    },
    Release {
        client: ClientId,
        scope: Scope,
    },
    Exited {
        client: ClientId,
    },
    /// The result of an [`Action::Reap`].
    Reaped {
        client: ClientId,
        result: Reaped,
    },
    /// The time of the next deadline has come.
    Tick,
}

/// The result of the reaper, or the text of its panic.
pub(crate) type Reaped = Result<io::Result<Reap>, String>;

/// An output of the machine. Actions are carried out in their order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To be followed by [`Event::Reaped`], before time advances.
    Reap {
        client: ClientId,
        timers: Vec<ExpiredTimer>,
        step: u32,
    },
    Report(TimerEvent),
    /// The process that has just exited was escalating, since this deadline.
    CleanUp {
        pid: u32,
        deadline: Monotonic,
    },
    /// The process arms too many timers. Those that it has stay armed.
    Disconnect {
        client: ClientId,
        reason: String,
    },
}

/// Maximum number of timers of a process. A sound one has a few; a broken one must not use up the
/// memory.
pub(crate) const TIMERS_PER_PROCESS: usize = 65_536;

/// The first and the longest pause before a kept process is reaped again. Each pause is twice as
/// long as the previous one.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Machine {
    alarms: TimerHeap<TimerAlarm>,
    clients: HashMap<ClientId, ClientTimers>,
    /// Processes whose alarms fired in this tick, in that order; empty between ticks.
    touched: Vec<ClientId>,
}

#[derive(Debug)]
struct TimerAlarm {
    client: ClientId,
    /// `None` if the process is to be reaped again.
    scope: Option<Scope>,
}

#[derive(Debug)]
struct ClientTimers {
    pid: u32,
    armed: HashMap<Scope, Armed>,
    /// Ordered by expiry.
    expired: Expired,
    phase: Phase,
    /// Number of times in a row that the reaper has kept the process.
    kept: u32,
    /// For the current tick, zero between ticks: the number of timers that expired, and whether to
    /// reap.
    new: usize,
    due: bool,
}

#[derive(Debug)]
struct Armed {
    alarm: TimerKey,
    escalation: Option<Escalation>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Watched,
    /// Until the alarm, when it is reaped again.
    Kept {
        alarm: TimerKey,
    },
    /// Until the alarm, when this step is taken.
    Escalating {
        alarm: TimerKey,
        step: u32,
    },
}

impl Machine {
    /// Returns the time at which the next [`Event::Tick`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Monotonic> {
        self.alarms.next_deadline()
    }

    /// Returns the number of timers of a process, including expired ones if the process was kept.
    pub(crate) fn timers(&self, client: ClientId) -> usize {
        self.clients.get(&client).map_or(0, ClientTimers::timers)
    }

    /// Handles one event and appends the resulting actions. `now` must never decrease.
    pub(crate) fn handle(&mut self, now: Monotonic, event: Event, outbox: &mut Vec<Action>) {
        match event {
            Event::Registered { client, pid } => self.register(client, pid, outbox),
            Event::Acquire { client, scope, deadline, escalation } => {
                self.acquire(client, scope, deadline, escalation, outbox);
            }
            Event::Release { client, scope } => self.release(client, &scope),
            Event::Exited { client } => self.exited(client, outbox),
            Event::Reaped { client, result } => self.reaped(now, client, result, outbox),
            Event::Tick => self.tick(now, outbox),
        }
    }

    fn register(&mut self, id: ClientId, pid: u32, outbox: &mut Vec<Action>) {
        let client = ClientTimers {
            pid,
            armed: HashMap::new(),
            expired: Expired::default(),
            phase: Phase::Watched,
            kept: 0,
            new: 0,
            due: false,
        };
        self.clients.insert(id, client);
        outbox.push(Action::Report(TimerEvent::Registered { pid }));
    }

    fn acquire(
        &mut self,
        id: ClientId,
        scope: Scope,
        deadline: Monotonic,
        escalation: Option<Escalation>,
        outbox: &mut Vec<Action>,
    ) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if matches!(client.phase, Phase::Escalating { .. }) {
            return;
        }
        client.clear_expired(&scope, &mut self.alarms);
        if let Some(armed) = client.armed.get_mut(&scope) {
            self.alarms.rearm(armed.alarm, deadline);
            armed.escalation = escalation;
        } else if client.timers() >= TIMERS_PER_PROCESS {
            let reason = format!("more than {TIMERS_PER_PROCESS} timers at once");
            let refused = TimerEvent::Refused { pid: client.pid, reason: reason.clone() };
            outbox.push(Action::Report(refused));
            outbox.push(Action::Disconnect { client: id, reason });
        } else {
            let alarm =
                self.alarms.arm(deadline, TimerAlarm { client: id, scope: Some(scope.clone()) });
            client.armed.insert(scope, Armed { alarm, escalation });
        }
    }

    /// A scope that is not armed is not an error: it may have expired while the request was in
    /// transit.
    fn release(&mut self, id: ClientId, scope: &Scope) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.clear_expired(scope, &mut self.alarms);
        if let Some(armed) = client.armed.remove(scope) {
            self.alarms.cancel(armed.alarm);
        }
    }

    fn exited(&mut self, id: ClientId, outbox: &mut Vec<Action>) {
        let Some(mut client) = self.clients.remove(&id) else { return };
        let timers = client.timers();
        if let (Phase::Escalating { .. }, Some(first)) = (client.phase, client.expired.first()) {
            outbox.push(Action::CleanUp { pid: client.pid, deadline: first.deadline });
        }
        client.clear(&mut self.alarms);
        outbox.push(Action::Report(TimerEvent::Exited { pid: client.pid, timers }));
    }

    fn tick(&mut self, now: Monotonic, outbox: &mut Vec<Action>) {
        while let Some(fired) = self.alarms.expire(now) {
            let TimerAlarm { client: id, scope } = fired.value;
            let Some(client) = self.clients.get_mut(&id) else { continue };
            if client.new == 0 && !client.due {
                self.touched.push(id);
            }
            if let Some(scope) = scope {
                let escalation = client.armed.remove(&scope).and_then(|armed| armed.escalation);
                let deadline = fired.deadline;
                client.expired.push(ExpiredTimer { scope, deadline, escalation });
                client.new += 1;
                // A kept process is reaped when its own alarm fires.
                client.due |= matches!(client.phase, Phase::Watched);
            } else {
                client.due = true;
            }
        }
        for id in self.touched.drain(..) {
            let Some(client) = self.clients.get_mut(&id) else { continue };
            let new = std::mem::take(&mut client.new);
            if new > 0 {
                let timers = client.expired.latest(new);
                let lateness = now.saturating_since(timers[0].deadline);
                let report = TimerEvent::Expired { pid: client.pid, timers, lateness };
                outbox.push(Action::Report(report));
            }
            if std::mem::take(&mut client.due) {
                let step = match client.phase {
                    Phase::Escalating { step, .. } => step,
                    Phase::Watched | Phase::Kept { .. } => 0,
                };
                outbox.push(Action::Reap { client: id, timers: client.expired.to_vec(), step });
            }
        }
    }

    fn reaped(&mut self, now: Monotonic, id: ClientId, result: Reaped, outbox: &mut Vec<Action>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let pid = client.pid;
        let alarm_in = |pause: Duration, alarms: &mut TimerHeap<TimerAlarm>| {
            let deadline = now.saturating_add(pause);
            alarms.arm(deadline, TimerAlarm { client: id, scope: None })
        };
        match result {
            Ok(Ok(Reap::Gone(swept))) => {
                let first = client.expired.first().map(|timer| timer.deadline);
                let lateness =
                    first.map_or(Duration::ZERO, |deadline| now.saturating_since(deadline));
                client.clear(&mut self.alarms);
                outbox.push(Action::Report(TimerEvent::Killed { pid, lateness, swept }));
            }
            Err(reason) => {
                client.clear(&mut self.alarms);
                let failed = TimerEvent::Failed { pid, reason, retry_in: None };
                outbox.push(Action::Report(failed));
            }
            Ok(Ok(Reap::Logged)) => {
                client.expired.clear();
                client.phase = Phase::Watched;
                client.kept = 0;
            }
            Ok(kept @ (Ok(Reap::Kept) | Err(_))) => {
                let reason = match kept {
                    Err(error) => error.to_string(),
                    Ok(_) => "the reaper kept the process".to_owned(),
                };
                let pause = retry_after(client.kept);
                client.kept = client.kept.saturating_add(1);
                let alarm = alarm_in(pause, &mut self.alarms);
                client.phase = match client.phase {
                    // The escalation goes on with the same step.
                    Phase::Escalating { step, .. } => Phase::Escalating { alarm, step },
                    Phase::Watched | Phase::Kept { .. } => Phase::Kept { alarm },
                };
                let failed = TimerEvent::Failed { pid, reason, retry_in: Some(pause) };
                outbox.push(Action::Report(failed));
            }
            Ok(Ok(Reap::Again(pause))) => {
                let step = match client.phase {
                    Phase::Escalating { step, .. } => step.saturating_add(1),
                    Phase::Watched | Phase::Kept { .. } => 1,
                };
                let expired = std::mem::take(&mut client.expired);
                client.clear(&mut self.alarms);
                client.expired = expired;
                client.phase = Phase::Escalating { alarm: alarm_in(pause, &mut self.alarms), step };
            }
        }
    }
}

impl ClientTimers {
    /// Number of timers. Expired ones of a kept process count too: it is still expected to release
    /// them.
    fn timers(&self) -> usize {
        self.armed.len() + self.expired.len()
    }

    /// Clears an expired scope. Without any left, there is no reason to reap a kept process again.
    fn clear_expired(&mut self, scope: &Scope, alarms: &mut TimerHeap<TimerAlarm>) {
        if let Phase::Kept { alarm } = self.phase {
            self.expired.remove(scope);
            if self.expired.is_empty() {
                alarms.cancel(alarm);
                self.phase = Phase::Watched;
                self.kept = 0;
            }
        }
    }

    /// Clears all timers, as if the process had never acquired any.
    fn clear(&mut self, alarms: &mut TimerHeap<TimerAlarm>) {
        for (_, armed) in self.armed.drain() {
            alarms.cancel(armed.alarm);
        }
        if let Phase::Kept { alarm } | Phase::Escalating { alarm, .. } = self.phase {
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
