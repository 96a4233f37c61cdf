//! The data of a job that is needed until it is over. It travels with the job.

use std::ffi::OsString;

use brigade::runner::{Job, Outcome, ResultFiles};

use crate::printer::Tag;

/// The data of a job that is needed until it is over.
#[derive(Debug)]
pub(super) struct JobData {
    /// Its arguments, for the table of results.
    pub(super) arguments: Vec<OsString>,
    pub(super) tag: Tag,
    /// The files for its results.
    pub(super) files: Option<ResultFiles>,
}

impl JobData {
    /// Attaches the data to a job, if there is any.
    pub(super) fn attach(self, job: Job) -> Job {
        let is_empty =
            self.arguments.is_empty() && self.tag == Tag::default() && self.files.is_none();
        if is_empty { job } else { job.data(self) }
    }

    /// Returns the data of a job that is over.
    pub(super) fn of(outcome: &Outcome) -> Option<&Self> {
        outcome.job.data_as()
    }
}

/// Returns the prefix of each line of a job's output on this slot.
pub(super) fn line_tag(job: &Job, slot: usize) -> Vec<u8> {
    job.data_as().map(|data: &JobData| data.tag.on_slot(slot)).unwrap_or_default()
}
