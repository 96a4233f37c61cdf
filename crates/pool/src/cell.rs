//! A task on the host's side, from its submission until its outcome is taken: what is sent, and where the outcome arrives.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Instant;

use brigade_wire::{Chunk, TaskId};

use crate::arrivals::Arrivals;
use crate::callee::Callee;
use crate::chunk::ChunkProgress;
use crate::error::TaskError;
use crate::machine::{TaskKey, TaskRef};
use crate::payload::{Argument, Value};

/// A task; shared by the pool and the handle.
///
/// The outcome takes the argument's place, so the argument does not outlive its use. It is put in once, by whoever learns
/// it, and taken out once, by the handle.
///
/// There is one for each task, so it is small, and nothing of it is moved once it is made. Neither completing a task nor
/// looking at it makes a system call unless somebody sleeps. Its lock is a leaf: nothing else is locked, and no code of
/// users runs, under it.
#[derive(Debug)]
pub(crate) struct TaskCell {
    pub(crate) id: TaskId,
    pub(crate) callee: Callee,
    /// Boxed, because few tasks have one.
    label: Option<Box<Arc<str>>>,
    /// Whether it is a chunk of a map's items.
    pub(crate) is_chunk: bool,
    /// Where the task is in the machine; [`NOWHERE`] until it is accepted.
    place: AtomicU32,
    /// Set under the lock, once the outcome is there.
    ended: AtomicBool,
    state: Mutex<CellState>,
}

/// No slab of tasks grows that far: it would take hundreds of gigabytes.
const NOWHERE: u32 = u32::MAX;

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
    Taken {
        cancelled: bool,
    },
}

/// Who is to be told when the outcome is there. Call [`tell`](Self::tell) where code of users may run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    waker: Option<Waker>,
    /// The map to whose pieces the task belongs, and its name there.
    arrivals: Option<(Arc<Arrivals>, u64)>,
    /// At most one thread sleeps: to wait takes the handle, or a unique reference to it.
    sleeper: Option<Sleeper>,
}

/// How a thread sleeps that waits for an outcome.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// Parked.
    Parked(Thread),
    /// On the caller's descriptor of the pool's doorbell.
    AtTheDoorbell,
}

impl Watch {
    /// True when the one who waits sleeps at the pool's doorbell and is still to be rung.
    #[must_use]
    pub(crate) fn tell(self) -> bool {
        if let Some(waker) = self.waker {
            waker.wake();
        }
        let at_the_doorbell = self.arrivals.is_some_and(|(arrivals, name)| arrivals.add(name));
        at_the_doorbell | self.sleeper.is_some_and(Sleeper::wake)
    }
}

impl Sleeper {
    /// True when the sleeper is at the pool's doorbell and is still to be rung.
    #[must_use]
    pub(crate) fn wake(self) -> bool {
        match self {
            Self::Parked(thread) => {
                thread.unpark();
                false
            }
            Self::AtTheDoorbell => true,
        }
    }
}

/// What a thread may wait for while it collects answers for everybody.
pub(crate) trait Awaited {
    /// Whether it is still to come.
    fn is_awaited(&self) -> bool;
    /// Says who is to be woken when it comes. Look once more before sleeping: it may have come before.
    fn set_sleeper(&self, sleeper: Sleeper);
    /// Nobody sleeps any more.
    fn wake_up(&self);
}

impl TaskCell {
    pub(crate) fn new(
        id: TaskId,
        callee: Callee,
        argument: Argument,
        label: Option<Arc<str>>,
    ) -> Arc<Self> {
        Self::with_chunk(id, callee, argument, label, None)
    }

    /// A chunk of a map's items; `arrivals` is told its id when it has ended.
    pub(crate) fn new_chunk(
        id: TaskId,
        callee: Callee,
        argument: Argument,
        chunk: ChunkProgress,
        arrivals: &Arc<Arrivals>,
    ) -> Arc<Self> {
        let cell = Self::with_chunk(id, callee, argument, None, Some(Box::new(chunk)));
        cell.lock().watch.get_or_insert_default().arrivals = Some((Arc::clone(arrivals), id.get()));
        cell
    }

    fn with_chunk(
        id: TaskId,
        callee: Callee,
        argument: Argument,
        label: Option<Arc<str>>,
        chunk: Option<Box<ChunkProgress>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            callee,
            label: label.map(Box::new),
            is_chunk: chunk.is_some(),
            place: AtomicU32::new(NOWHERE),
            ended: AtomicBool::new(false),
            state: Mutex::new(CellState { stage: Stage::Awaited(argument), chunk, watch: None }),
        })
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
            raw => Some(TaskRef { key: TaskKey::from_raw(raw), id: self.id }),
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
            Stage::Here(_) | Stage::Taken { .. } => None,
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

    /// Puts the outcome in; whoever waits is still to be told. A second outcome would be a defect of the machine.
    #[must_use]
    pub(crate) fn complete(&self, outcome: RawOutcome) -> Option<Box<Watch>> {
        let mut state = self.lock();
        debug_assert!(matches!(state.stage, Stage::Awaited(_)), "a second outcome for {}", self.id);
        let before = std::mem::replace(&mut state.stage, Stage::Here(outcome));
        if let (Some(chunk), Stage::Awaited(argument)) = (&mut state.chunk, before) {
            chunk.items = Some(argument);
        }
        let watch = state.watch.take();
        self.ended.store(true, Ordering::Release);
        watch
    }

    /// Whether the outcome is there (or was), and if so whether it is a cancellation.
    pub(crate) fn ended(&self) -> Option<bool> {
        if self.is_awaited() {
            return None;
        }
        match &self.lock().stage {
            Stage::Awaited(_) => None,
            Stage::Here(outcome) => Some(outcome.as_ref().is_err_and(TaskError::is_cancelled)),
            Stage::Taken { cancelled } => Some(*cancelled),
        }
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
            Stage::Awaited(_) => state.watch.get_or_insert_default().waker.replace(waker),
            Stage::Here(_) | Stage::Taken { .. } => Some(waker),
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
        let cancelled = outcome.as_ref().is_err_and(TaskError::is_cancelled);
        match std::mem::replace(&mut state.stage, Stage::Taken { cancelled }) {
            Stage::Here(outcome) => Some(outcome),
            Stage::Awaited(_) | Stage::Taken { .. } => None,
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
        self.lock().watch.get_or_insert_default().sleeper = Some(sleeper);
    }

    fn wake_up(&self) {
        if let Some(watch) = &mut self.lock().watch {
            watch.sleeper = None;
        }
    }
}

/// Parks this thread until what it waits for is there; somebody else has to bring it about.
pub(crate) fn park_for(awaited: &impl Awaited, deadline: Option<Instant>) {
    while awaited.is_awaited() {
        awaited.set_sleeper(Sleeper::Parked(thread::current()));
        if awaited.is_awaited() && !park_until(deadline) {
            return awaited.wake_up();
        }
    }
}

/// Parks this thread, which may end for no reason; false when the deadline has passed.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        thread::park();
        return true;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    thread::park_timeout(left);
    true
}
