//! The content of a cell: the argument until there is an outcome, and then the outcome.

use std::mem;

use brigade_task::backend;
use brigade_wire::TaskId;

use super::OutcomeKind;
use crate::error::TaskError;
use crate::payload::{Argument, Outcome, Value};
use crate::task_span::TaskSpan;

/// The argument of a task or its outcome.
#[derive(Debug)]
pub enum Content {
    Argument(Argument),
    /// The argument of a task that somebody waits for, which is in the same box.
    Watched(Box<Waiters>),
    Value(Value),
    Failure(TaskError),
    Taken(OutcomeKind),
}

/// Those to notify of a task's outcome.
pub(crate) type Waiters = backend::Waiters<Attached, Value>;

/// The argument and the span of a task, which are in one box with those who wait for it.
#[derive(Debug)]
pub struct Attached {
    pub(super) argument: Argument,
    /// `None` for a task in whose run no subscriber is interested.
    pub(crate) span: Option<Box<TaskSpan>>,
}

impl Attached {
    /// Nothing, for those who wait for an item.
    pub(crate) const NOTHING: Self = Self { argument: Argument::EMPTY, span: None };
}

impl backend::Attached for Attached {
    #[inline]
    fn is_empty(&self) -> bool {
        self.span.is_none()
    }
}

impl From<Argument> for Content {
    #[inline]
    fn from(argument: Argument) -> Self {
        Self::Argument(argument)
    }
}

impl From<Outcome> for Content {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Failure(error),
        }
    }
}

impl Content {
    /// Returns the argument and the span of a task without an outcome.
    #[inline]
    pub(super) fn argument(&mut self) -> Option<(&Argument, Option<&mut TaskSpan>)> {
        match self {
            Self::Argument(argument) => Some((argument, None)),
            Self::Watched(waiters) => {
                let Attached { argument, span } = &mut waiters.attached;
                Some((argument, span.as_deref_mut()))
            }
            _ => None,
        }
    }
}

impl backend::Content for Content {
    type Value = Value;
    type Attached = Attached;

    fn is_pending(&self) -> bool {
        matches!(self, Self::Argument(_) | Self::Watched(_))
    }

    fn waiters(&mut self) -> Option<&mut Waiters> {
        match self {
            Self::Watched(waiters) => Some(waiters),
            _ => None,
        }
    }

    fn waiters_of(&mut self, task: TaskId) -> Option<&mut Waiters> {
        if let Self::Argument(argument) = self {
            let argument = mem::replace(argument, Argument::EMPTY);
            let attached = Attached { argument, span: None };
            *self = Self::Watched(Box::new(Waiters::of(task, attached)));
        }
        self.waiters()
    }

    fn free_waiters(&mut self) {
        if let Self::Watched(waiters) = self
            && waiters.is_empty()
        {
            *self = mem::replace(&mut waiters.attached.argument, Argument::EMPTY).into();
        }
    }

    fn outcome_kind(&self) -> Option<OutcomeKind> {
        match self {
            Self::Value(_) => Some(OutcomeKind::Value),
            Self::Failure(error) => Some(OutcomeKind::of(error)),
            Self::Taken(kind) => Some(*kind),
            Self::Argument(_) | Self::Watched(_) => None,
        }
    }

    #[inline]
    fn take_outcome(&mut self) -> Option<Outcome> {
        let kind = self.outcome_kind()?;
        match mem::replace(self, Self::Taken(kind)) {
            Self::Value(value) => Some(Ok(value)),
            Self::Failure(error) => Some(Err(error)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use brigade_task::backend::Content as _;

    use super::*;
    use crate::bytes::Bytes;

    #[test]
    fn content_in_any_form_is_returned_as_it_was() {
        for length in [0, 1, 15, 16, 4096] {
            let bytes: Vec<u8> = (0..=255).cycle().take(length).collect();
            for inline in [Bytes::copy(&bytes), bytes.clone().into()] {
                let mut content = Content::from(Argument::Inline(inline));
                let is_kept = |content: &mut Content| {
                    content.argument().is_some_and(|(argument, _)| argument.as_bytes() == bytes)
                };
                assert!(is_kept(&mut content));
                content.waiters_of(TaskId::new(1)).expect("no outcome yet");
                assert!(is_kept(&mut content));
                content.free_waiters();
                assert!(is_kept(&mut content) && content.waiters().is_none());
            }
            for inline in [Bytes::copy(&bytes), bytes.clone().into()] {
                let mut content = Content::from(Ok(Value::Inline(inline)));
                assert!(content.argument().is_none());
                let Some(Ok(Value::Inline(value))) = content.take_outcome() else {
                    panic!("not the value");
                };
                assert_eq!(*value, bytes);
                assert!(content.take_outcome().is_none());
            }
        }
    }
}
