//! The host's record of a task, from its submission until its outcome is taken.

mod attributes;
mod content;
mod create;
#[cfg(all(loom, test))]
mod loom;
mod outcome_kind;
mod waiters;
mod watch;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use brigade_scheduler::{TaskData, TaskKey, TaskRef};
use brigade_wire::shared::SharedBuf;
use brigade_wire::{Chunk, Function, TaskId};

use crate::buffers;
use crate::callbacks::{Callback, Callbacks};
use crate::chunk::ChunkProgress;
use crate::deadlines::TaskDeadlines;
use crate::drive::Shared;
use crate::emitted::Emitted;
use crate::payload::{Argument, ArgumentRef, Outcome, Value};
use crate::run_record::RunRecord;
use crate::sync::{AtomicBool, AtomicU32, Guard, Guarded, Ordering};
use crate::task_span::TaskSpan;
use crate::waiting::Wait;
pub(crate) use attributes::Attributes;
use attributes::Rare;
use content::Content;
pub(crate) use outcome_kind::OutcomeKind;
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
#[derive(Debug, Clone)]
pub(crate) struct TaskCell(Guarded<Facts, Content>);

/// The part of a task that is not behind its lock.
#[derive(Debug)]
pub(crate) struct Facts {
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
    type Target = Facts;

    #[inline]
    fn deref(&self) -> &Facts {
        &self.0
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
    /// `true` if dropping the last reference to the task takes long.
    pub(crate) is_large: bool,
}

impl TaskCell {
    /// Locks the content. Nothing that panics runs under this lock.
    #[inline]
    fn content(&self) -> Guard<'_, Facts, Content> {
        Guarded::lock(&self.0)
    }

    /// Returns another reference, for less than `clone` if there is only this one so far.
    #[inline]
    pub(crate) fn share(&mut self) -> Self {
        Self(Guarded::share(&mut self.0))
    }

    /// Returns `true` if this is the only reference to the task.
    pub(crate) fn has_one_owner(&self) -> bool {
        Guarded::is_only_owner(&self.0)
    }

    /// Returns the pool of a task that was created for a handle.
    ///
    /// # Panics
    /// If it was created for a map or a stream.
    #[expect(clippy::expect_used, reason = "a mistake of the pool's own code")]
    #[inline]
    pub(crate) fn pool_of_handle(&self) -> &Arc<Shared> {
        self.attributes.pool().expect("the pool of the task")
    }

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
        if self.kind == Kind::Ordinary { None } else { self.attributes.rare() }
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

    #[inline]
    pub(crate) fn label_text(&self) -> Option<&str> {
        self.rare()?.label.as_deref()
    }

    /// Returns the task's label, shown in errors and events.
    #[inline]
    pub(crate) fn label(&self) -> Option<Arc<str>> {
        self.rare()?.label.clone()
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
            && let Some(waiters) = self.content().waiters_of(self.id)
        {
            waiters.span = span;
        }
    }

    /// Takes the span of a task that was not accepted.
    pub(crate) fn take_span(&self) -> Option<Box<TaskSpan>> {
        self.content().waiters()?.span.take()
    }

    /// Passes the encoded argument, the shape of a chunk, and the span to `with`. Returns `None` if
    /// the task has an outcome.
    #[inline]
    pub(crate) fn with_argument<T>(
        &self,
        with: impl FnOnce(ArgumentRef<'_>, Option<Chunk>, Option<&mut TaskSpan>) -> T,
    ) -> Option<T> {
        // Chunks are sent and divided under the core's lock, so this is the shape of the argument.
        let shape = self.with_chunk_progress(|chunk| chunk.shape);
        let mut content = self.content();
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
        self.rare()?.chunk.as_ref()?.lock().as_deref_mut().map(with)
    }

    /// Takes the outcomes of a chunk's items.
    pub(crate) fn take_chunk(&self) -> Option<Box<ChunkProgress>> {
        self.rare()?.chunk.as_ref()?.lock().take()
    }

    /// Stores the outcome and returns the waiters, which the calling thread has to notify.
    ///
    /// A second outcome would be a bug in the scheduler; it is ignored.
    #[must_use]
    #[inline]
    pub(crate) fn complete(&self, mut outcome: Outcome) -> Completed {
        let mut content = self.content();
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
        let is_large = self.is_chunk() || outcome.as_ref().is_ok_and(Value::is_large);
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
        self.content().outcome_kind()
    }

    /// Pushes a registered callback to its queue once the outcome has arrived, which may be
    /// immediately. Returns the callback if the outcome was taken before.
    pub(crate) fn on_done(
        &self,
        callback: Callback,
        queue: &Arc<Callbacks>,
    ) -> Result<(), Callback> {
        let mut content = self.content();
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
        self.content().take_outcome()
    }

    /// Returns the encoded value if it has arrived and is short, and the pool has let go of the
    /// task.
    #[inline]
    pub(crate) fn few_bytes(&mut self) -> Option<&[u8]> {
        match Guarded::get_mut(&mut self.0)? {
            Content::FewValue(few) => Some(few),
            _ => None,
        }
    }

    /// The same as `try_take`, without the lock if the pool has let go of the task.
    #[inline]
    pub(crate) fn try_take_mut(&mut self) -> Option<Outcome> {
        match Guarded::get_mut(&mut self.0) {
            Some(content) => content.take_outcome(),
            None => self.try_take(),
        }
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
