//! The part of a task's record behind the lock: the argument until there is an outcome, with those
//! who wait for it, and then the outcome.

use std::mem;

use brigade_sys::thin_bytes::ThinBytes;
use brigade_wire::TaskId;

use super::Facts;
use crate::bytes::{Bytes, Few};
use crate::error::TaskError;
use crate::outcome::{Outcome, OutcomeKind, Value};
use crate::waiters::Waiters;

/// The argument of a task or its outcome, in the form that takes the least room.
///
/// Arguments and values take two words each, and an enum of both would take three. So their most
/// common variants are variants of this one, and the others are boxed.
#[derive(Debug)]
pub enum Content<F: Facts> {
    /// An argument of few bytes, or none.
    FewArgument(Few),
    /// An argument in memory of its size.
    CopiedArgument(ThinBytes),
    /// Any other argument.
    LargeArgument(Box<F::Argument>),
    /// Somebody waits for the task. The argument is in the same box.
    Watched(Box<Waiters<F>>),
    /// A value of few bytes.
    FewValue(Few),
    /// A value in memory of its size.
    CopiedValue(ThinBytes),
    /// Any other value.
    LargeValue(Box<F::Value>),
    /// The task has failed.
    Failure(TaskError),
    /// The kind of an outcome that was taken.
    Taken(OutcomeKind),
}

impl<F: Facts> Content<F> {
    /// No argument.
    pub const NOTHING: Self = Self::FewArgument(Few::NONE);

    /// Returns `true` if there is no outcome, and was none.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.outcome_kind().is_none()
    }

    /// Returns the argument of a task without an outcome, as one of the first three variants.
    #[inline]
    pub fn argument(&mut self) -> Option<&mut Self> {
        match self {
            Self::Watched(waiters) => Some(&mut waiters.argument),
            _ if self.is_pending() => Some(self),
            _ => None,
        }
    }

    /// Returns those who wait, if there are any.
    pub fn waiters(&mut self) -> Option<&mut Waiters<F>> {
        if let Self::Watched(waiters) = self { Some(waiters) } else { None }
    }

    /// Returns those to notify, if there are any.
    pub fn into_waiters(self) -> Option<Box<Waiters<F>>> {
        if let Self::Watched(waiters) = self { Some(waiters) } else { None }
    }

    /// Returns those who wait for a task without an outcome, to add one.
    pub(super) fn waiters_of(&mut self, task: TaskId) -> Option<&mut Waiters<F>> {
        if self.is_pending() && !matches!(self, Self::Watched(_)) {
            let argument = mem::replace(self, Self::NOTHING);
            *self = Self::Watched(Box::new(Waiters::of(task, argument)));
        }
        self.waiters()
    }

    /// Frees the waiters if there are none any more.
    pub(super) fn free_waiters(&mut self) {
        if let Self::Watched(waiters) = self
            && waiters.are_none()
        {
            *self = mem::replace(&mut waiters.argument, Self::NOTHING);
        }
    }

    /// Returns the kind of the outcome, if there is one or was one.
    #[inline]
    pub(super) fn outcome_kind(&self) -> Option<OutcomeKind> {
        match self {
            Self::FewValue(_) | Self::CopiedValue(_) | Self::LargeValue(_) => {
                Some(OutcomeKind::Value)
            }
            Self::Failure(error) => Some(OutcomeKind::of(error)),
            Self::Taken(kind) => Some(*kind),
            _ => None,
        }
    }

    /// Takes the outcome, if there is one.
    #[inline]
    pub(super) fn take_outcome(&mut self) -> Option<Outcome<F::Value>> {
        let kind = self.outcome_kind()?;
        match mem::replace(self, Self::Taken(kind)) {
            Self::FewValue(few) => Some(Ok(Bytes::Few(few).into())),
            Self::CopiedValue(bytes) => Some(Ok(Bytes::Copied(bytes).into())),
            Self::LargeValue(value) => Some(Ok(*value)),
            Self::Failure(error) => Some(Err(error)),
            _ => None,
        }
    }
}

impl<F: Facts> From<Outcome<F::Value>> for Content<F> {
    #[inline]
    fn from(outcome: Outcome<F::Value>) -> Self {
        match outcome.map(Value::into_bytes) {
            Ok(Ok(Bytes::Few(few))) => Self::FewValue(few),
            Ok(Ok(Bytes::Copied(bytes))) => Self::CopiedValue(bytes),
            Ok(Ok(vector)) => Self::LargeValue(Box::new(vector.into())),
            Ok(Err(large)) => Self::LargeValue(Box::new(large)),
            Err(error) => Self::Failure(error),
        }
    }
}
