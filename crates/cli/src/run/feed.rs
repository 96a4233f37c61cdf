//! Handing jobs to the runner: without those that are done, with the places of their results.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::OsString;
use std::rc::Rc;

use brigade::runner::{Source, Supply};

use crate::arguments::Run;
use crate::input::{Fetch, Input};
use crate::joblog::Resume;
use crate::printer::Order;
use crate::results::Results;

/// What the source of jobs and the events about them both know.
#[derive(Debug, Clone)]
pub(super) struct Shared(Rc<State>);

#[derive(Debug)]
pub(super) struct State {
    /// Of the jobs that are not over, if somebody will ask.
    arguments: RefCell<HashMap<u64, Vec<OsString>>>,
    keeps_arguments: bool,
    pub(super) order: RefCell<Option<Order>>,
    pub(super) remaining: Cell<Option<u64>>,
    pub(super) skipped: Cell<u64>,
    /// Whether the source holds back until jobs are given out.
    pub(super) is_held: Cell<bool>,
}

impl Shared {
    pub(super) fn new(options: &Run) -> Self {
        Self(Rc::new(State {
            arguments: RefCell::default(),
            keeps_arguments: options.tag || options.results.is_some(),
            order: RefCell::new(options.keep_order.then(Order::default)),
            remaining: Cell::new(None),
            skipped: Cell::new(0),
            is_held: Cell::new(false),
        }))
    }

    /// What was put into the command of a job that is not over.
    pub(super) fn arguments(&self, number: u64) -> Vec<OsString> {
        self.arguments.borrow().get(&number).cloned().unwrap_or_default()
    }

    /// A job is over. Answers what was put into its command.
    pub(super) fn take_arguments(&self, number: u64) -> Vec<OsString> {
        self.arguments.borrow_mut().remove(&number).unwrap_or_default()
    }
}

impl std::ops::Deref for Shared {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

/// The source of jobs of a run.
pub(super) struct Feed {
    input: Box<dyn Input>,
    resume: Resume,
    /// Where jobs write their outputs themselves.
    results: Option<Results>,
    shared: Shared,
}

impl Feed {
    pub(super) fn new(
        input: Box<dyn Input>,
        resume: Resume,
        shared: &Shared,
        options: &Run,
    ) -> Self {
        // Lines that are printed as they come pass through here, and are written to their files in the end.
        let results = options.results.clone().filter(|_| !options.line_buffer).map(Results::new);
        let feed = Self { input, resume, results, shared: shared.clone() };
        feed.note_remaining();
        feed
    }

    fn note_remaining(&self) {
        self.shared.remaining.set(self.remaining());
    }
}

impl Source for Feed {
    fn next(&mut self) -> Supply {
        if self.shared.order.borrow().as_ref().is_some_and(Order::is_full) {
            self.shared.is_held.set(true);
            return Supply::Later;
        }
        loop {
            let entry = match self.input.fetch() {
                Fetch::Entry(entry) => entry,
                Fetch::Later => return Supply::Later,
                Fetch::End => {
                    self.shared.remaining.set(Some(0));
                    return Supply::End;
                }
                Fetch::Failed(error) => return Supply::Failed(error),
            };
            let (number, mut job, arguments) = (entry.number, entry.job, entry.arguments);
            match self.resume.has(number, job.fixed_command().map(ToString::to_string)) {
                Ok(false) => {}
                Ok(true) => {
                    self.shared.skipped.set(self.shared.skipped.get() + 1);
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
            if self.shared.keeps_arguments {
                self.shared.arguments.borrow_mut().insert(number, arguments);
            }
            if let Some(order) = self.shared.order.borrow_mut().as_mut() {
                order.taken(number);
            }
            self.note_remaining();
            return Supply::Job(Box::new(job));
        }
    }

    fn remaining(&self) -> Option<u64> {
        let remaining = self.input.remaining()?;
        // Those that are done lie before or between the rest; how many of them were met already is known.
        Some(
            remaining.saturating_sub(self.resume.count().saturating_sub(self.shared.skipped.get())),
        )
    }
}
