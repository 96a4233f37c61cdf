//! Reports the end of attempts, and notices of the machine.

use brigade_sys::clock::Monotonic;

use super::Drive;
use super::attempt::Collected;
use crate::error::RunnerError;
use crate::event::{Event, Reason};
use crate::machine::{Notice, Verdict};
use crate::outcome::{Ending, Outcome};

impl Drive<'_> {
    pub(super) fn conclude(
        &mut self,
        slot: Option<usize>,
        verdict: Verdict,
        time: Monotonic,
        collected: Collected,
    ) {
        let Verdict { attempt, ending, wall, is_retried, is_decisive, is_halting } = verdict;
        tracing::debug!(number = attempt.number, %ending, "job ended");
        if attempt.is_canary {
            let prelude = attempt.job.prelude.clone();
            if ending.is_success() {
                self.client.event(Event::CanaryPassed { prelude });
            } else if ending != Ending::Stopped {
                let output = collected.output_tail();
                self.fail(RunnerError::Canary { prelude, ending, output });
            }
            return;
        }
        let started = time.saturating_since(self.start).saturating_sub(wall);
        let outcome = Outcome {
            number: attempt.number,
            job: attempt.job,
            ending,
            is_decisive,
            attempts: attempt.nth,
            slot: slot.map_or(0, |slot| slot + 1),
            marked_slot: None,
            host: None,
            peak_memory: collected.peak_memory(),
            cores: collected.cores,
            started,
            started_at: self.clock.time_of_day(started),
            wall,
            user: collected.usage.user,
            system: collected.usage.system,
            stdout: collected.stdout,
            stderr: collected.stderr,
        };
        if is_retried {
            self.client.event(Event::Retrying(outcome));
            return;
        }
        outcome.job.release_stdin();
        // A client whose jobs share their input may have waited for the last of them.
        self.machine.supply_woken();
        self.summary.count(&outcome);
        self.client.event(Event::Finished(outcome));
        if is_halting {
            self.notify(Notice::Halting(Reason::Halted));
        }
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        if let Notice::Halting(reason) = notice {
            self.summary.halted = Some(reason);
        }
        self.client.event(notice.into());
    }
}

impl From<Notice> for Event {
    fn from(notice: Notice) -> Self {
        match notice {
            Notice::Halting(reason) => Self::Halting(reason),
            Notice::Grace { running, left } => Self::Grace { running, left },
            Notice::Signalled { running, signal } => Self::Signalled { running, signal },
            Notice::Waiting(need) => Self::Waiting { need },
            Notice::Tick => Self::Tick,
        }
    }
}
