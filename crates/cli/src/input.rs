//! Where jobs come from: arguments of the command line, a file, or standard input.

mod entry;
mod file;
mod lists;
mod shuffle;
mod stream;

use entry::Specification;
use file::jobs_of_json_line;
pub(crate) use file::{Format, jobs_of_toml};
pub(crate) use lists::{Lists, check as check_lists, read as read_lists, split};
pub(crate) use shuffle::Shuffled;
pub(crate) use stream::{Lines, Meaning};

use std::error::Error;
use std::ffi::OsString;

use brigade::runner::Job;

/// A job, with the arguments that were put into its command.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) job: Job,
    /// For tags and folders of results.
    pub(crate) arguments: Vec<OsString>,
}

/// What an input answers.
#[derive(Debug)]
pub(crate) enum Fetch {
    Entry(Box<Entry>),
    /// None yet; the runner will be woken.
    Later,
    End,
    Failed(Box<dyn Error + Send + Sync>),
}

/// Where jobs come from.
pub(crate) trait Input {
    /// The next job, without waiting for it.
    fn fetch(&mut self) -> Fetch;

    /// The next job, waiting for it.
    fn fetch_blocking(&mut self) -> Fetch {
        self.fetch()
    }

    /// How many are still to come, if that is known.
    fn remaining(&self) -> Option<u64>;
}

/// Jobs that are all there.
#[derive(Debug)]
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
}
