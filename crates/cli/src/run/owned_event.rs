//! An event that owns its data, so that it can wait in a queue.

use std::sync::Arc;
use std::time::Duration;

use brigade::runner::{Ending, Event, Job, Outcome, Reason, Stream};

/// An [`Event`] that owns its data.
#[derive(Debug)]
pub(super) enum OwnedEvent {
    Started {
        number: u64,
        job: Arc<Job>,
        attempt: u32,
        slot: usize,
        pid: u32,
        cores: Vec<u32>,
        at: Duration,
    },
    Output {
        number: u64,
        stream: Stream,
        lines: Vec<u8>,
    },
    Retrying {
        number: u64,
        job: Arc<Job>,
        attempt: u32,
        ending: Ending,
    },
    Finished(Box<Outcome>),
    CanaryPassed {
        prelude: Option<String>,
    },
    Halting(Reason),
    Grace {
        running: usize,
        left: Duration,
    },
    Signalled {
        running: usize,
        signal: &'static str,
    },
    Stray {
        pid: u32,
        name: String,
        number: Option<u64>,
        is_gone: bool,
    },
    Tick,
}

impl OwnedEvent {
    /// Takes an event's data. Returns `None` for events that this command does not use.
    pub(super) fn new(event: Event<'_>) -> Option<Self> {
        Some(match event {
            Event::Started { number, job, attempt, slot, pid, cores, at } => {
                let (job, cores) = (Arc::clone(job), cores.to_vec());
                Self::Started { number, job, attempt, slot, pid, cores, at }
            }
            Event::Output { number, stream, lines } => {
                Self::Output { number, stream, lines: lines.to_vec() }
            }
            Event::Retrying { number, job, attempt, ending } => {
                let (job, ending) = (Arc::clone(job), ending.clone());
                Self::Retrying { number, job, attempt, ending }
            }
            Event::Finished(outcome) => Self::Finished(Box::new(outcome)),
            Event::CanaryPassed { prelude } => {
                Self::CanaryPassed { prelude: prelude.map(str::to_owned) }
            }
            Event::Halting(reason) => Self::Halting(reason),
            Event::Grace { running, left } => Self::Grace { running, left },
            Event::Signalled { running, signal } => Self::Signalled { running, signal },
            Event::Stray { pid, name, number, is_gone } => {
                Self::Stray { pid, name: name.to_owned(), number, is_gone }
            }
            Event::Tick => Self::Tick,
            _ => return None,
        })
    }

    /// Passes the event to `take` in its borrowed form.
    pub(super) fn pass_to(self, take: impl FnOnce(Event<'_>)) {
        match self {
            Self::Started { number, job, attempt, slot, pid, cores, at } => {
                take(Event::Started { number, job: &job, attempt, slot, pid, cores: &cores, at });
            }
            Self::Output { number, stream, lines } => {
                take(Event::Output { number, stream, lines: &lines });
            }
            Self::Retrying { number, job, attempt, ending } => {
                take(Event::Retrying { number, job: &job, attempt, ending: &ending });
            }
            Self::Finished(outcome) => take(Event::Finished(*outcome)),
            Self::CanaryPassed { prelude } => {
                take(Event::CanaryPassed { prelude: prelude.as_deref() });
            }
            Self::Halting(reason) => take(Event::Halting(reason)),
            Self::Grace { running, left } => take(Event::Grace { running, left }),
            Self::Signalled { running, signal } => take(Event::Signalled { running, signal }),
            Self::Stray { pid, name, number, is_gone } => {
                take(Event::Stray { pid, name: &name, number, is_gone });
            }
            Self::Tick => take(Event::Tick),
        }
    }
}
