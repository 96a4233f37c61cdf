//! Reads jobs from the command line, a file, or standard input.

mod adjusted;
mod commands;
mod csv;
mod entry;
mod file;
mod groups;
mod jobs;
mod lists;
mod plain;
mod records;
mod rows;
mod shuffle;
mod sources;
mod stream;

pub(crate) use adjusted::{Adjusted, Adjustments, text_of_start};
pub(crate) use commands::Commands;
use entry::Specification;
use file::jobs_of_json_line;
pub(crate) use file::{Format, JsonError, jobs_of_toml};
pub(crate) use groups::{Groups, RowSharing, TooLong};
pub(crate) use jobs::Jobs;
pub(crate) use lists::{Combinations, check as check_lists, cycled, linked};
pub(crate) use records::LineRows;
pub(crate) use rows::{Columns, OpenQuote, Row, RowReader, RowRules, Trim};
pub(crate) use shuffle::shuffled;
pub(crate) use sources::{List, ListError, ListOrigin, Separators, split};
pub(crate) use stream::{Framing, LineOrigin, Lines, ReadAhead, receive};

use std::error::Error;
use std::ffi::OsString;
use std::io;
use std::task::Poll;

use brigade::runner::Job;

use crate::printer::Tag;

/// A job with the arguments that were inserted into its command.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) job: Job,
    /// Needed for tags and for the results directory.
    pub(crate) arguments: Vec<OsString>,
    /// The prefix of each line of its output.
    pub(crate) tag: Tag,
}

impl Entry {
    /// Returns a job without a tag.
    pub(crate) fn new(number: u64, job: Job, arguments: Vec<OsString>) -> Self {
        Self { number, job, arguments, tag: Tag::default() }
    }
}

/// The answer of an input: a job, or what jobs are made from; `None` at the end, or the reason why
/// there is none. If there is nothing yet, the runner will be woken when there is something.
pub(crate) type Fetched<T = Box<Entry>> = Poll<Option<Result<T, Problem>>>;

/// The reason why there are no more jobs.
pub(crate) type Problem = Box<dyn Error + Send + Sync>;

/// An input that yields jobs, or what jobs are made from.
pub(crate) trait Input<T = Box<Entry>> {
    /// Returns the next one, and waits for it if `waits` is set.
    fn next(&mut self, waits: bool) -> Fetched<T>;

    /// Returns the number of those still to come, as far as it is known.
    fn ahead(&self) -> Ahead;

    /// Returns an input that yields all of them from the first, if they can be read twice.
    fn again(&self) -> io::Result<Option<Box<dyn Input<T>>>>;

    /// Takes note that no more will be fetched, while jobs that were may still run.
    fn close(&mut self) {}
}

/// The number of jobs, rows or lines that are known to come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    pub(crate) count: u64,
    /// `true` if no others come.
    pub(crate) is_all: bool,
}

impl Ahead {
    pub(crate) fn all(count: usize) -> Self {
        Self { count: count as u64, is_all: true }
    }

    /// Returns the number of all that come, if it is known.
    pub(crate) fn total(self) -> Option<u64> {
        self.is_all.then_some(self.count)
    }
}

/// An input whose jobs have all been read.
#[derive(Debug, Clone)]
pub(crate) struct Ready(pub(crate) std::vec::IntoIter<Entry>);

impl Input for Ready {
    fn next(&mut self, _: bool) -> Fetched {
        Poll::Ready(self.0.next().map(|entry| Ok(Box::new(entry))))
    }

    fn ahead(&self) -> Ahead {
        Ahead::all(self.0.len())
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(Some(Box::new(self.clone())))
    }
}
