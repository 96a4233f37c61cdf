//! The error of `put`, which contains the argument.

use std::fmt;

/// The reason why a stream did not accept an input. [`into_inner`](Self::into_inner) returns the
/// input.
#[derive(thiserror::Error)]
#[error("{kind}")]
pub struct Full<A> {
    kind: PutErrorKind,
    argument: A,
}

/// The kinds of [`Full`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum PutErrorKind {
    /// The stream holds as many inputs as its limits allow.
    #[error("the stream is full: receive an item first, or use `put`, which waits")]
    Full,
    /// The stream stayed full until the timeout.
    #[error("the stream stayed full until the timeout")]
    TimedOut,
    /// The stream was finished or closed.
    #[error("the stream accepts no more inputs: it was finished or closed")]
    Finished,
    /// This process is a fork of the one that started the stream.
    #[error("the stream belongs to another process: start one after the fork")]
    Forked,
}

impl<A> Full<A> {
    pub(super) fn new(kind: PutErrorKind, argument: A) -> Self {
        Self { kind, argument }
    }

    /// Returns the input, unchanged.
    pub fn into_inner(self) -> A {
        self.argument
    }

    /// Returns the reason.
    pub fn kind(&self) -> PutErrorKind {
        self.kind
    }

    /// Returns `true` if a later attempt may succeed.
    pub fn is_full(&self) -> bool {
        matches!(self.kind, PutErrorKind::Full | PutErrorKind::TimedOut)
    }
}

impl<A> fmt::Debug for Full<A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.kind, out)
    }
}

brigade_sys::debug_as_text!(PutErrorKind);
