//! A task on the host's side, from its submission until its outcome is taken: what is sent, and where the outcome arrives.

mod watch;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use brigade_wire::{Chunk, TaskId};

use crate::arrivals::Arrivals;
use crate::awaited::{Awaited, Sleeper};
use crate::callbacks::{Callback, Callbacks};
use crate::callee::Callee;
use crate::chunk::ChunkProgress;
use crate::error::TaskError;
use crate::limits::Limits;
use crate::machine::{TaskKey, TaskRef};
use crate::payload::{Argument, Value};
pub(crate) use watch::{Told, Watch};

/// A task; shared by the pool and the handle.
///
/// The outcome takes the argument's place, so the argument does not outlive its use. It is put in once, by whoever learns
/// it, and taken out once, by the handle.
///
/// There is one for each task, so it is small, and nothing of it is moved once it is made. Neither completing a task nor
/// looking at it makes a system call unless somebody sleeps. Under its lock no code of users runs, and nothing is locked but
/// the queue of callbacks.
#[derive(Debug)]
pub(crate) struct TaskCell {
    pub(crate) id: TaskId,
    pub(crate) callee: Callee,
    /// Boxed, because few tasks have one.
    label: Option<Box<Arc<str>>>,
    /// How long it may wait and run.
    pub(crate) limits: Option<Box<Limits>>,
    /// Whether it is a chunk of a map's items.
    pub(crate) is_chunk: bool,
    /// Where the task is in the machine; [`NOWHERE`] until it is accepted.
    place: AtomicU32,
    /// Set under the lock, once the outcome is there.
    ended: AtomicBool,
    state: Mutex<CellState>,
}

/// No key of a task is so, as a number.
const NOWHERE: u32 = 0;

/// The encoded result, or why there is none.
pub(crate) type RawOutcome = Result<Value, TaskError>;

#[derive(Debug)]
struct CellState {
    stage: Stage,
    /// What the items of a chunk have come to; taken by the map.
    chunk: Option<Box<ChunkProgress>>,
    watch: Option<Box<Watch>>,
}

#[derive(Debug)]
enum Stage {
    /// The encoded argument.
    Awaited(Argument),
    Here(RawOutcome),
    Taken(Ending),
}

/// What kind of outcome a task has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Value,
    /// None of the others.
    Failure,
    Cancelled,
}

impl Ending {
    fn of(outcome: &RawOutcome) -> Self {
        match outcome {
            Ok(_) => Self::Value,
            Err(error) if error.is_cancelled() => Self::Cancelled,
            Err(_) => Self::Failure,
        }
    }
}

/// What an outcome leaves to do.
#[derive(Debug, Default)]
pub(crate) struct Completed {
    pub(crate) watch: Option<Box<Watch>>,
    /// The argument, if it takes a while to free it.
    pub(crate) argument: Option<Argument>,
    /// To drop the task may take a while, if nobody else has it.
    pub(crate) is_large: bool,
}

impl CellState {
    fn watch_of(&mut self, task: TaskId) -> &mut Watch {
        self.watch.get_or_insert_with(|| Box::new(Watch::of(task)))
    }
}

impl TaskCell {
    pub(crate) fn new(
        id: TaskId,
        callee: Callee,
        argument: Argument,
        label: Option<Arc<str>>,
        limits: Option<Box<Limits>>,
    ) -> Arc<Self> {
        Self::with_chunk(id, callee, argument, label, limits, None)
    }

    /// A chunk of a map's items; `arrivals` is told its id when it has ended.
    pub(crate) fn new_chunk(
        id: TaskId,
        callee: Callee,
        argument: Argument,
        limits: Option<Box<Limits>>,
        chunk: ChunkProgress,
        arrivals: &Arc<Arrivals>,
    ) -> Arc<Self> {
        let cell = Self::with_chunk(id, callee, argument, None, limits, Some(Box::new(chunk)));
        cell.watch(arrivals, id.get());
        cell
    }

    fn with_chunk(
        id: TaskId,
        callee: Callee,
        argument: Argument,
        label: Option<Arc<str>>,
        limits: Option<Box<Limits>>,
        chunk: Option<Box<ChunkProgress>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            callee,
            label: label.map(Box::new),
            limits,
            is_chunk: chunk.is_some(),
            place: AtomicU32::new(NOWHERE),
            ended: AtomicBool::new(false),
            state: Mutex::new(CellState { stage: Stage::Awaited(argument), chunk, watch: None }),
        })
    }

    pub(crate) fn label_text(&self) -> Option<&str> {
        self.label.as_deref().map(|label| &**label)
    }

    /// What errors and events call the task.
    pub(crate) fn label(&self) -> Option<Arc<str>> {
        self.label.as_deref().cloned()
    }

    pub(crate) fn set_place(&self, key: TaskKey) {
        self.place.store(key.raw(), Ordering::Release);
    }

    pub(crate) fn place(&self) -> Option<TaskRef> {
        match self.place.load(Ordering::Acquire) {
            NOWHERE => None,
            raw => TaskKey::from_raw(raw).map(|key| TaskRef { key, id: self.id }),
        }
    }

    /// Lends the encoded argument, which is there as long as the outcome is not, and the shape of a chunk.
    #[inline]
    pub(crate) fn with_argument<T>(
        &self,
        with: impl FnOnce(&Argument, Option<Chunk>) -> T,
    ) -> Option<T> {
        let state = self.lock();
        match &state.stage {
            Stage::Awaited(argument) => {
                Some(with(argument, state.chunk.as_ref().map(|chunk| chunk.shape)))
            }
            Stage::Here(_) | Stage::Taken(_) => None,
        }
    }

    /// What the items of a chunk have come to so far; `None` for other tasks.
    pub(crate) fn with_chunk_progress<T>(
        &self,
        with: impl FnOnce(&mut ChunkProgress) -> T,
    ) -> Option<T> {
        self.lock().chunk.as_deref_mut().map(with)
    }

    /// What the items of a chunk have come to in the end, and its items, given back.
    pub(crate) fn take_chunk(&self) -> Option<Box<ChunkProgress>> {
        self.lock().chunk.take()
    }

    /// Puts the outcome in; whoever waits is still to be told. A second outcome would be a defect of the machine, and
    /// changes nothing.
    #[must_use]
    pub(crate) fn complete(&self, mut outcome: RawOutcome) -> Completed {
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Awaited(_)) {
            debug_assert!(false, "a second outcome for {}", self.id);
            return Completed::default();
        }
        let mut watch = state.watch.take();
        if let Some((queue, callbacks)) = watch.as_mut().and_then(|watch| watch.callbacks.as_mut())
        {
            for callback in callbacks.drain(..) {
                queue.push(callback, share(&mut outcome));
            }
        }
        let is_large = self.is_chunk || outcome.as_ref().is_ok_and(Value::is_large);
        let before = std::mem::replace(&mut state.stage, Stage::Here(outcome));
        let mut large = None;
        if let Stage::Awaited(argument) = before {
            match &mut state.chunk {
                Some(chunk) => chunk.items = Some(argument),
                None => large = Some(argument).filter(Argument::is_large),
            }
        }
        self.ended.store(true, Ordering::Release);
        Completed { watch, argument: large, is_large }
    }

    /// Whether the outcome is there (or was), and if so whether it is a cancellation.
    pub(crate) fn ended(&self) -> Option<bool> {
        self.ending().map(|ending| ending == Ending::Cancelled)
    }

    /// The kind of the outcome, if it is there or was.
    pub(crate) fn ending(&self) -> Option<Ending> {
        if self.is_awaited() {
            return None;
        }
        match &self.lock().stage {
            Stage::Awaited(_) => None,
            Stage::Here(outcome) => Some(Ending::of(outcome)),
            Stage::Taken(ending) => Some(*ending),
        }
    }

    /// Has `arrivals` told when the outcome is there, which may be now.
    pub(crate) fn watch(&self, arrivals: &Arc<Arrivals>, name: u64) {
        let mut state = self.lock();
        if let Stage::Awaited(_) = state.stage {
            let watch = state.watch_of(self.id);
            return watch.arrivals.push((Arc::clone(arrivals), name));
        }
        drop(state);
        // Whoever waits for them looks before it sleeps.
        let _ = arrivals.add(name);
    }

    /// Undoes `watch`.
    pub(crate) fn unwatch(&self, arrivals: &Arc<Arrivals>) {
        let mut state = self.lock();
        if let Some(watch) = &mut state.watch {
            watch.arrivals.retain(|(other, _)| !Arc::ptr_eq(other, arrivals));
        }
        state.watch = state.watch.take().filter(|watch| !watch.is_empty());
    }

    /// Has a registered callback put into its queue when the outcome is there, which may be now; given back when the
    /// outcome was taken before.
    pub(crate) fn on_done(
        &self,
        callback: Callback,
        queue: &Arc<Callbacks>,
    ) -> Result<(), Callback> {
        let mut state = self.lock();
        match &mut state.stage {
            Stage::Awaited(_) => {
                let registered = &mut state.watch_of(self.id).callbacks;
                let (_, list) = registered.get_or_insert_with(|| (Arc::clone(queue), Vec::new()));
                list.push(callback);
            }
            Stage::Here(outcome) => {
                queue.push(callback, share(outcome));
                drop(state);
                queue.wake();
            }
            Stage::Taken(_) => return Err(callback),
        }
        Ok(())
    }

    /// The outcome, if it is there and was not taken before.
    pub(crate) fn try_take(&self) -> Option<RawOutcome> {
        Self::take_from(&mut self.lock())
    }

    /// Has `waker` woken when the outcome comes; nothing happens if it is there.
    pub(crate) fn notify(&self, waker: &Waker) {
        let waker = waker.clone();
        let mut state = self.lock();
        let replaced = match state.stage {
            Stage::Awaited(_) => state.watch_of(self.id).waker.replace(waker),
            Stage::Here(_) | Stage::Taken(_) => Some(waker),
        };
        drop(state);
        // To drop a waker is to run code of users.
        drop(replaced);
    }

    /// The outcome, or the promise to wake `waker` when it comes. `Err` when it was taken before.
    pub(crate) fn poll(&self, waker: &Waker) -> Result<Option<RawOutcome>, ()> {
        if self.is_awaited() {
            self.notify(waker);
        }
        if self.is_awaited() {
            return Ok(None);
        }
        self.try_take().map(Some).ok_or(())
    }

    fn take_from(state: &mut CellState) -> Option<RawOutcome> {
        let Stage::Here(outcome) = &state.stage else {
            return None;
        };
        let ending = Ending::of(outcome);
        match std::mem::replace(&mut state.stage, Stage::Taken(ending)) {
            Stage::Here(outcome) => Some(outcome),
            Stage::Awaited(_) | Stage::Taken(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, CellState> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Awaited for TaskCell {
    #[inline]
    fn is_awaited(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        self.lock().watch_of(self.id).sleeper = Some(sleeper);
    }

    fn wake_up(&self) {
        if let Some(watch) = &mut self.lock().watch {
            watch.sleeper = None;
        }
    }
}

/// The same outcome once more. The encoded value stays where it is, and is decoded by each who gets it.
fn share(outcome: &mut RawOutcome) -> RawOutcome {
    match outcome {
        Ok(value) => Ok(value.share()),
        Err(error) => Err(error.clone()),
    }
}

#[cfg(test)]
mod tests;
