//! Jobs from a command with replacement strings and the rows of its lists.

use std::io;

use super::{Entry, Fetch, Input, Records};
use crate::template::Template;

/// A job for each row.
pub(crate) struct Jobs {
    records: Box<dyn Records>,
    template: Template,
    next_number: u64,
}

impl Jobs {
    pub(crate) fn new(template: Template, records: Box<dyn Records>) -> Self {
        Self { records, template, next_number: 1 }
    }

    fn next(&mut self, waits: bool) -> Fetch {
        let arguments = match self.records.next(waits) {
            Fetch::Entry(row) => row,
            Fetch::Later => return Fetch::Later,
            Fetch::End => return Fetch::End,
            Fetch::Failed(error) => return Fetch::Failed(error),
        };
        let number = self.next_number;
        self.next_number += 1;
        match self.template.job(number, &arguments) {
            Ok(job) => Fetch::Entry(Box::new(Entry { number, job, arguments })),
            Err(error) => Fetch::Failed(Box::new(error)),
        }
    }
}

impl Input for Jobs {
    fn fetch(&mut self) -> Fetch {
        self.next(false)
    }

    fn fetch_blocking(&mut self) -> Fetch {
        self.next(true)
    }

    fn remaining(&self) -> Option<u64> {
        self.records.remaining()
    }

    fn read_ahead(&self) -> u64 {
        self.records.read_ahead()
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let Some(records) = self.records.again()? else { return Ok(None) };
        Ok(Some(Box::new(Self::new(self.template.clone(), records))))
    }
}
