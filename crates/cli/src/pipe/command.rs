//! The command of `--pipe`, which each job runs on a block of its own.

use brigade::runner::{INPUT_FILE, Stdin};

use crate::input::{Entry, Fetch, Fetched};
use crate::template::Template;

/// A command for blocks.
#[derive(Debug, Clone)]
pub(crate) struct PipedCommand {
    template: Template,
    is_file: bool,
    next_number: u64,
}

impl PipedCommand {
    /// With `is_file`, jobs get their blocks as a file, which is their only argument.
    pub(crate) fn new(template: Template, is_file: bool) -> Self {
        Self { template, is_file, next_number: 1 }
    }

    /// Returns the number of jobs so far.
    pub(super) fn jobs(&self) -> u64 {
        self.next_number - 1
    }

    /// Returns the next job.
    pub(super) fn job(&mut self, stdin: Stdin) -> Fetched {
        let number = self.next_number;
        self.next_number += 1;
        let arguments = if self.is_file { vec![INPUT_FILE.into()] } else { Vec::new() };
        let job = self.template.job(number, &arguments)?.stdin(stdin);
        let job = if self.is_file { job.input_as_file() } else { job };
        Ok(Fetch::Entry(Box::new(Entry::new(number, job, Vec::new()))))
    }
}
