//! All chunks of a map: makes them of inputs, submits them, and takes their results when they have
//! ended.

#[cfg(feature = "futures")]
mod futures;
mod next;
mod submit;

use std::collections::{HashMap, VecDeque, hash_map};
use std::fmt;
use std::mem::replace;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_task::function::Target;
use brigade_wire::codec::{self, CodecError};
use brigade_wire::shared::{SharedBuf, exporting};
use brigade_wire::{items, seed_of_input};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chunk::Results;
use super::sizing::Sizing;
use crate::Pool;
use crate::buffers::ItemBuffers;
use crate::cell::TaskCell;
use crate::chunk::ChunkOwner;
use crate::error::{SubmitErrorKind, TaskError, TaskErrorKind};
use crate::function_ref::FunctionRef;
use crate::payload::append_buffers;
use crate::task::{TaskOptions, label_of};
use crate::when_full::WhenFull;
use brigade_task::backend::Wait;
use brigade_task::map::{ChunkResults, Turn};

/// The default window: number of inputs per worker that may be taken ahead of the results that were
/// yielded.
const WINDOW_ITEMS: usize = 128;

/// The default window is exceeded while the encoded inputs and results take less memory than this,
/// so that workers go on while a slow item holds up the order.
const WINDOW_BYTES: usize = 16 << 20;

/// Memory that a chunk takes in addition to its items.
const BYTES_OF_A_CHUNK: usize = 512;

/// If producing the inputs takes longer than this, a chunk whose size is not fixed is sent with the
/// inputs that it has.
const PATIENCE: Duration = Duration::from_micros(200);

/// Returns `true` once the time is over.
fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
}

/// Items that were sent in one frame.
#[derive(Debug)]
struct Chunk {
    cell: TaskCell,
    /// Index of the first item among the map's inputs.
    position: u64,
    /// Bytes that it takes up in the default window.
    held: usize,
    /// `true` if it runs again, perhaps after a pause.
    is_retried: bool,
}

/// The chunks of a map; see the module's documentation.
pub struct Chunks<'pool, I: Iterator> {
    pool: &'pool Pool,
    function: Result<FunctionRef, TaskError>,
    /// The function for inputs with a seed.
    seeded: Result<FunctionRef, TaskError>,
    seed: Option<u64>,
    /// The settings of each item.
    options: TaskOptions,
    inputs: I,
    /// The inputs whose results were not yielded, by position, if results come with inputs.
    kept: Option<HashMap<u64, I::Item>>,
    exhausted: bool,
    /// `true` if no worker will run any further inputs: the pool is closed or broken, or workers
    /// cannot call the function.
    refused: bool,
    window: Option<usize>,
    sizing: Sizing,
    /// Encoded inputs that were taken and not submitted. They stay here for long only if the input
    /// iterator has panicked.
    filling: Vec<u8>,
    filled: u32,
    /// The shared buffers of the inputs in `filling`.
    buffers: ItemBuffers,
    /// `true` once an input had shared buffers: from then on each ends with a list of buffers.
    has_buffers: bool,
    /// Number of inputs before those in `filling`.
    submitted: u64,
    yielded: u64,
    /// Bytes of chunks with results that were not yielded yet.
    held: usize,
    /// Chunks that have ended, and those that were divided from others.
    owner: Arc<ChunkOwner>,
    /// By task id.
    under_way: HashMap<u64, Chunk>,
    /// Number of those that run again. They may be in a pause, and hold no others back.
    retried: usize,
    /// Results of chunks that have ended, in the order of completion.
    settled: VecDeque<Results>,
    /// The results that are being yielded.
    current: Option<Results>,
    when_full: WhenFull,
    /// Number of chunks that could not be submitted and have results that were not yielded yet.
    unsent: usize,
}

impl<'pool, I: Iterator> Chunks<'pool, I> {
    pub(super) fn new(pool: &'pool Pool, target: &Target<'_>, inputs: I) -> Self {
        let usable = |function: Result<FunctionRef, String>| {
            function.map_err(|message| TaskError::new(TaskErrorKind::Function { message }))
        };
        let function = usable(FunctionRef::to(target, pool.shared().runs_other_command()));
        let seeded = usable(FunctionRef::seeded(target));
        let mut sizing = Sizing::new(pool.workers());
        let settings = &pool.shared().config.scheduler;
        if settings.max_tasks.is_some() || settings.is_fresh() {
            // Workers that retire after a number of tasks get single items, so that they are
            // counted. So do processes for a single task.
            sizing.fix(1);
        }
        Self {
            pool,
            refused: function.is_err(),
            function,
            seeded,
            seed: None,
            options: TaskOptions { label: label_of(target), ..TaskOptions::default() },
            inputs,
            kept: None,
            exhausted: false,
            window: None,
            sizing,
            filling: Vec::new(),
            filled: 0,
            buffers: Vec::new(),
            has_buffers: false,
            submitted: 0,
            yielded: 0,
            held: 0,
            owner: Arc::default(),
            under_way: HashMap::new(),
            retried: 0,
            settled: VecDeque::new(),
            current: None,
            when_full: WhenFull::Wait,
            unsent: 0,
        }
    }

    /// Returns the results in a forked process: an error, then the end.
    fn forked(&mut self) -> Option<TaskError> {
        let is_first = !replace(&mut self.exhausted, true);
        (is_first || !self.under_way.is_empty()).then(|| {
            let under_way = self.under_way.drain().map(|(_, chunk)| chunk.position);
            let settled = self.settled.iter().map(|results| results.positions().start);
            let first = under_way.chain(settled).min().unwrap_or(self.submitted);
            TaskError::new(TaskErrorKind::Forked).at(first)
        })
    }

    /// Keeps the input that was taken last, if results come with inputs.
    fn keep(&mut self, input: I::Item) {
        if let Some(kept) = &mut self.kept {
            kept.insert(self.submitted + u64::from(self.filled), input);
        }
    }

    fn settle_arrived(&mut self) {
        while let Some(id) = self.owner.completions.take() {
            // A chunk that was divided from another is there before its id.
            for cell in self.owner.take() {
                let chunk = cell.with_chunk_progress(|chunk| (chunk.position, chunk.bytes));
                let (position, bytes) = chunk.unwrap_or_default();
                self.add(cell, position, bytes);
            }
            let hash_map::Entry::Occupied(mut chunk) = self.under_way.entry(id) else { continue };
            if chunk.get().cell.is_pending() {
                self.retried += usize::from(!replace(&mut chunk.get_mut().is_retried, true));
                continue;
            }
            let Chunk { cell, held, is_retried, .. } = chunk.remove();
            self.retried -= usize::from(is_retried);
            let Some(progress) = cell.take_chunk() else { continue };
            self.held -= held;
            let (answered, run_time) = (progress.answered, progress.run_time);
            let mut results = Results::of(&cell, *progress);
            let bytes = results.encoded_bytes();
            self.sizing.learn(answered, run_time, bytes);
            results.held = bytes + BYTES_OF_A_CHUNK;
            self.held += results.held;
            self.settled.push_back(results);
        }
    }

    fn add(&mut self, cell: TaskCell, position: u64, bytes: usize) {
        let held = bytes + BYTES_OF_A_CHUNK;
        self.held += held;
        self.under_way.insert(cell.id.get(), Chunk { cell, position, held, is_retried: false });
    }
}

impl<I: Iterator> Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    /// Returns the next result if it has arrived. Takes no inputs once the time is over.
    #[inline]
    fn try_next<R, T>(
        &mut self,
        turn: &mut T,
        until: Option<Instant>,
    ) -> Option<Result<R, TaskError>>
    where
        R: DeserializeOwned + 'static,
        T: Turn<Results>,
    {
        loop {
            if !self.owner.completions.is_pending() {
                self.settle_arrived();
                self.refill(until);
            }
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                self.yielded += 1;
                return Some(result);
            }
            if let Some(done) = self.current.take() {
                self.held -= done.held;
                self.unsent -= usize::from(done.unsent);
            }
            self.refill(until);
            self.current = Some(turn.next(&mut self.settled)?);
        }
    }

    /// Blocks until a chunk has ended or the time is over. Returns `false` if there is no chunk
    /// left.
    fn wait(&mut self, until: Option<Instant>) -> bool {
        if self.under_way.is_empty() {
            return !self.settled.is_empty();
        }
        self.pool.shared().wait_for(&*self.owner.completions, until);
        self.settle_arrived();
        true
    }

    /// Takes inputs and submits them, as far as the window and the maximum number of frames allow.
    fn refill(&mut self, until: Option<Instant>) {
        while !is_over(until) && self.may_take() {
            match self.room() {
                0 => return,
                size => self.next_chunk(size),
            }
        }
    }

    /// Returns `true` if inputs should be taken. When no task will run any more, an input is taken
    /// only when its error is the next result.
    fn may_take(&self) -> bool {
        if self.exhausted {
            false
        } else if self.refused {
            self.under_way.is_empty() && self.unsent == 0
        } else {
            self.under_way.len() - self.retried < self.sizing.frames(self.pool.workers())
        }
    }

    /// Returns the number of inputs that were not taken, if it is known.
    fn left(&self) -> Option<usize> {
        match self.inputs.size_hint() {
            _ if self.exhausted => Some(0),
            (least, Some(most)) if least == most => Some(least),
            _ => None,
        }
    }

    /// Returns the number of inputs for the next chunk, or 0 if results have to be yielded first.
    fn room(&self) -> u32 {
        let left = self.left();
        let wanted = if self.refused { 1 } else { self.sizing.next(left) };
        let taken = self.submitted + u64::from(self.filled);
        let ahead = usize::try_from(taken - self.yielded).unwrap_or(usize::MAX);
        let Some(window) = self.window else {
            let usual = WINDOW_ITEMS * self.pool.workers();
            // Inputs that were not sent keep no worker busy, so they do not extend the window.
            let full = ahead >= usual && (self.held >= WINDOW_BYTES || self.unsent >= usual);
            return if full { 0 } else { wanted };
        };
        let free = window.saturating_sub(ahead);
        // Avoid a chunk for each single result that makes room.
        if free < (wanted as usize).min((window / 4).max(1)) {
            return 0;
        }
        wanted.min(u32::try_from(free).unwrap_or(u32::MAX))
    }

    fn next_chunk(&mut self, size: u32) {
        let limit = self.pool.shared().config.supervisor.message_limit;
        let most_bytes = self.sizing.argument_bytes();
        let begin = Instant::now();
        while self.filled < size && self.filling.len() < most_bytes {
            let Some(input) = self.inputs.next() else {
                self.exhausted = true;
                break;
            };
            let before = self.filling.len();
            let pushed = self.push(&input, limit);
            self.keep(input);
            match pushed {
                Ok(None) if self.filling.len() <= limit => {}
                Ok(lent) => self.separate(before, limit, lent),
                Err(error) => {
                    self.submit_filled();
                    let kind = SubmitErrorKind::Codec { message: codec::chain(&*error) };
                    let items = self.next_items(1);
                    // It must count in the window before more inputs are taken.
                    return self.fail(items, kind);
                }
            }
            self.filled += 1;
            // Reading the clock takes longer than producing a short input.
            let may_be_slow = self.filled.is_power_of_two() && self.filled > 1;
            if may_be_slow && !self.sizing.is_fixed() && begin.elapsed() > PATIENCE {
                break;
            }
        }
        self.submit_filled();
    }

    /// Appends an encoded input to `filling`. Once an input had shared buffers, each ends with a
    /// list of buffers. Returns those that the list refers to; `None` as long as there were none.
    #[inline]
    fn push(
        &mut self,
        input: &I::Item,
        limit: usize,
    ) -> Result<Option<Vec<SharedBuf>>, Box<CodecError>> {
        let (pool, has_buffers) = (self.pool, self.has_buffers);
        let position = self.submitted + u64::from(self.filled);
        let seed = self.seed.map(|seed| seed_of_input(seed, position));
        let mut lent = None;
        items::push_with(&mut self.filling, |bytes| {
            let start = bytes.len();
            if let Some(seed) = seed {
                codec::encode(&seed, bytes, limit)?;
            }
            let (encoded, buffers) =
                exporting(|| codec::encode(input, bytes, limit).map_err(Box::new));
            encoded?;
            if has_buffers || buffers.is_some() {
                let buffers = buffers.unwrap_or_default();
                let room = limit.saturating_sub(bytes.len() - start);
                let arena = pool.shared().arguments();
                lent = Some(append_buffers::<I::Item>(buffers, bytes, room, arena)?);
            }
            Ok::<(), Box<CodecError>>(())
        })?;
        Ok(lent)
    }
}

/// Cancels chunks that have not started. In running chunks no item starts after the current one.
impl<I: Iterator> Drop for Chunks<'_, I> {
    fn drop(&mut self) {
        let shared = self.pool.shared();
        if shared.is_forked() {
            return;
        }
        let mut cells: Vec<_> = self.under_way.drain().map(|(_, chunk)| chunk.cell).collect();
        // Until a running chunk is cancelled, it may be divided.
        while !cells.is_empty() {
            for cell in &cells {
                shared.cancel(cell);
            }
            cells = self.owner.take();
        }
        self.owner.close();
    }
}

impl<I: Iterator> fmt::Debug for Chunks<'_, I> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Chunks")
            .field("submitted", &self.submitted)
            .field("yielded", &self.yielded)
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}
