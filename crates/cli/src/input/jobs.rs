//! Jobs from a command with replacement strings and the rows of its lists.

use std::ffi::OsString;
use std::io;
use std::task::{Poll, ready};

use brigade::runner::Job;

use super::{Ahead, Entry, Fetched, Groups, Input, Problem, Row, RowSharing, TooLong};
use crate::each::Each;
use crate::pipe::SharedInput;
use crate::template::Template;

/// A job for each row, or for several.
pub(crate) struct Jobs {
    records: Box<dyn Input<Row>>,
    groups: Groups,
    sharing: RowSharing,
    template: Template,
    next_number: u64,
    shared: Option<SharedInput>,
    /// `true` once the last row was read.
    is_over: bool,
}

impl Jobs {
    pub(crate) fn new(
        template: Template,
        records: Box<dyn Input<Row>>,
        sharing: RowSharing,
    ) -> Self {
        let groups = Groups::new(sharing.clone());
        Self { records, groups, sharing, template, next_number: 1, shared: None, is_over: false }
    }

    /// Reads all rows, for commands that contain the number of all jobs.
    pub(crate) fn read_all(&mut self) -> Result<(), Problem> {
        while !self.is_over {
            let _ = self.read(true)?;
        }
        self.template.total = self.groups.ready.len() as u64;
        Ok(())
    }

    /// Gives all jobs the same standard input.
    pub(crate) fn sharing_input(self, input: SharedInput) -> Self {
        Self { shared: Some(input), ..self }
    }

    /// Reads one row, or the end of the rows.
    fn read(&mut self, waits: bool) -> Poll<Result<(), Problem>> {
        let Some(row) = ready!(self.records.next(waits)?) else {
            self.is_over = true;
            self.groups.finish();
            return Poll::Ready(Ok(()));
        };
        let number = self.next_number + self.groups.ready.len() as u64;
        let limit = self.sharing.limit;
        let (base, length) = match limit {
            usize::MAX => (0, 0),
            _ => (self.template.base_length(number), self.length_of(&row)),
        };
        let pushed = self.groups.push(row, base, length);
        pushed.map_err(|length| TooLong { number, length, limit })?;
        Poll::Ready(Ok(()))
    }

    fn length_of(&self, row: &Row) -> usize {
        // Jobs that get a position from each of many rows are not estimated as a whole.
        let first: usize = self.groups.pending.first().map_or(0, Vec::len);
        let first = first * self.groups.pending.len();
        let lengths = (first..).zip(row);
        lengths.map(|(index, argument)| self.template.length_of(argument, index)).sum()
    }

    /// Returns the number of rows that were read and not used.
    fn held(&self) -> u64 {
        let ready = self.groups.ready.len().saturating_mul(self.sharing.most.max(1));
        (ready + self.groups.pending.len()) as u64
    }
}

impl Input for Jobs {
    fn next(&mut self, waits: bool) -> Fetched {
        let rows = loop {
            if let Some(rows) = self.groups.pop() {
                break rows;
            }
            if !self.is_over {
                ready!(self.read(waits)?);
                continue;
            }
            if let Some(SharedInput::Stream(blocks)) = self.shared.as_mut().filter(|_| !waits) {
                // A run is over only when all of the input was read, or is not needed.
                ready!(blocks.next(waits)?);
            }
            return Poll::Ready(None);
        };
        let number = self.next_number;
        self.next_number += 1;
        let arguments: Vec<OsString> =
            if self.sharing.most == 0 { Vec::new() } else { rows.concat() };
        let job = self.template.job(number, &arguments)?;
        let shared = self.shared.as_ref().map(|shared| shared.of(number - 1));
        let entry = Entry::new(number, job.each(shared, Job::stdin), arguments);
        Poll::Ready(Some(Ok(Box::new(entry))))
    }

    fn ahead(&self) -> Ahead {
        let ready = Ahead { count: self.groups.ready.len() as u64, is_all: self.is_over };
        if self.is_over {
            return ready;
        }
        let rows = self.records.ahead();
        let jobs = self.sharing.jobs(rows.count.saturating_add(self.held()));
        jobs.map_or(ready, |count| Ahead { count, ..rows })
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let shared = match &self.shared {
            None => None,
            Some(SharedInput::File(file)) => Some(SharedInput::File(file.clone())),
            Some(SharedInput::Stream(_)) => return Ok(None),
        };
        let Some(records) = self.records.again()? else { return Ok(None) };
        let jobs = Self::new(self.template.clone(), records, self.sharing.clone());
        Ok(Some(Box::new(Self { shared, ..jobs })))
    }

    fn close(&mut self) {
        if let Some(SharedInput::Stream(blocks)) = &self.shared {
            blocks.close(self.next_number - 1);
        }
    }
}
