//! The content of a promise for an executor that keeps nothing else of a task.

use std::mem;

use brigade_wire::TaskId;

use crate::outcome::{Outcome, OutcomeKind, Value};
use crate::promise::Content;
use crate::waiters::{Attached, Waiters};

/// Those who wait for an outcome, and then the outcome.
#[derive(Debug, Default)]
pub enum Plain<V> {
    /// Nobody waits.
    #[default]
    Pending,
    /// Somebody waits.
    Watched(Box<Waiters<(), V>>),
    /// The outcome.
    Ended(Outcome<V>),
    /// The kind of an outcome that was taken.
    Taken(OutcomeKind),
}

impl<V> Plain<V> {
    /// Returns those to notify, if there are any.
    pub fn into_waiters(self) -> Option<Box<Waiters<(), V>>> {
        match self {
            Self::Watched(waiters) => Some(waiters),
            _ => None,
        }
    }
}

impl<V> From<Outcome<V>> for Plain<V> {
    fn from(outcome: Outcome<V>) -> Self {
        Self::Ended(outcome)
    }
}

impl Attached for () {
    fn is_empty(&self) -> bool {
        true
    }
}

impl<V: Value> Content for Plain<V> {
    type Value = V;
    type Attached = ();

    fn is_pending(&self) -> bool {
        matches!(self, Self::Pending | Self::Watched(_))
    }

    fn waiters(&mut self) -> Option<&mut Waiters<(), V>> {
        match self {
            Self::Watched(waiters) => Some(waiters),
            _ => None,
        }
    }

    fn waiters_of(&mut self, task: TaskId) -> Option<&mut Waiters<(), V>> {
        if matches!(self, Self::Pending) {
            *self = Self::Watched(Box::new(Waiters::of(task, ())));
        }
        self.waiters()
    }

    fn free_waiters(&mut self) {
        if self.waiters().is_some_and(|waiters| waiters.is_empty()) {
            *self = Self::Pending;
        }
    }

    fn outcome_kind(&self) -> Option<OutcomeKind> {
        match self {
            Self::Pending | Self::Watched(_) => None,
            Self::Ended(outcome) => Some(match outcome {
                Ok(_) => OutcomeKind::Value,
                Err(error) => OutcomeKind::of(error),
            }),
            Self::Taken(kind) => Some(*kind),
        }
    }

    fn take_outcome(&mut self) -> Option<Outcome<V>> {
        let kind = self.outcome_kind()?;
        match mem::replace(self, Self::Taken(kind)) {
            Self::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }
}
