//! The end of an attempt: whether there is another, and whether the run goes on.

use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Exit;

use super::{Attempt, Cause, Course, Machine, Running, set_timer};
use crate::halt::HaltWhen;
use crate::limit::Limit;
use crate::outcome::{Ending, StartFailure};

/// What an ended attempt means.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) attempt: Attempt,
    pub(crate) ending: Ending,
    /// How long it took.
    pub(crate) wall: Duration,
    /// Whether another attempt will be made.
    pub(crate) is_retried: bool,
    /// Whether this outcome met the halt policy.
    pub(crate) is_halting: bool,
}

impl Machine {
    /// The attempt on this slot was reaped, and its cores are free again.
    pub(crate) fn exited(&mut self, slot: usize, exit: Exit, now: Monotonic) -> Option<Verdict> {
        self.over(slot, Some(exit), now)
    }

    /// The attempt on this slot still runs, and nothing can be done about it.
    pub(crate) fn abandoned(&mut self, slot: usize, now: Monotonic) -> Option<Verdict> {
        self.over(slot, None, now)
    }

    fn over(&mut self, slot: usize, exit: Option<Exit>, now: Monotonic) -> Option<Verdict> {
        let mut running = self.slots[slot].take()?;
        set_timer(&mut self.timers, slot, &mut running, None);
        self.free.insert(slot);
        self.room = true;
        let wall = now.saturating_since(running.started);
        let ending = match running.ending {
            _ if exit.is_none() => Ending::NotKilled,
            Some(Cause::TimedOut(limit)) => Ending::TimedOut { limit },
            // It may have ended cleanly all the same, but nobody knows whether it had finished what it was to do.
            Some(Cause::Stopped) => Ending::Stopped,
            None => exit.map_or(Ending::NotKilled, Ending::from),
        };
        if ending.is_success() && !running.attempt.is_canary {
            self.durations.record(wall);
            self.follow_median();
        }
        Some(self.judge(running.attempt, ending, wall, now))
    }

    /// What was to be started on this slot could not be.
    pub(crate) fn start_failed(
        &mut self,
        slot: usize,
        attempt: Attempt,
        failure: StartFailure,
        now: Monotonic,
    ) -> Verdict {
        self.free.insert(slot);
        self.room = true;
        self.judge(attempt, Ending::NotStarted(failure), Duration::ZERO, now)
    }

    fn judge(
        &mut self,
        attempt: Attempt,
        ending: Ending,
        wall: Duration,
        now: Monotonic,
    ) -> Verdict {
        if attempt.is_canary {
            self.canary_ended(&attempt, ending.is_success());
            return Verdict { attempt, ending, wall, is_retried: false, is_halting: false };
        }
        let retries = attempt.job.retries.unwrap_or(self.settings.retries);
        let is_retried =
            self.course == Course::Running && ending.is_worth_a_retry() && attempt.nth <= retries;
        let mut is_halting = false;
        if is_retried {
            // Behind what waits already: a wide job that is next must not wait for retries of narrow ones.
            let (nth, before) = (attempt.nth + 1, Some(ending.clone()));
            self.waiting.push_back(Attempt { nth, before, ..attempt.clone() });
        } else {
            if ending.is_success() {
                self.finished.succeeded += 1;
            } else {
                self.finished.failed += 1;
            }
            is_halting = self.halt_if_reached(now);
        }
        Verdict { attempt, ending, wall, is_retried, is_halting }
    }

    /// An attempt that the run will not make any more.
    pub(super) fn give_up(mut attempt: Attempt) -> Verdict {
        let ending = attempt.before.take().unwrap_or(Ending::Stopped);
        attempt.nth -= 1;
        let (wall, is_retried, is_halting) = (Duration::ZERO, false, false);
        Verdict { attempt, ending, wall, is_retried, is_halting }
    }

    /// The driver tells of it, together with the outcome that the policy waited for.
    fn halt_if_reached(&mut self, now: Monotonic) -> bool {
        let Some(halt) = self.settings.halt else { return false };
        if self.course != Course::Running || !halt.is_reached(self.finished) {
            return false;
        }
        self.course = Course::Draining;
        if halt.when == HaltWhen::Now {
            for slot in 0..self.slots.len() {
                self.terminate(slot, Cause::Stopped, now);
            }
        }
        true
    }

    /// A new median moves the limits of all that run.
    fn follow_median(&mut self) {
        let Some(limit @ Limit::OfMedian(_)) = self.settings.limit else { return };
        let Some(limit) = self.durations.limit(limit) else { return };
        for (slot, running) in self.slots.iter_mut().enumerate() {
            if let Some(running) = running.as_mut().filter(|running| follows_median(running)) {
                running.limit = Some(limit);
                let time = running.started.saturating_add(limit);
                set_timer(&mut self.timers, slot, running, Some(time));
            }
        }
    }
}

fn follows_median(running: &Running) -> bool {
    running.ending.is_none() && !running.attempt.is_canary && running.attempt.job.deadline.is_none()
}
