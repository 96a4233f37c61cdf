//! The creation of tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use brigade_task::backend::{Content as _, Promise};
use brigade_wire::{TaskId, items};

use super::attributes::{Attributes, Rare};
use super::{Attached, Facts, Kind, NO_KEY, TaskCell};
use crate::chunk::{ChunkProgress, RetriedFor};
use crate::deadlines::TaskDeadlines;
use crate::function_ref::FunctionRef;
use crate::payload::Argument;
use crate::run_record::RunRecord;
use crate::sync::{AtomicBool, AtomicU32, Mutex};

impl TaskCell {
    /// Creates a task for a handle, which may run again after these failures. `ordinary` are the
    /// attributes of the pool's tasks that have nothing rare.
    #[inline]
    pub(crate) fn new(
        ordinary: &Arc<Attributes>,
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        label: Option<Arc<str>>,
        deadlines: Option<Box<TaskDeadlines>>,
        retried_for: RetriedFor,
    ) -> Self {
        let (function, name) = function.into_parts();
        let is_ordinary = name.is_none()
            && label.is_none()
            && deadlines.is_none()
            && retried_for == RetriedFor::default();
        let attributes = if is_ordinary {
            Arc::clone(ordinary)
        } else {
            let rare = Rare { function: name, label, deadlines, retried_for, ..Rare::default() };
            ordinary.with(rare)
        };
        Self::make(id, function, argument, attributes)
    }

    /// Creates a chunk of a map's items, which adds its id to the map's completions when it has an
    /// outcome.
    pub(crate) fn chunk(
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        label: Option<Arc<str>>,
        deadlines: Option<Box<TaskDeadlines>>,
        chunk: Box<ChunkProgress>,
    ) -> Self {
        let (function, name) = function.into_parts();
        let rare = Rare { function: name, label, deadlines, ..Rare::default() };
        Self::make_chunk(id, function, argument, chunk, rare)
    }

    /// Creates a task whose runs are recorded.
    pub(crate) fn recorded(
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        label: Option<Arc<str>>,
        deadlines: Option<Box<TaskDeadlines>>,
        retried_for: RetriedFor,
        record: RunRecord,
    ) -> Self {
        let (function, name) = function.into_parts();
        let record = Some(Box::new(record));
        let rare =
            Rare { function: name, label, deadlines, retried_for, record, ..Rare::default() };
        Self::make(id, function, argument, Attributes::without_pool(rare))
    }

    fn make_chunk(
        id: TaskId,
        function: u64,
        argument: Argument,
        chunk: Box<ChunkProgress>,
        rare: Rare,
    ) -> Self {
        let owner = Arc::clone(&chunk.owner);
        let rare = Rare { chunk: Some(Mutex::new(Some(chunk))), ..rare };
        let cell = Self::make(id, function, argument, Attributes::without_pool(rare));
        cell.watch(&owner.completions, id.get());
        cell
    }

    #[inline]
    fn make(id: TaskId, function: u64, argument: Argument, attributes: Arc<Attributes>) -> Self {
        let facts = Facts {
            id,
            function,
            kind: match attributes.rare() {
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
        let Some(waiters) = content.waiters_of(self.id) else {
            unreachable!("the scheduler divides only chunks that have no outcome");
        };
        let Attached { argument, span } = &mut waiters.attached;
        let bytes = items::size(argument.as_bytes(), at);
        let argument = argument.split_off(bytes, at);
        let span = span.as_ref().and_then(|span| span.split_off());
        drop(content);
        let length = argument.as_bytes().len();
        let Some(chunk) = self.with_chunk_progress(|chunk| chunk.split_off(at, length)) else {
            unreachable!("the scheduler divides only chunks");
        };
        let id = TaskId::new(self.id.get() + u64::from(at));
        let owner = Arc::clone(&chunk.owner);
        let rare = Rare {
            function: self.rare().and_then(|rare| rare.function.clone()),
            label: self.label(),
            deadlines: self.rare().and_then(|rare| rare.deadlines.clone()),
            ..Rare::default()
        };
        let rest = Self::make_chunk(id, self.function, argument, Box::new(chunk), rare);
        rest.set_span(span);
        owner.add(rest.clone());
        rest
    }
}
