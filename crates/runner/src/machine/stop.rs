//! Ending what runs: one attempt that is over its limit, or all of them when the run is stopped.
//!
//! A run that is stopped goes down a ladder: SIGINT, which many programs know as the moment to clean up; after half a
//! second, if something still runs, a grace of which the user is told; SIGTERM; SIGKILL. Being stopped once more goes to
//! its end at once. What even SIGKILL does not end is given up, so that a stop takes a bounded time.

use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;

use super::{Action, Cause, Course, Machine, Notice, Timer, set_timer};
use crate::event::Reason;

/// How far the run is down its ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ladder {
    Idle,
    Interrupted,
    Grace { until: Monotonic },
    Terminated,
    Killed,
}

/// How long most programs need after an interrupt; the original runner waits as long before it says anything.
const AFTER_INTERRUPT: Duration = Duration::from_millis(500);
/// How often the user is told how much grace is left.
const COUNTDOWN: Duration = Duration::from_secs(2);
/// How long a program has after SIGTERM in the ladder of the whole run.
const AFTER_TERMINATE: Duration = Duration::from_millis(500);
/// How long the kernel may take to end what was killed. What lives on then belongs to another user by now, or waits for a
/// device or a file server.
const AFTER_KILL: Duration = Duration::from_secs(5);

impl Machine {
    /// The user wants the run to stop; the second time at once.
    pub(crate) fn stop(&mut self, now: Monotonic) {
        if self.ladder != Ladder::Idle {
            self.kill_all(now);
            return;
        }
        self.course = Course::Draining;
        self.orders.push_back(Action::Tell(Notice::Halting(Reason::Stopped)));
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| running.ending.is_none()) {
                running.ending = Some(Cause::Stopped);
                // From here on the ladder alone says when it is killed.
                set_timer(&mut self.timers, slot, running, None);
            }
        }
        self.signal_all(Signal::Interrupt);
        self.climb(Ladder::Interrupted, now.saturating_add(AFTER_INTERRUPT));
    }

    pub(super) fn ladder_timer(&mut self, now: Monotonic) {
        match self.ladder {
            Ladder::Interrupted => {
                self.count_down(now.saturating_add(self.settings.stop_grace), now);
            }
            Ladder::Grace { until } if now < until => self.count_down(until, now),
            Ladder::Grace { .. } => {
                self.signal_all(Signal::Terminate);
                self.tell_signalled("SIGTERM");
                self.climb(Ladder::Terminated, now.saturating_add(AFTER_TERMINATE));
            }
            Ladder::Terminated => self.kill_all(now),
            Ladder::Idle | Ladder::Killed => {}
        }
    }

    /// The timer of one attempt: it is over its limit, or over the grace that it was given then.
    pub(super) fn slot_timer(&mut self, slot: usize, now: Monotonic) {
        let Some(running) = &mut self.slots[slot] else { return };
        running.timer = None;
        match (running.ending, running.limit) {
            (None, Some(limit)) => self.terminate(slot, Cause::TimedOut(limit), now),
            _ if !running.is_killed => self.kill(slot, now),
            _ => self.orders.push_back(Action::Abandon(slot)),
        }
    }

    /// Asks the attempt on a slot to end, and makes it end after the grace.
    pub(super) fn terminate(&mut self, slot: usize, cause: Cause, now: Monotonic) {
        let Some(running) = self.slots[slot].as_mut().filter(|running| running.ending.is_none())
        else {
            return;
        };
        running.ending = Some(cause);
        self.orders.push_back(Action::Signal(slot, Signal::Terminate));
        let kill = now.saturating_add(self.settings.kill_grace);
        set_timer(&mut self.timers, slot, running, Some(kill));
    }

    fn kill(&mut self, slot: usize, now: Monotonic) {
        let Some(running) = self.slots[slot].as_mut().filter(|running| !running.is_killed) else {
            return;
        };
        running.is_killed = true;
        set_timer(&mut self.timers, slot, running, Some(now.saturating_add(AFTER_KILL)));
        self.orders.push_back(Action::Signal(slot, Signal::Kill));
    }

    fn count_down(&mut self, until: Monotonic, now: Monotonic) {
        let left = until.saturating_since(now);
        if self.running() > 0 && !left.is_zero() {
            self.orders.push_back(Action::Tell(Notice::Grace { running: self.running(), left }));
        }
        self.climb(Ladder::Grace { until }, now.saturating_add(left.min(COUNTDOWN)));
    }

    fn kill_all(&mut self, now: Monotonic) {
        if self.ladder != Ladder::Killed && self.running() > 0 {
            self.tell_signalled("SIGKILL");
        }
        self.ladder = Ladder::Killed;
        for slot in 0..self.slots.len() {
            self.kill(slot, now);
        }
    }

    fn climb(&mut self, ladder: Ladder, time: Monotonic) {
        self.ladder = ladder;
        self.timers.insert((time, Timer::Ladder));
    }

    fn signal_all(&mut self, signal: Signal) {
        let running = self.slots.iter().enumerate().filter(|(_, running)| running.is_some());
        self.orders.extend(running.map(|(slot, _)| Action::Signal(slot, signal)));
    }

    fn tell_signalled(&mut self, signal: &'static str) {
        let running = self.running();
        self.orders.push_back(Action::Tell(Notice::Signalled { running, signal }));
    }
}
