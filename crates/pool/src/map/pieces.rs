//! All pieces of a map: made of inputs, submitted, and taken apart when they have ended.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_wire::{Attempt, Chunk, codec, items};
use brigade_worker::function_of;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::piece::{Items, Piece, Results, split};
use super::sizing::Sizing;
use crate::Pool;
use crate::arrivals::Arrivals;
use crate::awaited::Awaited;
use crate::callee::Callee;
use crate::cell::TaskCell;
use crate::chunk::ChunkProgress;
use crate::config::Config;
use crate::error::{SubmitError, SubmitErrorKind, TaskError, TaskErrorKind};
use crate::limits::Limits;
use crate::machine::Terms;
use crate::payload::Argument;
use crate::pool::Room;

/// Frames under way for each worker: one that runs, one that is there when it ends, one that replaces that one.
const FRAMES: usize = 3;

/// So many inputs for each worker may be taken ahead of the results that were yielded, unless `window` says otherwise.
const ITEMS_AHEAD: usize = 128;

/// And as many more as do not take more memory than this, encoded: while a slow item holds up the order, workers go on.
const BYTES_AHEAD: usize = 16 << 20;

/// Memory that a piece takes besides its items.
const BYTES_OF_A_PIECE: usize = 512;

/// Workers look at a clock that is at most this old to see whether a chunk's time is over: the longest tick that kernels
/// are configured with.
const LATEST_TICK: Duration = Duration::from_millis(10);

/// A piece is sent as it is when the inputs take longer than this.
const PATIENCE: Duration = Duration::from_micros(200);

/// See the module's documentation.
pub(super) struct Pieces<'pool, F, I: Iterator, R> {
    pool: &'pool Pool,
    callee: Result<Callee, TaskError>,
    inputs: I,
    exhausted: bool,
    /// No worker will ever run what is taken from now on: the pool is closed or broken, or workers cannot call the
    /// function.
    refused: bool,
    window: Option<usize>,
    retries: u32,
    /// How long an item may run, if not as long as the pool's tasks.
    deadline: Option<Duration>,
    sizing: Sizing,
    /// Inputs that were taken and not submitted; there are some for long only if the inputs have panicked.
    filling: Vec<u8>,
    filled: u32,
    /// Inputs before those.
    submitted: u64,
    yielded: u64,
    /// Bytes of the pieces whose results were not all yielded.
    held: usize,
    arrivals: Arc<Arrivals>,
    under_way: HashMap<u64, Piece>,
    settled: VecDeque<Results>,
    /// Pieces that could not be submitted and whose results were not all yielded.
    unsent: usize,
    types: PhantomData<fn(F) -> R>,
}

impl<'pool, F, I, R> Pieces<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(super) fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        let entry = function_of::<F, I::Item, R>(function);
        let callee = Callee::of(entry)
            .map_err(|message| TaskError::new(TaskErrorKind::Function { message }));
        Self {
            pool,
            refused: callee.is_err(),
            callee,
            inputs,
            exhausted: false,
            window: None,
            retries: 0,
            deadline: None,
            sizing: Self::sizing(pool),
            filling: Vec::new(),
            filled: 0,
            submitted: 0,
            yielded: 0,
            held: 0,
            arrivals: Arc::default(),
            under_way: HashMap::new(),
            settled: VecDeque::new(),
            unsent: 0,
            types: PhantomData,
        }
    }

    /// A worker that leaves after a number of tasks must be able to count them.
    fn sizing(pool: &Pool) -> Sizing {
        let mut sizing = Sizing::new(pool.workers());
        if pool.shared().config.max_tasks.is_some() {
            sizing.fix(1);
        }
        sizing
    }

    pub(super) fn set_deadline(&mut self, limit: Duration) {
        self.deadline = Some(limit);
    }

    pub(super) fn set_window(&mut self, items: usize) {
        self.window = Some(items.max(1));
    }

    pub(super) fn set_chunk(&mut self, items: usize) {
        self.sizing.fix(items);
    }

    pub(super) fn set_retries(&mut self, retries: u32) {
        self.retries = retries;
    }

    /// All results of a piece were yielded.
    pub(super) fn is_done_with(&mut self, results: &Results) {
        self.held -= results.held;
        self.unsent -= usize::from(results.unsent);
    }

    /// A result was yielded, which makes room in the window.
    #[inline]
    pub(super) fn yielded(&mut self) {
        self.yielded += 1;
    }

    /// Whether this process is a fork of the one that built the pool: then not even the arrivals may be looked at.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.pool.shared().is_forked()
    }

    /// What a fork of the process gets: an error, and then the end.
    pub(super) fn forked(&mut self) -> Option<TaskError> {
        let is_first = !std::mem::replace(&mut self.exhausted, true);
        (is_first || !self.under_way.is_empty()).then(|| {
            self.under_way.clear();
            TaskError::new(TaskErrorKind::Forked)
        })
    }

    /// Sees to it that workers have something to do, if that may have changed.
    #[inline]
    pub(super) fn keep_going(&mut self) {
        if !self.arrivals.is_awaited() {
            self.settle_arrived();
            self.refill();
        }
    }

    /// The results of a piece that has ended, in the order of ending.
    pub(super) fn settled(&mut self) -> Option<Results> {
        self.settled.pop_front()
    }

    /// Waits until a piece has ended; false when none is under way.
    pub(super) fn wait(&mut self) -> bool {
        if self.under_way.is_empty() {
            return !self.settled.is_empty();
        }
        self.pool.shared().wait_for(&*self.arrivals, None);
        self.settle_arrived();
        true
    }

    /// Takes inputs and submits them, as far as the window and the frames under way allow.
    pub(super) fn refill(&mut self) {
        while self.may_take() {
            match self.room() {
                0 => return,
                size => self.next_piece(size),
            }
        }
    }

    /// Whether inputs can be put to use. When nothing will run any more, one is taken each time that its error comes next.
    fn may_take(&self) -> bool {
        if self.exhausted {
            false
        } else if self.refused {
            self.under_way.is_empty() && self.unsent == 0
        } else {
            self.under_way.len() < FRAMES * self.pool.workers()
        }
    }

    /// How many inputs to take for the next piece; 0 when that has to wait for results to be yielded.
    fn room(&self) -> u32 {
        let left = match self.inputs.size_hint() {
            (least, Some(most)) if least == most => Some(least),
            _ => None,
        };
        let wanted = if self.refused { 1 } else { self.sizing.next(left) };
        let taken = self.submitted + u64::from(self.filled);
        let ahead = usize::try_from(taken - self.yielded).unwrap_or(usize::MAX);
        let Some(window) = self.window else {
            let usual = ITEMS_AHEAD * self.pool.workers();
            // Inputs that were not sent are no work for anybody, so they do not stretch the window.
            let full = ahead >= usual && (self.held >= BYTES_AHEAD || self.unsent >= usual);
            return if full { 0 } else { wanted };
        };
        let free = window.saturating_sub(ahead);
        // Not a piece for each single result that makes room.
        if free < (wanted as usize).min((window / 4).max(1)) {
            return 0;
        }
        wanted.min(u32::try_from(free).unwrap_or(u32::MAX))
    }

    fn next_piece(&mut self, size: u32) {
        let limit = self.pool.shared().config.message_limit;
        let begin = Instant::now();
        while self.filled < size && self.filling.len() < self.sizing.argument_bytes() {
            let Some(input) = self.inputs.next() else {
                self.exhausted = true;
                break;
            };
            let before = self.filling.len();
            let encoded =
                items::push_with(&mut self.filling, |bytes| codec::encode(&input, bytes, limit));
            if let Err(error) = encoded {
                self.submit_filled();
                let kind = SubmitErrorKind::Codec { message: codec::chain(&error) };
                let items = self.next_items(1);
                // It counts for the window before more are taken.
                return self.fail(items, kind);
            } else if self.filling.len() > limit && self.filled > 0 {
                let behind = self.filling.split_off(before);
                self.submit_filled();
                (self.filling, self.filled) = (behind, 1);
            } else {
                self.filled += 1;
            }
            // To look at the clock takes longer than a short input.
            if self.filled.is_power_of_two() && self.filled > 1 && begin.elapsed() > PATIENCE {
                break;
            }
        }
        self.submit_filled();
    }

    fn submit_filled(&mut self) {
        let count = std::mem::take(&mut self.filled);
        if count > 0 {
            let capacity = self.filling.len();
            let encoded = std::mem::replace(&mut self.filling, Vec::with_capacity(capacity));
            let items = self.next_items(count);
            self.submit(items, encoded);
        }
    }

    /// Numbers for the next inputs.
    fn next_items(&mut self, count: u32) -> Items {
        let place = self.submitted;
        self.submitted += u64::from(count);
        Items {
            place,
            count,
            first: self.pool.shared().next_task_ids(count.into()),
            attempt: Attempt::first(),
            retries: self.retries,
            deaths: 0,
            submitted: None,
        }
    }

    fn submit(&mut self, mut items: Items, encoded: Vec<u8>) {
        let callee = match &self.callee {
            Ok(callee) => callee.clone(),
            Err(error) => return self.fail_with(items, error.clone()),
        };
        let shape = Chunk { items: items.count, budget: self.sizing.budget() };
        let progress = ChunkProgress::new(shape);
        let encoded_bytes = encoded.len();
        let encoded = Argument::of(encoded, self.pool.shared().arguments());
        let limits = self.limits(&items);
        let terms = limits.as_ref().map(|limits| Box::new(self.terms(limits, &items, &shape)));
        items.submitted = limits.as_ref().map(|limits| limits.submitted);
        let limits = limits.map(Box::new);
        let cell =
            TaskCell::new_chunk(items.first, callee, encoded, limits, progress, &self.arrivals);
        let held = encoded_bytes + BYTES_OF_A_PIECE;
        self.held += held;
        match self.pool.shared().submit(&cell, items.attempt, 0, terms, Room::Wait) {
            Ok(()) => {
                self.under_way.insert(items.first.get(), Piece { cell, items, held });
            }
            Err(kind) => {
                self.held -= held;
                self.refused = true;
                self.fail(items, kind);
            }
        }
    }

    /// The limits of each item.
    fn limits(&self, items: &Items) -> Option<Limits> {
        let Config { deadlines, stop_grace, .. } = &self.pool.shared().config;
        let hard = self.deadline.or(deadlines.hard);
        let limits = Limits::new(deadlines.queue, deadlines.soft, hard, *stop_grace)?;
        Some(Limits { submitted: items.submitted.unwrap_or(limits.submitted), ..limits })
    }

    /// When an item that runs has begun is not known exactly, so that a chunk gets the time in addition in which its last
    /// item may begin. Of a chunk of a fixed size the items share their time.
    fn terms(&self, limits: &Limits, items: &Items, shape: &Chunk) -> Terms {
        let mut terms = limits.terms();
        // An item that runs again has not waited too long; one that never began goes on waiting.
        terms.began = items.attempt != Attempt::first();
        terms.queue_limit = limits.queue_left();
        terms.run_limit = terms.run_limit.map(|limit| {
            if self.sizing.is_fixed() {
                limit.saturating_mul(shape.items)
            } else {
                limit.saturating_add(shape.budget + LATEST_TICK)
            }
        });
        terms
    }

    fn fail(&mut self, items: Items, kind: SubmitErrorKind) {
        self.fail_with(items, SubmitError::new(kind, ()).into_task_error());
    }

    fn fail_with(&mut self, items: Items, error: TaskError) {
        self.unsent += 1;
        self.settled.push_back(Results::unsent(items, error));
    }

    fn settle_arrived(&mut self) {
        while let Some(name) = self.arrivals.take() {
            let Some(piece) = self.under_way.remove(&name) else { continue };
            let Some(mut progress) = piece.cell.take_chunk() else { continue };
            self.held -= piece.held;
            let piece_attempt = piece.items.attempt.get();
            let quarantine = self.pool.shared().config.quarantine;
            let mut ended = piece.end(&mut progress, quarantine);
            let bytes = ended.results.encoded_bytes();
            self.sizing.learn(progress.answered, progress.run_time, bytes);
            if ended.results.len() > 0 {
                ended.results.held = bytes + BYTES_OF_A_PIECE;
                self.held += ended.results.held;
                self.settled.push_back(ended.results);
            }
            for (items, encoded) in split(ended.again, self.sizing.parts()) {
                items.tell_that_they_run_again(self.pool.name(), piece_attempt);
                self.submit(items, encoded);
            }
        }
    }
}

/// What has not begun is cancelled; what runs goes on.
impl<F, I: Iterator, R> Drop for Pieces<'_, F, I, R> {
    fn drop(&mut self) {
        for piece in self.under_way.values() {
            if let Some(place) = piece.cell.place() {
                self.pool.shared().cancel(place, &piece.cell);
            }
        }
    }
}

impl<F, I: Iterator, R> fmt::Debug for Pieces<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pieces")
            .field("submitted", &self.submitted)
            .field("yielded", &self.yielded)
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}
