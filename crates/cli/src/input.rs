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
pub(crate) use lists::{Combinations, Dimension, check as check_lists, cycled, linked};
pub(crate) use records::LineRows;
pub(crate) use rows::{Columns, OpenQuote, Row, RowReader, RowRules, Trim};
pub(crate) use shuffle::shuffled;
pub(crate) use sources::{List, ListError, ListOrigin, Separators, split};
pub(crate) use stream::{Framing, Lines, ReadAhead, receive};

use std::error::Error;
use std::ffi::OsString;
use std::io;

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

/// The answer of an input: a job, or what jobs are made from.
#[derive(Debug)]
pub(crate) enum Fetch<T = Box<Entry>> {
    Entry(T),
    /// Nothing yet; the runner will be woken when there is something.
    Later,
    End,
}

/// The answer of an input, or the reason why there is none.
pub(crate) type Fetched<T = Box<Entry>> = Result<Fetch<T>, Problem>;

/// The reason why there are no more jobs.
pub(crate) type Problem = Box<dyn Error + Send + Sync>;

/// An input that yields jobs, or what jobs are made from.
pub(crate) trait Input<T = Box<Entry>> {
    /// Returns the next one, and waits for it if `waits` is set.
    fn next(&mut self, waits: bool) -> Fetched<T>;

    /// Returns the number of those still to come, if known.
    fn remaining(&self) -> Option<u64>;

    /// Returns the number of those that are known to come, even if the end of the list is not.
    fn read_ahead(&self) -> u64 {
        self.remaining().unwrap_or(0)
    }

    /// Returns an input that yields all of them from the first, if they can be read twice.
    fn again(&self) -> io::Result<Option<Box<dyn Input<T>>>>;

    /// Takes note that no more will be fetched, while jobs that were may still run.
    fn close(&mut self) {}
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
    fn next(&mut self, _: bool) -> Fetched {
        Ok(self.0.next().map_or(Fetch::End, |entry| Fetch::Entry(Box::new(entry))))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(Some(Box::new(self.clone())))
    }
}
