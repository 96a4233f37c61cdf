//! Jobs whose lines run in a shell of the user's choice.

use std::ffi::OsString;
use std::io;

use super::{Fetch, Input};

/// An input whose lines run in this shell.
#[derive(Debug)]
pub(crate) struct InShell<I: ?Sized> {
    shell: OsString,
    input: Box<I>,
}

impl<I: Input + ?Sized> InShell<I> {
    pub(crate) fn new(input: Box<I>, shell: OsString) -> Self {
        Self { shell, input }
    }

    fn set(&self, fetch: Fetch) -> Fetch {
        match fetch {
            Fetch::Entry(mut entry) => {
                entry.job = entry.job.in_shell(&self.shell);
                Fetch::Entry(entry)
            }
            other => other,
        }
    }
}

impl<I: Input + ?Sized> Input for InShell<I> {
    fn fetch(&mut self) -> Fetch {
        let fetch = self.input.fetch();
        self.set(fetch)
    }

    fn fetch_blocking(&mut self) -> Fetch {
        let fetch = self.input.fetch_blocking();
        self.set(fetch)
    }

    fn remaining(&self) -> Option<u64> {
        self.input.remaining()
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let Some(input) = self.input.again()? else { return Ok(None) };
        Ok(Some(Box::new(InShell { shell: self.shell.clone(), input })))
    }
}
