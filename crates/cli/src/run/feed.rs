//! Handing jobs to the runner: without those that are done, with the places of their results.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade::runner::{Source, Supply};

use super::desk::Desk;
use crate::arguments::Run;
use crate::descriptors::most_held;
use crate::input::{Fetch, Input};
use crate::joblog::Resume;
use crate::printer::Order;
use crate::results::Results;

/// What the source of jobs and the desk both know.
#[derive(Debug, Clone)]
pub(super) struct Shared(Arc<Mutex<State>>);

#[derive(Debug)]
pub(super) struct State {
    /// Of the jobs that are not over, if somebody will ask.
    arguments: HashMap<u64, Vec<OsString>>,
    keeps_arguments: bool,
    pub(super) order: Option<Order>,
    pub(super) remaining: Option<u64>,
    pub(super) skipped: u64,
    /// Whether the source holds back until jobs are given out.
    pub(super) is_held: bool,
}

impl Shared {
    pub(super) fn new(options: &Run) -> Self {
        Self(Arc::new(Mutex::new(State {
            arguments: HashMap::new(),
            keeps_arguments: options.tag || options.results.is_some(),
            order: options.keep_order.then(|| Order::new(most_held())),
            remaining: None,
            skipped: 0,
            is_held: false,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was put into the command of a job that is not over.
    pub(super) fn arguments(&self, number: u64) -> Vec<OsString> {
        self.lock().arguments.get(&number).cloned().unwrap_or_default()
    }

    /// A job is over. Answers what was put into its command.
    pub(super) fn take_arguments(&self, number: u64) -> Vec<OsString> {
        self.lock().arguments.remove(&number).unwrap_or_default()
    }
}

/// The source of jobs of a run.
pub(super) struct Feed {
    input: Box<dyn Input>,
    resume: Resume,
    /// Where jobs write their outputs themselves.
    results: Option<Results>,
    shared: Shared,
    desk: Desk,
}

impl Feed {
    pub(super) fn new(
        input: Box<dyn Input>,
        resume: Resume,
        shared: &Shared,
        desk: Desk,
        options: &Run,
    ) -> Self {
        // Lines that are printed as they come pass through here, and are written to their files in the end.
        let results = options.results.clone().filter(|_| !options.line_buffer).map(Results::new);
        let feed = Self { input, resume, results, shared: shared.clone(), desk };
        feed.note_remaining();
        feed
    }

    fn note_remaining(&self) {
        let remaining = self.remaining();
        self.shared.lock().remaining = remaining;
    }
}

impl Source for Feed {
    fn next(&mut self) -> Supply {
        if self.desk.is_behind() {
            return Supply::Later;
        }
        let mut shared = self.shared.lock();
        if shared.order.as_ref().is_some_and(Order::is_full) {
            shared.is_held = true;
            return Supply::Later;
        }
        drop(shared);
        loop {
            let entry = match self.input.fetch() {
                Fetch::Entry(entry) => entry,
                Fetch::Later => return Supply::Later,
                Fetch::End => {
                    self.shared.lock().remaining = Some(0);
                    return Supply::End;
                }
                Fetch::Failed(error) => return Supply::Failed(error),
            };
            let (number, mut job, arguments) = (entry.number, entry.job, entry.arguments);
            match self.resume.has(number, &job) {
                Ok(false) => {}
                Ok(true) => {
                    self.shared.lock().skipped += 1;
                    continue;
                }
                Err(error) => return Supply::Failed(Box::new(error)),
            }
            if let Some(results) = &self.results {
                match results.prepare(number, &arguments) {
                    Ok(output) => job = job.output(output),
                    Err(error) => {
                        let folder = results.path().display();
                        return Supply::Failed(
                            format!("cannot make a folder in {folder}: {error}").into(),
                        );
                    }
                }
            }
            let mut shared = self.shared.lock();
            if shared.keeps_arguments {
                shared.arguments.insert(number, arguments);
            }
            if let Some(order) = &mut shared.order {
                order.taken(number);
            }
            drop(shared);
            self.note_remaining();
            return Supply::Job(Box::new(job));
        }
    }

    fn remaining(&self) -> Option<u64> {
        let remaining = self.input.remaining()?;
        let skipped = self.shared.lock().skipped;
        // Those that are done lie before or between the rest; how many of them were met already is known.
        Some(remaining.saturating_sub(self.resume.count().saturating_sub(skipped)))
    }
}
