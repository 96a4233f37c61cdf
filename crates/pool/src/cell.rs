//! The host's record of a task, from its submission until its outcome is taken.

mod content;
#[cfg(all(loom, test))]
mod loom;
mod outcome_kind;
mod rare;
mod waiters;
mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use brigade_scheduler::{TaskData, TaskKey, TaskRef};
use brigade_wire::shared::SharedBuf;
use brigade_wire::{Chunk, Function, TaskId, items};

use crate::buffers;
use crate::callbacks::{Callback, Callbacks};
use crate::chunk::ChunkProgress;
use crate::deadlines::TaskDeadlines;
use crate::emitted::Emitted;
use crate::function_ref::FunctionRef;
use crate::payload::{Argument, ArgumentRef, Outcome, Value};
use crate::run_record::RunRecord;
use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering};
use crate::task_span::TaskSpan;
use crate::waiting::Wait;
use content::Content;
pub(crate) use outcome_kind::OutcomeKind;
use rare::Rare;
pub(crate) use waiters::{Waiters, Wakeups};

/// A task, shared by the pool and its handle.
///
/// The outcome replaces the argument, so the argument does not outlive its use. The outcome is
/// stored once, by the thread that learns it, and taken once, by the handle.
///
/// There is one cell per task, so it is small, and nothing in it is moved after its creation.
/// Neither completing a task nor reading its state makes a system call unless a thread sleeps. No
/// user code runs under its lock, and the only locks taken under it are those of the callback queue
/// and of a chunk's progress.
#[derive(Debug)]
pub(crate) struct TaskCell {
    pub(crate) id: TaskId,
    /// The function's offset in the executable, unless it goes by name.
    function: u64,
    /// Set for the few tasks that have any of it.
    rare: Option<Box<Rare>>,
    /// `true` if the task is a chunk of a map's items.
    pub(crate) is_chunk: bool,
    /// The task's key in the scheduler, or [`NO_KEY`] until the task is accepted.
    key: AtomicU32,
    /// Set under the lock once the outcome is stored.
    ended: AtomicBool,
    /// `true` until the first poll, if that may look for the outcome.
    may_look: AtomicBool,
    /// Number of tasks that this one stands for in the times that the pool records; 0 if it is not
    /// timed.
    #[cfg_attr(not(feature = "recording"), expect(dead_code, reason = "only metrics need it"))]
    pub(crate) weight: AtomicU8,
    /// Nothing that panics runs under this lock.
    content: Mutex<Content>,
}

/// Stands for no key: the number of a `TaskKey` is never 0.
const NO_KEY: u32 = 0;

/// Work that remains after an outcome was stored.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    pub(crate) waiters: Option<Box<Waiters>>,
    /// The argument, if freeing it takes long.
    pub(crate) argument: Option<Argument>,
    /// `true` if dropping the last reference to the task takes long.
    pub(crate) is_large: bool,
}

impl TaskCell {
    /// Creates a task. A chunk of a map's items adds its id to the map's completions when it has an
    /// outcome.
    pub(crate) fn new(
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        label: Option<Arc<str>>,
        deadlines: Option<Box<TaskDeadlines>>,
        chunk: Option<Box<ChunkProgress>>,
    ) -> Arc<Self> {
        let (function, name) = function.into_parts();
        let rare = Rare { function: name, label, deadlines, ..Rare::default() };
        Self::make(id, function, argument, chunk, rare)
    }

    /// Creates a task whose runs are recorded.
    pub(crate) fn recorded(
        id: TaskId,
        function: FunctionRef,
        argument: Argument,
        label: Option<Arc<str>>,
        deadlines: Option<Box<TaskDeadlines>>,
        record: RunRecord,
    ) -> Arc<Self> {
        let (function, name) = function.into_parts();
        let record = Some(Box::new(record));
        let rare = Rare { function: name, label, deadlines, record, ..Rare::default() };
        Self::make(id, function, argument, None, rare)
    }

    #[inline]
    fn make(
        id: TaskId,
        function: u64,
        argument: Argument,
        chunk: Option<Box<ChunkProgress>>,
        mut rare: Rare,
    ) -> Arc<Self> {
        let owner = chunk.as_ref().map(|chunk| Arc::clone(&chunk.owner));
        let is_chunk = chunk.is_some();
        if is_chunk {
            rare.chunk = Mutex::new(chunk);
        }
        let cell = Arc::new(Self {
            id,
            function,
            rare: if is_chunk || !rare.is_empty() { Some(Box::new(rare)) } else { None },
            is_chunk,
            key: AtomicU32::new(NO_KEY),
            ended: AtomicBool::new(false),
            may_look: AtomicBool::new(false),
            weight: AtomicU8::new(0),
            content: Mutex::new(argument.into()),
        });
        if let Some(owner) = owner {
            cell.watch(&owner.completions, id.get());
        }
        cell
    }

    /// Splits off the items of a chunk from `at` on, as a chunk of their own that its map knows.
    ///
    /// # Panics
    /// If the task is not a chunk, or has an outcome.
    pub(crate) fn split_off(&self, at: u32) -> Arc<Self> {
        let mut content = self.content.lock();
        let Some(Waiters { argument, span, .. }) = content.waiters_of(self.id) else {
            unreachable!("the scheduler divides only chunks that have no outcome");
        };
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
            function: self.rare.as_deref().and_then(|rare| rare.function.clone()),
            label: self.label(),
            deadlines: self.rare.as_deref().and_then(|rare| rare.deadlines.clone()),
            ..Rare::default()
        };
        let rest = Self::make(id, self.function, argument, Some(Box::new(chunk)), rare);
        rest.set_span(span);
        owner.add(Arc::clone(&rest));
        rest
    }

    /// Returns the function for a worker, which may be of the same build as this program.
    #[inline]
    pub(crate) fn function(&self, same_build: bool) -> Function<'_> {
        match self.rare.as_deref().and_then(|rare| rare.function.as_deref()) {
            Some(named) => named.for_the_wire(same_build),
            None => Function::Offset(self.function),
        }
    }

    /// Returns the deadlines of a task that has any.
    #[inline]
    pub(crate) fn deadlines(&self) -> Option<&TaskDeadlines> {
        self.rare.as_deref()?.deadlines.as_deref()
    }

    /// Returns the record of the task's runs, if somebody reports them.
    #[inline]
    pub(crate) fn record(&self) -> Option<&RunRecord> {
        self.rare.as_deref()?.record.as_deref()
    }

    /// Returns the items that the task emits; `None` for a task that does not.
    #[inline]
    pub(crate) fn emitted(&self) -> Option<&Emitted> {
        self.record()?.emitted.as_deref()
    }

    #[inline]
    pub(crate) fn label_text(&self) -> Option<&str> {
        self.rare.as_deref()?.label.as_deref()
    }

    /// Returns the task's label, shown in errors and events.
    #[inline]
    pub(crate) fn label(&self) -> Option<Arc<str>> {
        self.rare.as_deref()?.label.clone()
    }

    pub(crate) fn set_key(&self, key: TaskKey) {
        self.key.store(key.raw(), Ordering::Release);
    }

    /// Allows the next poll to look for the outcome.
    pub(crate) fn set_may_look(&self) {
        self.may_look.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if a poll may look for the outcome, once.
    pub(crate) fn take_may_look(&self) -> bool {
        self.may_look.load(Ordering::Relaxed) && self.may_look.swap(false, Ordering::Relaxed)
    }

    pub(crate) fn task_ref(&self) -> Option<TaskRef> {
        match self.key.load(Ordering::Acquire) {
            NO_KEY => None,
            raw => TaskKey::from_raw(raw).map(|key| TaskRef { key, id: self.id }),
        }
    }

    /// Sets the task's span, before the task is submitted.
    pub(crate) fn set_span(&self, span: Option<Box<TaskSpan>>) {
        if span.is_some()
            && let Some(waiters) = self.content.lock().waiters_of(self.id)
        {
            waiters.span = span;
        }
    }

    /// Takes the span of a task that was not accepted.
    pub(crate) fn take_span(&self) -> Option<Box<TaskSpan>> {
        self.content.lock().waiters()?.span.take()
    }

    /// Passes the encoded argument, the shape of a chunk, and the span to `with`. Returns `None` if
    /// the task has an outcome.
    #[inline]
    pub(crate) fn with_argument<T>(
        &self,
        with: impl FnOnce(ArgumentRef<'_>, Option<Chunk>, Option<&mut TaskSpan>) -> T,
    ) -> Option<T> {
        let shape = self.with_chunk_progress(|chunk| chunk.shape);
        let mut content = self.content.lock();
        let (argument, span) = content.argument()?;
        Some(with(argument, shape, span))
    }

    /// Returns a buffer of the argument.
    pub(crate) fn buffer(&self, wanted: buffers::Key) -> Option<SharedBuf> {
        self.with_argument(|argument, _, _| buffers::find(argument.whole()?.buffers(), wanted))?
    }

    /// Passes the outcomes of a chunk's items so far to `with`. Returns `None` for other tasks.
    #[inline]
    pub(crate) fn with_chunk_progress<T>(
        &self,
        with: impl FnOnce(&mut ChunkProgress) -> T,
    ) -> Option<T> {
        self.rare.as_deref()?.chunk.lock().as_deref_mut().map(with)
    }

    /// Takes the outcomes of a chunk's items.
    pub(crate) fn take_chunk(&self) -> Option<Box<ChunkProgress>> {
        self.rare.as_deref()?.chunk.lock().take()
    }

    /// Stores the outcome and returns the waiters, which the calling thread has to notify.
    ///
    /// A second outcome would be a bug in the scheduler; it is ignored.
    #[must_use]
    #[inline]
    pub(crate) fn complete(&self, mut outcome: Outcome) -> Completed {
        let mut content = self.content.lock();
        if !content.is_pending() {
            debug_assert!(false, "a second outcome for {}", self.id);
            return Completed::default();
        }
        if let Some(Waiters { span, callbacks, .. }) = content.waiters() {
            if let Some(span) = span {
                let failed = self.with_chunk_progress(|chunk| chunk.failures.len());
                span.end(&outcome, failed.unwrap_or(0));
            }
            if let Some((queue, callbacks)) = callbacks {
                for callback in callbacks.drain(..) {
                    queue.push(callback, share(&mut outcome));
                }
            }
        }
        let is_large = self.is_chunk || outcome.as_ref().is_ok_and(Value::is_large);
        let before = std::mem::replace(&mut *content, outcome.into());
        self.ended.store(true, Ordering::Release);
        let mut completed = Completed { is_large, ..Completed::default() };
        match before {
            Content::Watched(mut waiters) => {
                if waiters.argument.is_large() {
                    let argument = std::mem::replace(&mut waiters.argument, Argument::EMPTY);
                    completed.argument = Some(argument);
                }
                completed.waiters = Some(waiters);
            }
            Content::LargeArgument(argument) => {
                completed.argument = Some(*argument).filter(Argument::is_large);
            }
            _ => {}
        }
        completed
    }

    /// Returns `true` if the task was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.outcome_kind() == Some(OutcomeKind::Cancelled)
    }

    /// Returns the kind of the outcome if it has arrived, even if it has been taken since.
    pub(crate) fn outcome_kind(&self) -> Option<OutcomeKind> {
        if self.is_pending() {
            return None;
        }
        self.content.lock().outcome_kind()
    }

    /// Pushes a registered callback to its queue once the outcome has arrived, which may be
    /// immediately. Returns the callback if the outcome was taken before.
    pub(crate) fn on_done(
        &self,
        callback: Callback,
        queue: &Arc<Callbacks>,
    ) -> Result<(), Callback> {
        let mut content = self.content.lock();
        if let Some(Waiters { callbacks, .. }) = content.waiters_of(self.id) {
            let (_, list) = callbacks.get_or_insert_with(|| (Arc::clone(queue), Vec::new()));
            list.push(callback);
            return Ok(());
        }
        let Some(mut outcome) = content.take_outcome() else { return Err(callback) };
        queue.push(callback, share(&mut outcome));
        *content = outcome.into();
        drop(content);
        queue.wake();
        Ok(())
    }

    /// Takes the outcome if it has arrived and was not taken before.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Outcome> {
        self.content.lock().take_outcome()
    }
}

impl TaskData for TaskCell {
    #[inline]
    fn id(&self) -> TaskId {
        self.id
    }
}

/// Returns the same outcome again. The encoded value is shared, and each owner decodes it.
fn share(outcome: &mut Outcome) -> Outcome {
    match outcome {
        Ok(value) => Ok(value.share()),
        Err(error) => Err(error.clone()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
