//! The content of a cell: the argument until there is an outcome, and then the outcome.

use std::mem;

use brigade_sys::thin_bytes::ThinBytes;
use brigade_task::backend;
use brigade_wire::TaskId;

use super::{OutcomeKind, Waiters};
use crate::bytes::{Bytes, Few};
use crate::error::TaskError;
use crate::payload::{Argument, ArgumentRef, Outcome, Value};
use crate::task_span::TaskSpan;

/// The argument of a task or its outcome, in the form that takes the least room.
///
/// Arguments and values take two words each, and an enum of both would take three. So their most
/// common variants are variants of this one, and the others are boxed.
#[derive(Debug)]
pub enum Content {
    FewArgument(Few),
    CopiedArgument(ThinBytes),
    LargeArgument(Box<Argument>),
    /// The argument of a task that somebody waits for, which is in the same box.
    Watched(Box<Waiters>),
    FewValue(Few),
    CopiedValue(ThinBytes),
    LargeValue(Box<Value>),
    Failure(TaskError),
    Taken(OutcomeKind),
}

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
        match argument {
            Argument::Inline(Bytes::Few(few)) => Self::FewArgument(few),
            Argument::Inline(Bytes::Copied(bytes)) => Self::CopiedArgument(bytes),
            large => Self::LargeArgument(Box::new(large)),
        }
    }
}

impl From<Outcome> for Content {
    #[inline]
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Ok(Value::Inline(Bytes::Few(few))) => Self::FewValue(few),
            Ok(Value::Inline(Bytes::Copied(bytes))) => Self::CopiedValue(bytes),
            Ok(large) => Self::LargeValue(Box::new(large)),
            Err(error) => Self::Failure(error),
        }
    }
}

impl Content {
    /// Returns the argument and the span of a task without an outcome.
    #[inline]
    pub(super) fn argument(&mut self) -> Option<(ArgumentRef<'_>, Option<&mut TaskSpan>)> {
        match self {
            Self::FewArgument(few) => Some((ArgumentRef::Bytes(few), None)),
            Self::CopiedArgument(bytes) => Some((ArgumentRef::Bytes(bytes), None)),
            Self::LargeArgument(argument) => Some((ArgumentRef::Whole(argument), None)),
            Self::Watched(waiters) => {
                let Attached { argument, span } = &mut waiters.attached;
                Some((ArgumentRef::Whole(argument), span.as_deref_mut()))
            }
            _ => None,
        }
    }
}

impl backend::Content for Content {
    type Value = Value;
    type Attached = Attached;

    fn is_pending(&self) -> bool {
        match self {
            Self::FewArgument(_)
            | Self::CopiedArgument(_)
            | Self::LargeArgument(_)
            | Self::Watched(_) => true,
            Self::FewValue(_)
            | Self::CopiedValue(_)
            | Self::LargeValue(_)
            | Self::Failure(_)
            | Self::Taken(_) => false,
        }
    }

    fn waiters(&mut self) -> Option<&mut Waiters> {
        match self {
            Self::Watched(waiters) => Some(waiters),
            _ => None,
        }
    }

    fn waiters_of(&mut self, task: TaskId) -> Option<&mut Waiters> {
        if self.is_pending() && !matches!(self, Self::Watched(_)) {
            let argument = match mem::replace(self, Self::Taken(OutcomeKind::Value)) {
                Self::FewArgument(few) => Argument::Inline(Bytes::Few(few)),
                Self::CopiedArgument(bytes) => Argument::Inline(Bytes::Copied(bytes)),
                Self::LargeArgument(argument) => *argument,
                _ => unreachable!("checked above"),
            };
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
            Self::FewValue(_) | Self::CopiedValue(_) | Self::LargeValue(_) => {
                Some(OutcomeKind::Value)
            }
            Self::Failure(error) => Some(OutcomeKind::of(error)),
            Self::Taken(kind) => Some(*kind),
            _ => None,
        }
    }

    #[inline]
    fn take_outcome(&mut self) -> Option<Outcome> {
        let kind = self.outcome_kind()?;
        match mem::replace(self, Self::Taken(kind)) {
            Self::FewValue(few) => Some(Ok(Value::Inline(Bytes::Few(few)))),
            Self::CopiedValue(bytes) => Some(Ok(Value::Inline(Bytes::Copied(bytes)))),
            Self::LargeValue(value) => Some(Ok(*value)),
            Self::Failure(error) => Some(Err(error)),
            _ => None,
        }
    }

    #[inline]
    fn short_value(&self) -> Option<&[u8]> {
        match self {
            Self::FewValue(few) => Some(few),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use brigade_task::backend::Content as _;

    use super::*;

    #[test]
    fn content_takes_two_words() {
        assert_eq!(size_of::<Content>(), 2 * size_of::<usize>());
    }

    #[test]
    fn content_in_any_form_is_returned_as_it_was() {
        for length in [0, 1, 14, 15, 4096] {
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
