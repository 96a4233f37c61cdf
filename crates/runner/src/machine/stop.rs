//! Ends attempts: one that exceeds its limit, or all of them when the run is stopped.
//!
//! A stopped run escalates: SIGINT, which many programs take as the moment to clean up; after half
//! a second, if something still runs, a grace period with a countdown for the user; SIGTERM;
//! SIGKILL. A second stop goes straight to SIGKILL. A process that survives even SIGKILL is
//! abandoned, so a stop takes a bounded time.

use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;

use super::{Action, Cause, Machine, Notice, Phase, Timer};
use crate::event::Reason;

/// The state of the escalation that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escalation {
    Idle,
    Interrupted,
    Grace { until: Monotonic },
    Terminated,
    Killed,
}

/// Most programs end this soon after an interrupt; the original runner waits as long before it
/// prints anything.
const AFTER_INTERRUPT: Duration = Duration::from_millis(500);
/// Time between two announcements of the remaining grace.
const COUNTDOWN: Duration = Duration::from_secs(2);
/// Time between SIGTERM and SIGKILL when the run is stopped.
const AFTER_TERMINATE: Duration = Duration::from_millis(500);
/// Time that the kernel may take to end a killed process. One that is alive after that belongs to
/// another user by now, or waits for a device or a file server.
const AFTER_KILL: Duration = Duration::from_secs(5);

impl Machine {
    /// Handles a request to stop the run. The second one kills all jobs immediately.
    pub(crate) fn stop(&mut self, now: Monotonic) {
        if self.escalation != Escalation::Idle {
            self.kill_all(now);
            return;
        }
        self.phase = Phase::Draining;
        self.actions.push_back(Action::Notify(Notice::Halting(Reason::Stopped)));
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| running.ending.is_none()) {
                running.ending = Some(Cause::Stopped);
                // From here on the escalation alone decides when it is killed.
                self.timers.set(&mut running.timer, None, Timer::Slot(slot));
            }
        }
        self.signal_all(Signal::Interrupt);
        self.escalate(Escalation::Interrupted, now.saturating_add(AFTER_INTERRUPT));
    }

    pub(super) fn escalation_due(&mut self, now: Monotonic) {
        self.escalation_timer = None;
        match self.escalation {
            Escalation::Interrupted => {
                self.count_down(now.saturating_add(self.settings.stop_grace), now);
            }
            Escalation::Grace { until } if now < until => self.count_down(until, now),
            Escalation::Grace { .. } => {
                self.signal_all(Signal::Terminate);
                self.notify_signalled("SIGTERM");
                self.escalate(Escalation::Terminated, now.saturating_add(AFTER_TERMINATE));
            }
            Escalation::Terminated => self.kill_all(now),
            Escalation::Idle | Escalation::Killed => {}
        }
    }

    /// Handles the timer of an attempt: it exceeded its limit or the grace after SIGTERM, or has
    /// survived SIGKILL.
    pub(super) fn slot_timer(&mut self, slot: usize, now: Monotonic) {
        let Some(running) = &mut self.slots[slot] else { return };
        running.timer = None;
        match (running.ending, running.limit) {
            (None, Some(limit)) => self.terminate(slot, Cause::TimedOut(limit), now),
            _ if !running.is_killed => self.kill(slot, now),
            _ => self.actions.push_back(Action::Abandon(slot)),
        }
    }

    /// Sends SIGTERM to the attempt on a slot, and SIGKILL after the grace.
    pub(super) fn terminate(&mut self, slot: usize, cause: Cause, now: Monotonic) {
        let Some(running) = self.slots[slot].as_mut().filter(|running| running.ending.is_none())
        else {
            return;
        };
        running.ending = Some(cause);
        self.actions.push_back(Action::Signal(slot, Signal::Terminate));
        let kill = now.saturating_add(self.settings.kill_grace);
        self.timers.set(&mut running.timer, Some(kill), Timer::Slot(slot));
    }

    fn kill(&mut self, slot: usize, now: Monotonic) {
        let Some(running) = self.slots[slot].as_mut().filter(|running| !running.is_killed) else {
            return;
        };
        running.is_killed = true;
        self.timers.set(
            &mut running.timer,
            Some(now.saturating_add(AFTER_KILL)),
            Timer::Slot(slot),
        );
        self.actions.push_back(Action::Signal(slot, Signal::Kill));
    }

    fn count_down(&mut self, until: Monotonic, now: Monotonic) {
        let left = until.saturating_since(now);
        if self.running() > 0 && !left.is_zero() {
            self.actions.push_back(Action::Notify(Notice::Grace { running: self.running(), left }));
        }
        self.escalate(Escalation::Grace { until }, now.saturating_add(left.min(COUNTDOWN)));
    }

    fn kill_all(&mut self, now: Monotonic) {
        if self.escalation != Escalation::Killed && self.running() > 0 {
            self.notify_signalled("SIGKILL");
        }
        self.escalation = Escalation::Killed;
        for slot in 0..self.slots.len() {
            self.kill(slot, now);
        }
    }

    fn escalate(&mut self, escalation: Escalation, time: Monotonic) {
        self.escalation = escalation;
        self.timers.set(&mut self.escalation_timer, Some(time), Timer::Escalation);
    }

    fn signal_all(&mut self, signal: Signal) {
        let running = self.slots.iter().enumerate().filter(|(_, running)| running.is_some());
        self.actions.extend(running.map(|(slot, _)| Action::Signal(slot, signal)));
    }

    fn notify_signalled(&mut self, signal: &'static str) {
        let running = self.running();
        self.actions.push_back(Action::Notify(Notice::Signalled { running, signal }));
    }
}
