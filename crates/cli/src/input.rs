//! Reads jobs from the command line, a file, or standard input.

mod entry;
mod file;
mod lists;
mod shuffle;
mod stream;

use entry::Specification;
use file::jobs_of_json_line;
pub(crate) use file::{Format, JsonError, jobs_of_toml};
pub(crate) use lists::{Lists, check as check_lists, cycled, linked, read as read_lists, split};
pub(crate) use shuffle::Shuffled;
pub(crate) use stream::{Lines, Meaning};

use std::error::Error;
use std::ffi::OsString;
use std::io;

use brigade::runner::Job;

/// A job with the arguments that were inserted into its command.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) job: Job,
    /// Needed for tags and for the results directory.
    pub(crate) arguments: Vec<OsString>,
}

/// The answer of an input.
#[derive(Debug)]
pub(crate) enum Fetch {
    Entry(Box<Entry>),
    /// No job yet; the runner will be woken when there is one.
    Later,
    End,
    Failed(Box<dyn Error + Send + Sync>),
}

/// An input that yields jobs.
pub(crate) trait Input {
    /// Returns the next job without waiting for it.
    fn fetch(&mut self) -> Fetch;

    /// Waits for the next job and returns it.
    fn fetch_blocking(&mut self) -> Fetch {
        self.fetch()
    }

    /// Returns the number of jobs still to come, if known.
    fn remaining(&self) -> Option<u64>;

    /// Returns the number of jobs that are known to come, even if the end of the list is not.
    fn read_ahead(&self) -> u64 {
        self.remaining().unwrap_or(0)
    }

    /// Returns an input that yields all jobs from the first, if they can be read twice.
    fn again(&self) -> io::Result<Option<Box<dyn Input>>>;
}

/// An input whose jobs have all been read.
#[derive(Debug, Clone)]
pub(crate) struct Ready(std::vec::IntoIter<Entry>);

impl Ready {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self(entries.into_iter())
    }
}

impl Input for Ready {
    fn fetch(&mut self) -> Fetch {
        self.0.next().map_or(Fetch::End, |entry| Fetch::Entry(Box::new(entry)))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(Some(Box::new(self.clone())))
    }
}
