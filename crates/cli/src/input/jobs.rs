//! Jobs from a command with replacement strings and the rows of its lists.

use std::ffi::OsString;
use std::io;

use super::{Entry, Fetch, Fetched, Groups, Input, Problem, Row, RowSharing, TooLong};
use crate::template::Template;

/// A job for each row, or for several.
pub(crate) struct Jobs {
    records: Box<dyn Input<Row>>,
    groups: Groups,
    sharing: RowSharing,
    template: Template,
    next_number: u64,
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
        Self { records, groups, sharing, template, next_number: 1, is_over: false }
    }

    /// Reads all rows, for commands that contain the number of all jobs.
    pub(crate) fn read_all(&mut self) -> Result<(), Problem> {
        while !self.is_over {
            self.read(true)?;
        }
        self.template.total = self.groups.ready() as u64;
        Ok(())
    }

    /// Returns all jobs from the first, if they can be read twice.
    pub(crate) fn read_again(&self) -> io::Result<Option<Self>> {
        let Some(records) = self.records.again()? else { return Ok(None) };
        Ok(Some(Self::new(self.template.clone(), records, self.sharing.clone())))
    }

    /// Reads one row.
    fn read(&mut self, waits: bool) -> Fetched<()> {
        let row = match self.records.next(waits)? {
            Fetch::Entry(row) => row,
            Fetch::End => {
                self.is_over = true;
                self.groups.finish();
                return Ok(Fetch::Entry(()));
            }
            Fetch::Later => return Ok(Fetch::Later),
        };
        let number = self.next_number + self.groups.ready() as u64;
        let limit = self.sharing.limit;
        let (base, length) = match limit {
            usize::MAX => (0, 0),
            _ => (self.template.base_length(number), self.length_of(&row)),
        };
        let pushed = self.groups.push(row, base, length);
        pushed.map_err(|length| TooLong { number, length, limit })?;
        Ok(Fetch::Entry(()))
    }

    fn length_of(&self, row: &Row) -> usize {
        // Jobs that get a position from each of many rows are not estimated as a whole.
        let first: usize = self.groups.pending().first().map_or(0, Vec::len);
        let first = first * self.groups.pending().len();
        let lengths = (first..).zip(row);
        lengths.map(|(index, argument)| self.template.length_of(argument, index)).sum()
    }

    /// Returns the number of rows that were read and not used.
    fn held(&self) -> u64 {
        let ready = self.groups.ready().saturating_mul(self.sharing.most.max(1));
        (ready + self.groups.pending().len()) as u64
    }
}

impl Input for Jobs {
    fn next(&mut self, waits: bool) -> Fetched {
        let rows = loop {
            if let Some(rows) = self.groups.pop() {
                break rows;
            }
            if self.is_over {
                return Ok(Fetch::End);
            }
            if let Fetch::Later = self.read(waits)? {
                return Ok(Fetch::Later);
            }
        };
        let number = self.next_number;
        self.next_number += 1;
        let arguments: Vec<OsString> =
            if self.sharing.most == 0 { Vec::new() } else { rows.concat() };
        let job = self.template.job(number, &arguments)?;
        Ok(Fetch::Entry(Box::new(Entry::new(number, job, arguments))))
    }

    fn remaining(&self) -> Option<u64> {
        if self.is_over {
            return Some(self.groups.ready() as u64);
        }
        self.sharing.jobs(self.records.remaining()?.saturating_add(self.held()))
    }

    fn read_ahead(&self) -> u64 {
        let rows = self.records.read_ahead().saturating_add(self.held());
        let ready = self.groups.ready() as u64;
        self.remaining().or_else(|| self.sharing.jobs(rows)).unwrap_or(ready)
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(self.read_again()?.map(|jobs| -> Box<dyn Input> { Box::new(jobs) }))
    }
}
