//! The end of an attempt: whether there is another, and whether the run goes on.

use std::time::Duration;

use brigade_sys::clock::Monotonic;
use brigade_sys::process::Exit;

use super::{Action, Attempt, Cause, Course, Machine, Notice, Running, set_timer};
use crate::event::Reason;
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
}

impl Machine {
    /// The attempt on this slot was reaped, and its cores are free again.
    pub(crate) fn exited(&mut self, slot: usize, exit: Exit, now: Monotonic) -> Option<Verdict> {
        let mut running = self.slots[slot].take()?;
        set_timer(&mut self.timers, slot, &mut running, None);
        self.free.insert(slot);
        self.room = true;
        let wall = now.saturating_since(running.started);
        let ending = match running.ending {
            Some(Cause::TimedOut(limit)) => Ending::TimedOut { limit },
            // It may have ended cleanly all the same, but nobody knows whether it had finished what it was to do.
            Some(Cause::Stopped) => Ending::Stopped,
            None => exit.into(),
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
            return Verdict { attempt, ending, wall, is_retried: false };
        }
        let retries = attempt.job.retries.unwrap_or(self.settings.retries);
        let is_retried =
            self.course == Course::Running && ending.is_worth_a_retry() && attempt.nth <= retries;
        if is_retried {
            // Behind what waits already: a wide job that is next must not wait for retries of narrow ones.
            self.waiting.push_back(Attempt { nth: attempt.nth + 1, ..attempt.clone() });
        } else {
            if ending.is_success() {
                self.finished.succeeded += 1;
            } else {
                self.finished.failed += 1;
            }
            self.halt_if_reached(now);
        }
        Verdict { attempt, ending, wall, is_retried }
    }

    fn halt_if_reached(&mut self, now: Monotonic) {
        let Some(halt) = self.settings.halt else { return };
        if self.course == Course::Running && halt.is_reached(self.finished) {
            self.course = Course::Draining;
            self.orders.push_back(Action::Tell(Notice::Halting(Reason::Halted)));
            if halt.when == HaltWhen::Now {
                for slot in 0..self.slots.len() {
                    self.terminate(slot, Cause::Stopped, now);
                }
            }
        }
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
