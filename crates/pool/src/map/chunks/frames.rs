//! The chunks of a map apart from its inputs. They are compiled once, and not for each type of
//! inputs.

use std::collections::{HashMap, VecDeque, hash_map};
use std::mem::replace;
use std::sync::Arc;
use std::time::Instant;

use brigade_task::backend::Wait;
use brigade_task::function::Target;
use brigade_task::map::{ChunkResults, Setting};

use crate::Pool;
use crate::buffers::ItemBuffers;
use crate::cell::TaskCell;
use crate::chunk::ChunkOwner;
use crate::error::{TaskError, TaskErrorKind, TimedOut};
use crate::function_ref::FunctionRef;
use crate::map::chunk::Results;
use crate::map::sizing::ChunkSizing;
use crate::task::{TaskOptions, label_of};
use crate::when_full::WhenFull;

/// The default window: number of inputs per worker that may be taken ahead of the results that were
/// yielded.
const WINDOW_ITEMS: usize = 128;

/// The default window is exceeded while the encoded inputs and results take less memory than this,
/// so that workers go on while a slow item holds up the order.
const WINDOW_BYTES: usize = 16 << 20;

/// The default window is at most this number of times [`WINDOW_ITEMS`], and twice the results that
/// were yielded: whatever the speed of the workers, few results take few inputs.
const WINDOW_STRETCH: u64 = 8;

/// Memory that a chunk takes in addition to its items.
const BYTES_OF_A_CHUNK: usize = 512;

/// Items that were sent in one frame.
#[derive(Debug)]
pub(super) struct Chunk {
    cell: TaskCell,
    /// Index of the first item among the map's inputs.
    position: u64,
    /// Bytes that it takes up in the default window.
    held: usize,
    /// `true` if it runs again, perhaps after a pause.
    is_retried: bool,
}

/// The settings of a map, the inputs that it has taken, and the results that have come back.
pub(super) struct Frames<'pool> {
    pub(super) pool: &'pool Pool,
    pub(super) function: Result<FunctionRef, TaskError>,
    /// The function for inputs with a seed.
    pub(super) seeded: Result<FunctionRef, TaskError>,
    pub(super) seed: Option<u64>,
    /// The settings of each item.
    pub(super) options: TaskOptions,
    pub(super) exhausted: bool,
    /// `true` if no worker will run any further inputs: the pool is closed or broken, or workers
    /// cannot call the function.
    pub(super) refused: bool,
    pub(super) window: Option<usize>,
    pub(super) sizing: ChunkSizing,
    /// Encoded inputs that were taken and not submitted. They stay here for long only if the input
    /// iterator has panicked.
    pub(super) filling: Vec<u8>,
    pub(super) filled: u32,
    /// The shared buffers of the inputs in `filling`.
    pub(super) buffers: ItemBuffers,
    /// `true` once an input had shared buffers: from then on each ends with a list of buffers.
    pub(super) has_buffers: bool,
    /// Number of inputs before those in `filling`.
    pub(super) submitted: u64,
    pub(super) yielded: u64,
    /// Bytes of chunks with results that were not yielded yet.
    pub(super) held: usize,
    /// Chunks that have ended, and those that were divided from others.
    pub(super) owner: Arc<ChunkOwner>,
    /// By task id.
    pub(super) under_way: HashMap<u64, Chunk>,
    /// Number of those that run again. They may be in a pause, and hold no others back.
    pub(super) retried: usize,
    /// Results of chunks that have ended, in the order of completion.
    pub(super) settled: VecDeque<Results>,
    /// The results that are being yielded.
    pub(super) current: Option<Results>,
    pub(super) when_full: WhenFull,
    /// Number of chunks that could not be submitted and have results that were not yielded yet.
    pub(super) unsent: usize,
}

impl<'pool> Frames<'pool> {
    pub(super) fn new(pool: &'pool Pool, target: &Target<'_>) -> Self {
        let usable = |function: Result<FunctionRef, String>| {
            function.map_err(|message| TaskError::new(TaskErrorKind::Function { message }))
        };
        let function = usable(FunctionRef::to(target, pool.shared().runs_other_command()));
        let seeded = usable(FunctionRef::seeded(target));
        let mut sizing = ChunkSizing::new(pool.workers());
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
    pub(super) fn forked(&mut self) -> Option<TaskError> {
        let is_first = !replace(&mut self.exhausted, true);
        (is_first || !self.under_way.is_empty()).then(|| {
            let under_way = self.under_way.drain().map(|(_, chunk)| chunk.position);
            let settled = self.settled.iter().map(|results| results.positions().start);
            let first = under_way.chain(settled).min().unwrap_or(self.submitted);
            TaskError::new(TaskErrorKind::Forked).at(first)
        })
    }

    pub(super) fn settle_arrived(&mut self) {
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

    /// Drops the chunk whose results were yielded.
    pub(super) fn release(&mut self) {
        if let Some(done) = self.current.take() {
            self.held -= done.held;
            self.unsent -= usize::from(done.unsent);
        }
    }

    pub(super) fn add(&mut self, cell: TaskCell, position: u64, bytes: usize) {
        let held = bytes + BYTES_OF_A_CHUNK;
        self.held += held;
        self.under_way.insert(cell.id.get(), Chunk { cell, position, held, is_retried: false });
    }

    /// Blocks until a chunk has ended or the time is over. Returns `false` if there is no chunk
    /// left.
    pub(super) fn wait(&mut self, until: Option<Instant>) -> bool {
        if self.under_way.is_empty() {
            return !self.settled.is_empty();
        }
        self.pool.shared().wait_for(&*self.owner.completions, until);
        self.settle_arrived();
        true
    }

    /// Returns `true` if inputs should be taken. When no task will run any more, an input is taken
    /// only when its error is the next result.
    pub(super) fn may_take(&self) -> bool {
        if self.exhausted {
            false
        } else if self.refused {
            self.under_way.is_empty() && self.unsent == 0
        } else {
            self.under_way.len() - self.retried < self.sizing.frames(self.pool.workers())
        }
    }

    /// Returns the number of inputs for the next chunk, or 0 if results have to be yielded first.
    /// `left` are those that were not taken, if it is known.
    pub(super) fn room(&self, left: Option<usize>) -> u32 {
        let wanted = if self.refused { 1 } else { self.sizing.next(left) };
        let taken = self.submitted + u64::from(self.filled);
        let ahead = taken - self.yielded;
        let usual = (WINDOW_ITEMS * self.pool.workers()) as u64;
        // Inputs that were not sent keep no worker busy, so they do not extend the window.
        let is_full = self.held >= WINDOW_BYTES || self.unsent as u64 >= usual;
        let window = match self.window {
            Some(items) => items as u64,
            None if ahead >= usual && is_full => 0,
            None => WINDOW_STRETCH * usual + 2 * self.yielded,
        };
        let free = window.saturating_sub(ahead);
        // Avoid a chunk for each single result that makes room.
        if free < u64::from(wanted).min((window / 4).max(1)) {
            return 0;
        }
        wanted.min(u32::try_from(free).unwrap_or(u32::MAX))
    }

    /// Counts the inputs that were taken, and those that were not as far as they are known.
    pub(super) fn timed_out(&self, left: Option<usize>) -> TimedOut {
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let taken = count(self.submitted + u64::from(self.filled));
        let total = taken.saturating_add(left.unwrap_or(0));
        TimedOut::new(total.saturating_sub(count(self.yielded)), total)
    }

    pub(super) fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Window(items) => self.window = Some(items),
            Setting::Chunk(items) => self.sizing.fix(items),
            Setting::Deadline(limit) => self.options.deadlines.hard = Some(limit),
            Setting::Retry(retry) => self.options.set_retry(retry),
            Setting::RetryPanics => self.options.retried_for.panics = true,
            Setting::RetryErrors => self.options.retried_for.errors = true,
            Setting::Needs(resource, amount) => self.add_need(resource, amount),
            Setting::OneAtATime => self.sizing.set_one_at_a_time(),
        }
    }

    /// Gives each input a seed.
    pub(super) fn set_seed(&mut self, seed: u64) {
        self.function = self.seeded.clone();
        self.refused = self.function.is_err();
        self.seed = Some(seed);
    }
}

/// Cancels chunks that have not started. In running chunks no item starts after the current one.
impl Drop for Frames<'_> {
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
