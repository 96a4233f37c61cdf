//! The user's side of a run: supplies its jobs and receives its events.

use crate::event::Event;
use crate::job::Job;

/// Supplies the jobs of a run, and receives its events.
///
/// [`Runner::run`](crate::Runner::run) needs only an iterator and a closure. Implement this trait
/// if the next job may not be available yet, or depends on earlier events. The runner calls all
/// methods on its own thread, so they can share state through `self`.
pub trait Client {
    /// Returns the next job. Must not block: the runner's thread does everything else, too.
    fn next(&mut self) -> Supply;

    /// Returns the number of jobs still to come, if it is known.
    fn remaining(&self) -> Option<u64> {
        None
    }

    /// Handles an event. The default ignores it.
    fn event(&mut self, event: Event) {
        drop(event);
    }
}

/// The answer of a [`Client`] that was asked for a job.
#[derive(Debug)]
pub enum Supply {
    /// A job.
    Job(Box<Job>),
    /// No job yet; call [`Stopper::wake`](crate::Stopper::wake) when there is one.
    Later,
    /// There are no more jobs.
    End,
    /// The next job cannot be supplied. Running jobs may finish.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// A client that takes its jobs from an iterator and passes events to a closure.
pub(crate) struct Simple<I, F> {
    pub(crate) jobs: I,
    pub(crate) on_event: F,
}

impl<I: Iterator<Item = Job>, F: FnMut(Event)> Client for Simple<I, F> {
    fn next(&mut self) -> Supply {
        self.jobs.next().map_or(Supply::End, |job| Supply::Job(Box::new(job)))
    }

    fn remaining(&self) -> Option<u64> {
        let (least, most) = self.jobs.size_hint();
        (most == Some(least)).then_some(least as u64)
    }

    fn event(&mut self, event: Event) {
        (self.on_event)(event);
    }
}
