//! The host's record of a task, from its submission until its outcome is taken.

mod create;

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use brigade_scheduler::{TaskData, TaskKey, TaskRef};
use brigade_task::backend::{self, Backend, CompletionQueue, Content, Promise};
use brigade_wire::shared::SharedBuf;
use brigade_wire::{Attempt, Chunk, Function, TaskId};

use crate::buffers;
use crate::chunk::{ChunkProgress, RetriedFor};
use crate::deadlines::TaskDeadlines;
use crate::emitted::Emitted;
use crate::function_ref::NamedFunction;
use crate::payload::{Argument, ArgumentRef, KeptParts, Outcome, Value};
use crate::run_record::RunRecord;
use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering};
use crate::task_span::TaskSpan;

/// Those to notify of a task's outcome.
pub(crate) type Waiters = backend::Waiters<Facts>;

/// A task, shared by the pool and its handle: the promise of an outcome, which replaces the
/// argument, so the argument does not outlive its use.
///
/// There is one cell per task, so it is small, and nothing in it is moved after its creation. The
/// only lock taken under its lock is that of the callback queue.
#[derive(Debug, Clone)]
pub(crate) struct TaskCell(Promise<Facts>);

/// The part of a task that is not behind its lock.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Facts {
    pub(crate) id: TaskId,
    /// The function's offset in the executable, unless it goes by name.
    function: u64,
    attributes: Arc<Attributes>,
    kind: Kind,
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
}

/// The pool of a task, and what is rare about it.
///
/// Tasks with nothing rare share those of their pool, so that a cell needs one pointer for both.
#[derive(Default)]
pub(crate) struct Attributes {
    /// Set for tasks with a handle, which needs it. Those of maps and streams have none.
    pool: Option<Arc<dyn Backend<Facts>>>,
    rare: Option<Rare>,
}

/// Attributes of a task, which has none of them as a rule.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// The function, if it goes by name.
    pub(crate) function: Option<Arc<NamedFunction>>,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) deadlines: Option<Box<TaskDeadlines>>,
    pub(crate) retried_for: RetriedFor,
    /// `None` for a task whose runs nobody reports.
    pub(crate) record: Option<Box<RunRecord>>,
    /// Outcomes of the items of a chunk; taken by the map.
    pub(crate) chunk: Option<Mutex<Option<Box<ChunkProgress>>>>,
    /// `None` for a task in whose run no subscriber is interested.
    pub(crate) span: Option<Mutex<Option<Box<TaskSpan>>>>,
}

/// An argument that is not just a few bytes.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct LargeArgument(Argument);

impl LargeArgument {
    /// Takes an argument that takes long to free.
    fn take(&mut self) -> Option<Argument> {
        self.0.is_large().then(|| mem::replace(&mut self.0, Argument::EMPTY))
    }
}

/// The kind of a task. It says whether to look at the attributes, which are slow to reach while
/// another thread counts their owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A task with nothing rare.
    Ordinary,
    Rare,
    /// A chunk of a map's items.
    Chunk,
}

impl Deref for TaskCell {
    type Target = Promise<Facts>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for TaskCell {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Attributes {
    /// Returns those that all tasks of a pool share which have nothing rare.
    ///
    /// The pool's state must not own them, because they own it.
    pub(crate) fn ordinary(pool: Arc<dyn Backend<Facts>>) -> Arc<Self> {
        Arc::new(Self { pool: Some(pool), rare: None })
    }
}

brigade_sys::debug_fields!(impl Attributes { rare });

impl backend::Facts for Facts {
    type Argument = LargeArgument;
    type Value = Value;

    #[inline]
    fn id(&self) -> TaskId {
        self.id
    }

    #[inline]
    fn ended(&self) -> &AtomicBool {
        &self.ended
    }

    fn label(&self) -> Option<&Arc<str>> {
        Self::label(self)
    }

    /// # Panics
    /// If the task was created for a map or a stream.
    #[expect(clippy::expect_used, reason = "a mistake of the pool's own code")]
    #[inline]
    fn executor(&self) -> &Arc<dyn Backend<Self>> {
        self.attributes.pool.as_ref().expect("the pool of the task")
    }
}

/// Stands for no key: the number of a `TaskKey` is never 0.
const NO_KEY: u32 = 0;

/// Work that remains after an outcome was stored.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    pub(crate) waiters: Option<Box<Waiters>>,
    /// The argument, if freeing it takes long.
    pub(crate) argument: Option<Argument>,
    /// A span to close.
    pub(crate) span: Option<Box<TaskSpan>>,
    /// `true` if dropping the last reference to the task takes long.
    pub(crate) is_large: bool,
}

impl TaskCell {
    /// Returns another reference, for less than `clone` if there is only this one so far.
    #[inline]
    pub(crate) fn share(&mut self) -> Self {
        Self(self.0.share())
    }

    /// Returns the task for a handle.
    #[inline]
    pub(crate) fn into_promise(self) -> Promise<Facts> {
        self.0
    }
}

impl Facts {
    /// Returns `true` if the task has nothing rare.
    #[inline]
    pub(crate) fn is_ordinary(&self) -> bool {
        self.kind == Kind::Ordinary
    }

    /// Returns `true` if the task is a chunk of a map's items.
    #[inline]
    pub(crate) fn is_chunk(&self) -> bool {
        self.kind == Kind::Chunk
    }

    #[inline]
    fn rare(&self) -> Option<&Rare> {
        if self.kind == Kind::Ordinary { None } else { self.attributes.rare.as_ref() }
    }

    /// Returns the offset of a function without a name.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.function
    }

    /// Returns the function for a worker, which may be of the same build as this program.
    #[inline]
    pub(crate) fn function(&self, same_build: bool) -> Function<'_> {
        match self.rare().and_then(|rare| rare.function.as_deref()) {
            Some(named) => named.for_the_wire(same_build),
            None => Function::Offset(self.function),
        }
    }

    /// Returns the deadlines of a task that has any.
    #[inline]
    pub(crate) fn deadlines(&self) -> Option<&TaskDeadlines> {
        self.rare()?.deadlines.as_deref()
    }

    /// Returns `true` if the task has a limit on memory or processor time.
    pub(crate) fn is_limited(&self) -> bool {
        let limits = self.deadlines().map(|deadlines| deadlines.limits);
        limits.is_some_and(|limits| limits.cpu.is_some() || limits.memory.is_some())
    }

    /// Returns the limit on memory that the task has for itself.
    pub(crate) fn own_memory_limit(&self) -> Option<u64> {
        self.deadlines()?.own_memory
    }

    /// Returns the failures after which the task may run again.
    pub(crate) fn retried_for(&self) -> RetriedFor {
        self.rare().map_or(RetriedFor::default(), |rare| rare.retried_for)
    }

    /// Returns the record of the task's runs, if somebody reports them.
    #[inline]
    pub(crate) fn record(&self) -> Option<&RunRecord> {
        self.rare()?.record.as_deref()
    }

    /// Returns the items that the task emits; `None` for a task that does not.
    #[inline]
    pub(crate) fn emitted(&self) -> Option<&Emitted> {
        self.record()?.emitted.as_deref()
    }

    /// Returns the task's label, shown in errors and events.
    #[inline]
    pub(crate) fn label(&self) -> Option<&Arc<str>> {
        self.rare()?.label.as_ref()
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

    /// Passes the task's span to `with`, if there is one.
    pub(crate) fn with_span<T>(&self, with: impl FnOnce(&mut TaskSpan) -> T) -> Option<T> {
        self.rare()?.span.as_ref()?.lock().as_deref_mut().map(with)
    }

    /// Takes the task's span, to close it.
    #[inline]
    pub(crate) fn take_span(&self) -> Option<Box<TaskSpan>> {
        self.rare()?.span.as_ref()?.lock().take()
    }

    /// Passes the outcomes of a chunk's items so far to `with`. Returns `None` for other tasks.
    #[inline]
    pub(crate) fn with_chunk_progress<T>(
        &self,
        with: impl FnOnce(&mut ChunkProgress) -> T,
    ) -> Option<T> {
        self.rare()?.chunk.as_ref()?.lock().as_deref_mut().map(with)
    }

    /// Takes the outcomes of a chunk's items.
    pub(crate) fn take_chunk(&self) -> Option<Box<ChunkProgress>> {
        self.rare()?.chunk.as_ref()?.lock().take()
    }
}

impl TaskCell {
    /// Passes the encoded argument and the shape of a chunk to `with`. Returns `None` if the task
    /// has an outcome.
    #[inline]
    pub(crate) fn with_argument<T>(
        &self,
        with: impl FnOnce(ArgumentRef<'_>, Option<Chunk>) -> T,
    ) -> Option<T> {
        // Chunks are sent and divided under the core's lock, so this is the shape of the argument.
        let shape = self.with_chunk_progress(|chunk| chunk.shape);
        let mut content = self.content();
        let argument = match content.argument()? {
            Content::FewArgument(few) => ArgumentRef::Bytes(few),
            Content::CopiedArgument(bytes) => ArgumentRef::Bytes(bytes),
            Content::LargeArgument(large) => ArgumentRef::Whole(&large.0),
            _ => return None,
        };
        Some(with(argument, shape))
    }

    /// Returns the numbers of an argument that the host keeps.
    pub(crate) fn kept_parts(&self) -> Option<Arc<KeptParts>> {
        self.with_argument(|argument, _| argument.whole()?.kept().cloned())?
    }

    /// Returns a buffer of the argument.
    pub(crate) fn buffer(&self, wanted: buffers::BlockKey) -> Option<SharedBuf> {
        self.with_argument(|argument, _| buffers::find(argument.whole()?.buffers(), wanted))?
    }

    /// Prepares a chunk for its next attempt. Returns the map, which may send others during a
    /// pause.
    pub(crate) fn run_again(&self, attempt: Attempt) -> Option<Waiters> {
        self.with_chunk_progress(|chunk| {
            chunk.begin_anew(attempt);
            let completions = (Arc::clone(&chunk.owner.completions), self.id.get());
            Waiters::of_item(self.id, completions)
        })
    }

    /// Stores the outcome and returns the waiters, which the calling thread has to notify.
    ///
    /// A second outcome would be a bug in the scheduler; it is ignored.
    #[must_use]
    #[inline]
    pub(crate) fn complete(&self, outcome: Outcome) -> Completed {
        let is_large = self.is_chunk() || outcome.as_ref().is_ok_and(Value::is_large);
        let mut completed = Completed { is_large, ..Completed::default() };
        if let Some(mut span) = self.take_span() {
            let failed = self.with_chunk_progress(|chunk| chunk.failures.len());
            span.end(&outcome, failed.unwrap_or(0));
            completed.span = Some(span);
        }
        match self.0.complete(outcome) {
            Some(Content::Watched(mut waiters)) => {
                if let Content::LargeArgument(large) = &mut waiters.argument {
                    completed.argument = large.take();
                }
                completed.waiters = Some(waiters);
            }
            Some(Content::LargeArgument(mut large)) => completed.argument = large.take(),
            Some(_) => {}
            None => return Completed::default(),
        }
        completed
    }

    /// Adds `token` to `completions` once the outcome has arrived, which may be immediately, and
    /// for each item that the task emits.
    pub(crate) fn watch(&self, completions: &Arc<CompletionQueue>, token: u64) {
        if let Some(emitted) = self.emitted() {
            emitted.watch(completions, token);
        }
        self.0.watch(completions, token);
    }
}

impl TaskData for TaskCell {
    #[inline]
    fn id(&self) -> TaskId {
        self.id
    }
}

#[cfg(test)]
pub(crate) mod tests;
