//! The creation of tasks.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use brigade_task::backend::{Bytes, Content, Promise};
use brigade_wire::{TaskId, items};

use super::{Attributes, Facts, Kind, LargeArgument, NO_KEY, Rare, TaskCell};
use crate::chunk::{ChunkProgress, RetriedFor};
use crate::deadlines::TaskDeadlines;
use crate::function_ref::{FunctionRef, NamedFunction};
use crate::payload::Argument;
use crate::sync::{AtomicBool, AtomicU32, Mutex};
use crate::task_span::TaskSpan;

impl Rare {
    /// Returns what is rare about a task, if anything is.
    pub(crate) fn of(
        label: Option<Arc<str>>,
        deadlines: Option<Box<TaskDeadlines>>,
        retried_for: RetriedFor,
        span: Option<Box<TaskSpan>>,
    ) -> Option<Self> {
        let is_ordinary = label.is_none()
            && deadlines.is_none()
            && retried_for == RetriedFor::default()
            && span.is_none();
        let span = span.map(|span| Mutex::new(Some(span)));
        (!is_ordinary).then(|| Self { label, deadlines, retried_for, span, ..Self::default() })
    }
}

impl Attributes {
    /// Returns those of a task with something rare, or of one without a handle.
    #[inline(never)]
    fn with(
        ordinary: Option<&Arc<Self>>,
        rare: Option<Rare>,
        function: Option<Arc<NamedFunction>>,
    ) -> Arc<Self> {
        let rare = Some(Rare { function, ..rare.unwrap_or_default() });
        Arc::new(Self { pool: ordinary.and_then(|ordinary| ordinary.pool.clone()), rare })
    }
}

impl TaskCell {
    /// Creates a task. One for a handle has the pool of `ordinary`, which are the attributes of the
    /// pool's tasks that have nothing rare.
    #[inline]
    pub(crate) fn new(
        ordinary: Option<&Arc<Attributes>>,
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        rare: Option<Rare>,
    ) -> Self {
        let attributes = match (ordinary, rare, function.named) {
            (Some(ordinary), None, None) => Arc::clone(ordinary),
            (ordinary, rare, named) => Attributes::with(ordinary, rare, named),
        };
        Self::make(id, function.offset, argument, attributes)
    }

    /// Creates a chunk of a map's items, which adds its id to the map's completions when it has an
    /// outcome.
    pub(crate) fn chunk(
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        chunk: Box<ChunkProgress>,
        rare: Rare,
    ) -> Self {
        let owner = Arc::clone(&chunk.owner);
        let (offset, function) = (function.offset, function.named);
        let rare = Some(Rare { function, chunk: Some(Mutex::new(Some(chunk))), ..rare });
        let cell = Self::make(id, offset, argument, Arc::new(Attributes { pool: None, rare }));
        cell.watch(&owner.completions, id.get());
        cell
    }

    #[inline]
    fn make(id: TaskId, function: u64, argument: Argument, attributes: Arc<Attributes>) -> Self {
        let facts = Facts {
            id,
            function,
            kind: match &attributes.rare {
                None => Kind::Ordinary,
                Some(rare) if rare.chunk.is_some() => Kind::Chunk,
                Some(_) => Kind::Rare,
            },
            attributes,
            key: AtomicU32::new(NO_KEY),
            ended: AtomicBool::new(false),
            may_look: AtomicBool::new(false),
            weight: AtomicU8::new(0),
        };
        Self(Promise::new(facts, argument.into()))
    }

    /// Splits off the items of a chunk from `at` on, as a chunk of their own that its map knows.
    ///
    /// # Panics
    /// If the task is not a chunk, or has an outcome.
    pub(crate) fn split_off(&self, at: u32) -> Self {
        let mut content = self.content();
        let Some(place) = content.argument() else {
            unreachable!("the scheduler divides only chunks that have no outcome");
        };
        let mut first = Argument::from(mem::replace(place, Content::NOTHING));
        let argument = first.split_off(items::size(first.as_bytes(), at), at);
        *place = first.into();
        drop(content);
        let length = argument.as_bytes().len();
        let Some(chunk) = self.with_chunk_progress(|chunk| chunk.split_off(at, length)) else {
            unreachable!("the scheduler divides only chunks");
        };
        let span = self.with_span(|span| span.split_off()).flatten();
        let id = TaskId::new(self.id.get() + u64::from(at));
        let owner = Arc::clone(&chunk.owner);
        let named = self.rare().and_then(|rare| rare.function.clone());
        let rare = Rare {
            label: self.label().cloned(),
            deadlines: self.rare().and_then(|rare| rare.deadlines.clone()),
            span: span.map(|span| Mutex::new(Some(span))),
            ..Rare::default()
        };
        let function = FunctionRef { offset: self.function, named };
        let rest = Self::chunk(id, function, argument, Box::new(chunk), rare);
        owner.add(rest.clone());
        rest
    }
}

impl From<Argument> for Content<Facts> {
    #[inline]
    fn from(argument: Argument) -> Self {
        match argument {
            Argument::Inline(Bytes::Few(few)) => Self::FewArgument(few),
            Argument::Inline(Bytes::Copied(bytes)) => Self::CopiedArgument(bytes),
            large => Self::LargeArgument(Box::new(LargeArgument(large))),
        }
    }
}

impl From<Content<Facts>> for Argument {
    /// Returns the argument of a task without an outcome.
    fn from(content: Content<Facts>) -> Self {
        match content {
            Content::FewArgument(few) => Self::Inline(Bytes::Few(few)),
            Content::CopiedArgument(bytes) => Self::Inline(Bytes::Copied(bytes)),
            Content::LargeArgument(large) => large.0,
            _ => Self::EMPTY,
        }
    }
}
