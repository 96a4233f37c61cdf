//! Reports the end of attempts, and notices of the machine.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use brigade_supervisor::Captured;

use super::{Drive, Place};
use crate::error::RunnerError;
use crate::event::{Event, Reason};
use crate::machine::{Notice, Verdict};
use crate::outcome::{Ending, Outcome};

/// The data of an attempt that is over, besides its verdict.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) cores: Vec<u32>,
    pub(super) user: Duration,
    pub(super) system: Duration,
    /// The largest memory of the job, if it is known.
    pub(super) peak_memory: Option<u64>,
    pub(super) stdout: Captured,
    pub(super) stderr: Captured,
    /// The host, if it was another one.
    pub(super) host: Option<Arc<str>>,
    /// The number of its slot on that host.
    pub(super) marked_slot: Option<usize>,
    /// The time of day at its start by the clock of that host, if it is known.
    pub(super) started_at: Option<SystemTime>,
}

/// Number of bytes of each stream quoted in the error of a failed canary.
const TAIL_BYTES: usize = 2000;

impl Collected {
    fn output_tail(&self) -> String {
        let words = [&self.stdout, &self.stderr].map(|stream| {
            String::from_utf8_lossy(&stream.tail(TAIL_BYTES).unwrap_or_default()).into_owned()
        });
        words.concat().trim().to_owned()
    }
}

impl<P: Place> Drive<'_, P> {
    pub(super) fn conclude(&mut self, slot: Option<usize>, verdict: Verdict) {
        let collected = slot.and_then(|slot| self.collected.remove(&slot)).unwrap_or_default();
        let Verdict { attempt, ending, time, wall, is_retried, is_decisive, is_halting } = verdict;
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
            marked_slot: collected.marked_slot,
            host: collected.host,
            peak_memory: collected.peak_memory,
            cores: collected.cores,
            started,
            started_at: collected.started_at.unwrap_or_else(|| self.clock.time_of_day(started)),
            wall,
            user: collected.user,
            system: collected.system,
            stdout: collected.stdout,
            stderr: collected.stderr,
        };
        if is_retried {
            self.client.event(Event::Retrying(outcome));
            return;
        }
        outcome.job.release_stdin();
        self.summary.count(&outcome);
        self.client.event(Event::Finished(outcome));
        if is_halting {
            self.notify(Notice::Halting(Reason::Halted));
        }
    }

    pub(super) fn notify(&mut self, notice: Notice) {
        if let Notice::Halting(reason) = notice {
            self.summary.halted = Some(reason);
            self.place.halting();
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
