//! Reports the end of attempts, and notices of the machine.

use std::time::SystemTime;

use super::{Drive, Place};
use crate::error::RunnerError;
use crate::event::{Event, Reason};
use crate::machine::Verdict;
use crate::outcome::{Ending, Outcome};

/// Number of bytes of each stream quoted in the error of a failed canary.
const TAIL_BYTES: usize = 2000;

impl<P: Place> Drive<'_, P> {
    pub(super) fn conclude(&mut self, slot: Option<usize>, verdict: Verdict) {
        let Verdict { attempt, ending, time, wall, is_retried, is_decisive, is_halting } = verdict;
        let collected = slot.and_then(|slot| self.collected.remove(&slot));
        let collected = collected.unwrap_or_else(|| attempt.outcome());
        tracing::debug!(number = attempt.number, %ending, "job ended");
        if attempt.is_canary {
            let prelude = attempt.job.prelude.clone();
            if ending.is_success() {
                self.client.event(Event::CanaryPassed { prelude });
            } else if ending != Ending::Stopped {
                let output = output_tail(&collected);
                self.fail(RunnerError::Canary { prelude, ending, output });
            }
            return;
        }
        let started = time.saturating_since(self.start).saturating_sub(wall);
        // Another host tells by its own clock.
        let is_known = collected.started_at > SystemTime::UNIX_EPOCH;
        let ours = self.clock.time_of_day(started);
        let outcome = Outcome {
            ending,
            is_decisive,
            attempts: attempt.nth,
            slot: slot.map_or(0, |slot| slot + 1),
            started,
            started_at: if is_known { collected.started_at } else { ours },
            wall,
            ..collected
        };
        if is_retried {
            self.client.event(Event::Retrying(outcome));
            return;
        }
        outcome.job.release_stdin();
        self.summary.count(&outcome);
        self.client.event(Event::Finished(outcome));
        if is_halting {
            self.notify(Event::Halting(Reason::Halted));
        }
    }

    pub(super) fn notify(&mut self, notice: Event) {
        if let Event::Halting(reason) = notice {
            self.summary.halted = Some(reason);
            self.place.halting();
        }
        self.client.event(notice);
    }
}

fn output_tail(outcome: &Outcome) -> String {
    let words = [&outcome.stdout, &outcome.stderr].map(|stream| {
        String::from_utf8_lossy(&stream.tail(TAIL_BYTES).unwrap_or_default()).into_owned()
    });
    words.concat().trim().to_owned()
}
