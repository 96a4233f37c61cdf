//! Handles the end of an attempt: decides about retries and halting.

use std::time::Duration;

use brigade_sys::clock::Monotonic;

use super::{Action, Attempt, EndCause, Machine, Running, SupplyState, Timer};
use crate::halt::HaltWhen;
use crate::limit::Limit;
use crate::outcome::{Ending, StartFailure};

/// The machine's decision about an attempt that is over.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) attempt: Attempt,
    pub(crate) ending: Ending,
    /// Time of its end.
    pub(crate) time: Monotonic,
    /// Duration of the attempt.
    pub(crate) wall: Duration,
    /// `true` if another attempt will be made.
    pub(crate) is_retried: bool,
    /// `true` if this outcome met the halt policy.
    pub(crate) is_decisive: bool,
    /// `true` if other jobs are ended or not started because of that.
    pub(crate) is_halting: bool,
}

impl Verdict {
    fn new(attempt: Attempt, ending: Ending, time: Monotonic, wall: Duration) -> Self {
        let (is_retried, is_decisive, is_halting) = (false, false, false);
        Self { attempt, ending, time, wall, is_retried, is_decisive, is_halting }
    }
}

impl Machine {
    /// Handles the end of an attempt: its ending as far as its process shows it.
    pub(super) fn ended(&mut self, slot: usize, seen: Ending) {
        let Some(running) = self.release(slot) else { return };
        let wall = self.now.saturating_since(running.started);
        let ending = match running.ending {
            _ if seen == Ending::NotKilled => seen,
            Some(EndCause::TimedOut(limit)) => Ending::TimedOut { limit },
            // It may have exited with 0 all the same, but nobody knows if its work was complete.
            Some(EndCause::Stopped) => Ending::Stopped,
            None => seen,
        };
        if ending.is_success() && !running.attempt.is_canary {
            self.durations.record(wall);
            self.follow_median();
        }
        self.judge(slot, running.attempt, ending, wall);
    }

    /// Frees the slot of an attempt that is over.
    fn release(&mut self, slot: usize) -> Option<Running> {
        let mut running = self.slots[slot].take()?;
        self.timers.set(&mut running.timer, None, Timer::Slot(slot));
        self.free.insert(slot);
        self.has_room = true;
        Some(running)
    }

    /// Handles the ending of an attempt that ran elsewhere.
    pub(super) fn reported(&mut self, slot: usize, ending: Ending, wall: Duration) {
        if let Some(running) = self.release(slot) {
            self.judge(slot, running.attempt, ending, wall);
        }
    }

    /// Handles an attempt that was withdrawn before it began elsewhere.
    pub(super) fn withdrawn(&mut self, slot: usize) {
        if let Some(running) = self.release(slot) {
            self.give_up(running.attempt);
        }
    }

    /// Handles an attempt that could not be started.
    pub(super) fn start_failed(&mut self, slot: usize, attempt: Attempt, failure: StartFailure) {
        self.free.insert(slot);
        self.has_room = true;
        self.judge(slot, attempt, Ending::NotStarted(failure), Duration::ZERO);
    }

    /// Decides about a retry and about halting, and has the end of the attempt reported.
    fn judge(&mut self, slot: usize, attempt: Attempt, ending: Ending, wall: Duration) {
        if attempt.is_canary {
            let (prelude, passed) = (attempt.job.prelude.clone(), ending.is_success());
            let verdict = Verdict::new(attempt, ending, self.now, wall);
            self.actions.push(Action::Conclude(Some(slot), verdict));
            return self.canary_ended(prelude, passed);
        }
        let retries = attempt.job.retries.unwrap_or(self.settings.retry.retries());
        let is_meant =
            !self.settings.retries_only_timeouts || matches!(ending, Ending::TimedOut { .. });
        let is_worth_it = is_meant && ending.is_worth_a_retry();
        let is_retried = !self.is_draining && is_worth_it && attempt.nth <= retries;
        let mut verdict = Verdict { is_retried, ..Verdict::new(attempt, ending, self.now, wall) };
        if is_retried {
            let (attempt, previous) = (verdict.attempt.clone(), Some(verdict.ending.clone()));
            let due =
                self.now.saturating_add(self.settings.retry.pause(attempt.nth, attempt.number));
            let next = Attempt { nth: attempt.nth + 1, previous, ..attempt };
            self.paused.insert((due, next.number), next);
        } else {
            // A client whose jobs share their input may have waited for the last of them.
            self.supply_woken();
            if verdict.ending.is_success() {
                self.finished.succeeded += 1;
            } else {
                self.finished.failed += 1;
            }
            verdict.is_decisive = self.is_halt_reached();
            verdict.is_halting = verdict.is_decisive && self.halt();
        }
        self.actions.push(Action::Conclude(Some(slot), verdict));
    }

    /// Concludes an attempt that the run will not make any more.
    pub(super) fn give_up(&mut self, mut attempt: Attempt) {
        let ending = attempt.previous.take().unwrap_or(Ending::Stopped);
        attempt.nth -= 1;
        let verdict = Verdict::new(attempt, ending, self.now, Duration::ZERO);
        self.actions.push(Action::Conclude(None, verdict));
    }

    /// Returns `true` if the last outcome met the halt policy.
    fn is_halt_reached(&self) -> bool {
        !self.is_draining && self.settings.halt.is_some_and(|halt| halt.is_reached(self.finished))
    }

    /// Starts no more jobs, and ends running ones if the policy says so. Returns `false` if no job
    /// was affected. The driver reports that together with the outcome that met the policy.
    fn halt(&mut self) -> bool {
        self.is_draining = true;
        let is_now = self.settings.halt.is_some_and(|halt| halt.when == HaltWhen::Now);
        if is_now {
            for slot in 0..self.slots.len() {
                self.terminate(slot);
            }
        }
        // Without a known total, the client may have more jobs.
        let is_supplied = self.supply == SupplyState::Ended
            || self.finished.total.is_some_and(|total| total <= self.supplied);
        // On a cluster, those on a slot may not have begun.
        let affects_running = is_now || self.settings.is_remote;
        !is_supplied || self.has_waiting() || (affects_running && self.running() > 0)
    }

    /// Applies a new median to the limits of all running attempts.
    fn follow_median(&mut self) {
        let Some(limit @ Limit::OfMedian(_)) = self.settings.limit else { return };
        let Some(limit) = self.durations.limit(limit) else { return };
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| follows_median(running)) {
                running.limit = Some(limit);
                running.escalation.reschedule(Some(running.started.saturating_add(limit)));
                running.update_timer(&mut self.timers, slot);
            }
        }
    }
}

fn follows_median(running: &Running) -> bool {
    running.ending.is_none() && !running.attempt.is_canary && running.attempt.job.deadline.is_none()
}
