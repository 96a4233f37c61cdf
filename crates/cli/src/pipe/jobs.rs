//! The jobs of `--pipe` and `--pipe-part`, and the input that the jobs of `--tee` share.

use std::io;
use std::task::{Poll, ready};

use brigade::runner::{FilePart, INPUT_FILE, Stdin};

use super::Blocks;
use crate::each::Each;
use crate::input::{Ahead, Entry, Fetched, Input};
use crate::template::Template;

/// Jobs each of which runs a command on a standard input of its own.
#[derive(Debug)]
pub(crate) struct PipedJobs {
    source: Source,
    template: Template,
    /// `true` if jobs get their input as a file, which is their only argument.
    is_file: bool,
    next_number: u64,
}

/// The standard inputs of jobs.
#[derive(Debug)]
pub(crate) enum Source {
    Blocks(Blocks),
    Parts(std::vec::IntoIter<FilePart>),
}

/// The standard input that jobs have in common.
pub(crate) enum SharedInput {
    /// A file, which each job reads at its own pace.
    File(FilePart),
    /// A stream, which is read once. It is as fast as the slowest job, so all jobs must run at
    /// once.
    Stream(Blocks),
}

impl PipedJobs {
    pub(crate) fn new(source: Source, template: Template, is_file: bool) -> Self {
        Self { source, template, is_file, next_number: 1 }
    }
}

impl Input for PipedJobs {
    fn next(&mut self, waits: bool) -> Fetched {
        let stdin = match &mut self.source {
            Source::Blocks(blocks) => ready!(blocks.next(waits)?),
            Source::Parts(parts) => parts.next().map(Stdin::Part),
        };
        let Some(stdin) = stdin else { return Poll::Ready(None) };
        let number = self.next_number;
        self.next_number += 1;
        let file = self.is_file.then(|| INPUT_FILE.into());
        let job = self.template.job(number, file.as_slice())?.stdin(stdin);
        let job = job.each(file, |job, _| job.input_as_file());
        Poll::Ready(Some(Ok(Box::new(Entry::new(number, job, Vec::new())))))
    }

    fn ahead(&self) -> Ahead {
        match &self.source {
            Source::Blocks(blocks) => blocks.read_ahead.after(self.next_number - 1),
            Source::Parts(parts) => Ahead::all(parts.len()),
        }
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let Source::Parts(parts) = &self.source else { return Ok(None) };
        let source = Source::Parts(parts.clone());
        Ok(Some(Box::new(Self::new(source, self.template.clone(), self.is_file))))
    }

    fn close(&mut self) {
        if let Source::Blocks(blocks) = &self.source {
            blocks.close(self.next_number - 1);
        }
    }
}

impl SharedInput {
    /// Returns the input of the job at this index.
    pub(crate) fn of(&self, index: u64) -> Stdin {
        match self {
            Self::File(file) => Stdin::Part(file.clone()),
            Self::Stream(blocks) => blocks.stream(usize::try_from(index).unwrap_or(usize::MAX)),
        }
    }
}
