//! Stores the results of jobs, unless the jobs do so themselves.

use std::io;

use brigade::runner::{Outcome, ResultTable};

use super::job_data::JobData;
use super::sink::Sink;
use crate::arguments::Run;
use crate::screen::Screen;

/// Stores the results of jobs in files or in a table.
pub(super) struct ResultSink {
    table: Option<ResultTable>,
    /// `true` if results are stored in files when their job is over, and not by the job itself.
    stores_files: bool,
}

impl ResultSink {
    pub(super) fn new(options: &Run, table: Option<ResultTable>) -> Self {
        Self { table, stores_files: options.line_buffer || options.is_remote() }
    }
}

impl Sink for ResultSink {
    fn outcome(&mut self, outcome: &Outcome, screen: &mut Screen) -> io::Result<()> {
        let data = JobData::of(outcome);
        let files = data.and_then(|data| data.files.as_ref());
        if let Some(files) = files.filter(|_| self.stores_files) {
            files.write(outcome)?;
        }
        let Some(table) = &mut self.table else { return Ok(()) };
        let arguments = data.map(|data| data.arguments.as_slice()).unwrap_or_default();
        // It may be on the terminal.
        screen.suspend(|| table.write(outcome, arguments))
    }
}
