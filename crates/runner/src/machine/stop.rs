//! Ends attempts: one that exceeds its limit, or all of them when the run is stopped.
//!
//! ```text
//! limit --> SIGTERM --kill grace--> SIGKILL --5 s--> abandoned                      an attempt
//! SIGINT --0.5 s--> countdown --stop grace--> SIGTERM --0.5 s--> SIGKILL            the run
//! ```
//!
//! Many programs clean up at SIGINT. The countdown announces how much time is left for those that
//! still run. A second stop goes straight to SIGKILL. A process that survives even SIGKILL is
//! abandoned, so a stop takes a bounded time.

use std::time::Duration;

use brigade_base::{Escalation, TimerHeap};
use brigade_sys::process::Signal;

use super::{Action, EndCause, Machine, Notice, Running, Timer};
use crate::event::Reason;

/// A step that ends an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndAttempt {
    Terminate,
    Kill,
    Abandon,
}

/// A step that ends the run, after SIGINT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndRun {
    CountDown,
    Terminate,
    Kill,
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
    /// Returns the escalation of an attempt that starts now. Without a limit, it rests.
    pub(super) fn escalation_of_attempt(
        &self,
        limit: Option<Duration>,
    ) -> Escalation<EndAttempt, 3> {
        let steps = [
            (limit.unwrap_or_default(), EndAttempt::Terminate),
            (self.settings.kill_grace, EndAttempt::Kill),
            (AFTER_KILL, EndAttempt::Abandon),
        ];
        let mut escalation = Escalation::new(self.now, steps);
        if limit.is_none() {
            escalation.reschedule(None);
        }
        escalation
    }

    /// Handles a request to stop the run. The second one kills all jobs immediately.
    pub(super) fn stop(&mut self) {
        if let Some(stopping) = &mut self.stopping {
            if stopping.skip_to(self.now, EndRun::Kill) {
                self.timers.set(&mut self.stop_timer, None, Timer::Stop);
                self.kill_all();
            }
            return;
        }
        self.is_draining = true;
        self.actions.push(Action::Notify(Notice::Halting(Reason::Stopped)));
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| running.ending.is_none()) {
                running.ending = Some(EndCause::Stopped);
                // From here on the escalation of the run alone decides when it is killed.
                running.escalation.reschedule(None);
                running.update_timer(&mut self.timers, slot);
            }
        }
        self.signal_all(Signal::Interrupt);
        let steps = [
            (AFTER_INTERRUPT, EndRun::CountDown),
            (self.settings.stop_grace, EndRun::Terminate),
            (AFTER_TERMINATE, EndRun::Kill),
        ];
        let stopping = self.stopping.insert(Escalation::new(self.now, steps));
        self.timers.set(&mut self.stop_timer, stopping.next_deadline(), Timer::Stop);
    }

    /// Handles the timer of a stopped run.
    pub(super) fn stop_timer(&mut self) {
        self.stop_timer = None;
        let Some(stopping) = &mut self.stopping else { return };
        let step = stopping.advance(self.now);
        let mut due = stopping.next_deadline();
        match step {
            // Between the steps, the timer goes off for the countdown only.
            Some(EndRun::CountDown) | None => {
                let left = due.map_or(Duration::ZERO, |due| due.saturating_since(self.now));
                self.count_down(left);
                due = Some(self.now.saturating_add(left.min(COUNTDOWN)));
            }
            Some(EndRun::Terminate) => {
                self.signal_all(Signal::Terminate);
                self.notify_signalled("SIGTERM");
            }
            Some(EndRun::Kill) => self.kill_all(),
        }
        self.timers.set(&mut self.stop_timer, due, Timer::Stop);
    }

    /// Handles the timer of an attempt.
    pub(super) fn slot_timer(&mut self, slot: usize) {
        let Some(running) = &mut self.slots[slot] else { return };
        running.timer = None;
        let step = running.escalation.advance(self.now);
        running.update_timer(&mut self.timers, slot);
        let Some(step) = step else { return };
        if step == EndAttempt::Terminate {
            running.ending = running.limit.map(EndCause::TimedOut);
        }
        self.actions.push(match step {
            EndAttempt::Terminate => Action::Signal(slot, Signal::Terminate),
            EndAttempt::Kill => Action::Signal(slot, Signal::Kill),
            EndAttempt::Abandon => Action::Abandon(slot),
        });
    }

    /// Stops the attempt on a slot: sends SIGTERM to it, and SIGKILL after the grace.
    pub(super) fn terminate(&mut self, slot: usize) {
        let Some(running) = self.slots[slot].as_mut().filter(|running| running.ending.is_none())
        else {
            return;
        };
        running.ending = Some(EndCause::Stopped);
        running.escalation.skip_to(self.now, EndAttempt::Terminate);
        running.update_timer(&mut self.timers, slot);
        self.actions.push(Action::Signal(slot, Signal::Terminate));
    }

    /// Ends the job with this number, whose input cannot be read.
    pub(super) fn input_failed(&mut self, number: u64) {
        let is_it = |running: &Running| running.attempt.number == number;
        let slot = self.slots.iter().position(|running| running.as_ref().is_some_and(is_it));
        if let Some(slot) = slot {
            self.terminate(slot);
        }
    }

    fn kill(&mut self, slot: usize) {
        let Some(running) = &mut self.slots[slot] else { return };
        if running.escalation.skip_to(self.now, EndAttempt::Kill) {
            running.update_timer(&mut self.timers, slot);
            self.actions.push(Action::Signal(slot, Signal::Kill));
        }
    }

    fn count_down(&mut self, left: Duration) {
        if self.running() > 0 && !left.is_zero() {
            let running = self.running();
            self.actions.push(Action::Notify(Notice::Grace { running, left }));
        }
    }

    fn kill_all(&mut self) {
        if self.running() > 0 {
            self.notify_signalled("SIGKILL");
        }
        for slot in 0..self.slots.len() {
            self.kill(slot);
        }
    }

    /// Handles a request to pause: Ctrl-Z must stop the jobs as well, which are not in the
    /// terminal's group. The driver stops the time of the machine meanwhile, so that no limit
    /// passes.
    pub(super) fn suspend(&mut self) {
        self.signal_all(Signal::Stop);
        self.actions.push(Action::Suspend);
    }

    pub(super) fn signal_all(&mut self, signal: Signal) {
        let running = self.slots.iter().enumerate().filter(|(_, running)| running.is_some());
        self.actions.extend(running.map(|(slot, _)| Action::Signal(slot, signal)));
    }

    fn notify_signalled(&mut self, signal: &'static str) {
        let running = self.running();
        self.actions.push(Action::Notify(Notice::Signalled { running, signal }));
    }
}

impl Running {
    /// Sets the timer to the next step of the escalation.
    pub(super) fn update_timer(&mut self, timers: &mut TimerHeap<Timer>, slot: usize) {
        timers.set(&mut self.timer, self.escalation.next_deadline(), Timer::Slot(slot));
    }
}
