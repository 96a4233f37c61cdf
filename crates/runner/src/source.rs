//! Where jobs come from.

use crate::job::Job;

/// Where a runner takes jobs from, one at a time, when there is a place for it.
///
/// [`Jobs`] makes one of anything that iterates. Write your own if the next job may not be there yet.
pub trait Source {
    /// The next job. It must not block, as nothing else happens meanwhile.
    fn next(&mut self) -> Supply;

    /// How many jobs are still to come, if that is known.
    fn remaining(&self) -> Option<u64> {
        None
    }
}

/// What a source answers.
#[derive(Debug)]
pub enum Supply {
    /// A job.
    Job(Box<Job>),
    /// None yet: the runner's [`Stopper::wake`](crate::Stopper::wake) will tell when there is one.
    Later,
    /// There are no more.
    End,
    /// The next job cannot be read. Those that run may finish.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// The jobs of an iterator.
#[derive(Debug)]
pub struct Jobs<I>(pub I);

impl<I: Iterator<Item = Job>> Source for Jobs<I> {
    fn next(&mut self) -> Supply {
        self.0.next().map_or(Supply::End, |job| Supply::Job(Box::new(job)))
    }

    fn remaining(&self) -> Option<u64> {
        let (least, most) = self.0.size_hint();
        (most == Some(least)).then_some(least as u64)
    }
}
