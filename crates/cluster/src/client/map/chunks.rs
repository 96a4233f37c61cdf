//! The chunks of a map: sends as many as there is room for, and waits for outcomes.

mod send;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use brigade_codec::chain;
use brigade_task::map::{self, Queued, Setting, Turn};
use brigade_task::{TaskError, TimedOut};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::results::Results;
use super::sizing::Sizing;
use crate::client::failure;
use crate::client::machine::Ticket;
use crate::client::open_batch::OpenBatch;
use crate::client::settings::Settings;
use crate::client::shared::{Command, Shared};
use crate::client::submission::ChunkOutcome;
use crate::clock::{Monotonic, now};
use crate::error::ClusterError;
use crate::names::Priority;
use crate::requirements::Requirements;

/// Number of inputs that are taken ahead, unless the map has its own.
const WINDOW: usize = 1 << 18;

/// Number of bytes of inputs that are taken ahead.
const WINDOW_BYTES: usize = 64 << 20;

/// Number of items of a batch's chunks, unless the map or an earlier run has its own.
const BATCH_CHUNK: u32 = 16;

/// The chunks of a map.
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Chunks<'cluster, I: Iterator> {
    shared: &'cluster Arc<Shared>,
    batch: Option<OpenBatch>,
    name: Arc<str>,
    inputs: Option<I>,
    /// The inputs whose results were not yielded, by position, if results come with inputs.
    kept: Option<HashMap<u64, I::Item>>,
    /// Number of inputs that were taken.
    taken: u64,
    /// Number of inputs that were sent, or whose failure is known.
    placed: u64,
    yielded: u64,
    /// The end of the wait for the next result, after which no inputs are taken.
    until: Option<Monotonic>,
    settings: Settings,
    sizing: Sizing,
    window: usize,
    /// An encoded input that did not fit into the last chunk.
    held: Option<Vec<u8>>,
    /// The outcomes of chunks, in the order of arrival. The sender is for those that follow.
    outcomes: Receiver<ChunkOutcome>,
    sender: Sender<ChunkOutcome>,
    /// The chunks without an outcome.
    in_flight: HashMap<u64, InFlight>,
    /// Results of inputs that were not sent.
    unsent: VecDeque<Results>,
    /// Results whose turn has not come.
    arrived: VecDeque<Results>,
    /// The results that are being yielded.
    current: Option<Results>,
    /// Number of chunks and unsent inputs so far.
    next: u64,
    /// Number of chunks that were sent.
    sent: u64,
    /// Items and bytes of chunks that were not yielded.
    items: usize,
    bytes: usize,
    has_begun: bool,
}

struct InFlight {
    ticket: Ticket,
    /// Position of the first input.
    position: u64,
    items: u32,
    bytes: usize,
}

impl<'cluster, I: Iterator> Chunks<'cluster, I> {
    pub(in crate::client) fn new(
        shared: &'cluster Arc<Shared>,
        batch: Option<OpenBatch>,
        (name, types): (&str, u64),
        inputs: impl IntoIterator<IntoIter = I>,
    ) -> Self {
        let settings = Settings { label: Some(name.into()), types, ..Settings::default() };
        let (sender, outcomes) = channel();
        Self {
            shared,
            batch,
            name: name.into(),
            inputs: Some(inputs.into_iter()),
            kept: None,
            taken: 0,
            placed: 0,
            yielded: 0,
            until: None,
            settings,
            sizing: Sizing::new(shared.run_times.get(name)),
            window: WINDOW,
            held: None,
            outcomes,
            sender,
            in_flight: HashMap::new(),
            unsent: VecDeque::new(),
            arrived: VecDeque::new(),
            current: None,
            next: 0,
            sent: 0,
            items: 0,
            bytes: 0,
            has_begun: false,
        }
    }

    fn has_room(&self) -> bool {
        self.items < self.window
            && self.bytes < WINDOW_BYTES
            && self.in_flight.len() < self.sizing.chunks()
    }

    fn take_arrived(&mut self, (index, outcome): ChunkOutcome) -> Results {
        let none = InFlight { ticket: 0, position: 0, items: 0, bytes: 0 };
        let InFlight { position, items, bytes, .. } = self.in_flight.remove(&index).unwrap_or(none);
        let outcome = outcome.map(|(found, run_time)| {
            self.sizing.learn(items, run_time);
            found
        });
        Results::new((index, position), outcome, items, bytes)
    }

    /// Counts the input that was taken last, and keeps it if results come with inputs.
    fn keep(&mut self, input: I::Item) {
        if let Some(kept) = &mut self.kept {
            kept.insert(self.taken, input);
        }
        self.taken += 1;
    }

    /// Adds the failure of an input that is not sent.
    fn add_unsent(&mut self, error: TaskError) {
        self.unsent.push_back(Results::new((self.next, self.placed), Err(error), 1, 0));
        self.next += 1;
        self.placed += 1;
        self.items += 1;
    }
}

impl<I: Iterator<Item: Serialize + 'static>> map::Chunks for Chunks<'_, I> {
    type Results = Results;
    type Input = I::Item;

    fn next_until<R: DeserializeOwned + 'static, T: Turn<Results>>(
        &mut self,
        turn: &mut T,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<R, TaskError>>, TimedOut> {
        self.until = deadline.map(|it| now() + it.saturating_duration_since(Instant::now()));
        loop {
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                self.yielded += 1;
                return Ok(Some(result));
            }
            self.current = turn.next(&mut self.arrived);
            if let Some(current) = &self.current {
                self.items -= current.items as usize;
                self.bytes -= current.bytes;
            } else {
                let Some(arrived) = self.next_chunk()? else { return Ok(None) };
                self.arrived.push_back(arrived);
            }
        }
    }

    fn position(&self) -> u64 {
        self.current.as_ref().map_or(0, Results::position)
    }

    fn keep_inputs(&mut self) {
        self.kept = Some(HashMap::new());
    }

    fn take_input(&mut self, position: u64) -> Option<I::Item> {
        self.kept.as_mut()?.remove(&position)
    }

    fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Window(items) => self.window = items,
            Setting::Chunk(items) => self.sizing.fix(u32::try_from(items).unwrap_or(u32::MAX)),
            Setting::Deadline(limit) => self.settings.run.deadline = Some(limit),
            Setting::Retry(retry) => self.settings.run.retry = retry,
            Setting::RetryPanics => self.settings.run.retries_panics = true,
            Setting::RetryErrors => self.settings.run.retries_errors = true,
            Setting::Needs(resource, amount) => {
                self.settings.requirements.add_resource(resource, amount);
            }
            // Nodes do this with the items of each chunk.
            Setting::OneAtATime => {}
        }
    }
}

impl<I: Iterator<Item: Serialize + 'static>> Queued for Chunks<'_, I> {
    type Priority = Priority;
    type Requirements = Requirements;

    fn set_priority(&mut self, priority: Priority) {
        self.settings.priority = priority;
    }

    fn set_requirements(&mut self, requirements: Requirements) {
        self.settings.requirements = requirements;
    }
}

impl<I: Iterator<Item: Serialize + 'static>> Chunks<'_, I> {
    /// Sends what there is room for, and waits for the next outcome. Returns `None` if there are no
    /// more.
    fn next_chunk(&mut self) -> Result<Option<Results>, TimedOut> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin();
        }
        let is_over = |until: Option<Monotonic>| until.is_some_and(|until| until <= now());
        while self.inputs.is_some() && self.has_room() && !is_over(self.until) {
            self.send_chunk();
        }
        if let Some(unsent) = self.unsent.pop_front() {
            return Ok(Some(unsent));
        }
        if let Ok(arrived) = self.outcomes.try_recv() {
            return Ok(Some(self.take_arrived(arrived)));
        }
        if is_over(self.until) && self.in_flight.is_empty() && self.inputs.is_some() {
            // Whether there is another input is known only once it is asked for.
            self.send_chunk();
        }
        if self.in_flight.is_empty() && self.unsent.is_empty() {
            return Ok(None);
        }
        let limit = self.until.map_or(Duration::MAX, |until| until.saturating_since(now()));
        match self.outcomes.recv_timeout(limit) {
            Ok(arrived) => Ok(Some(self.take_arrived(arrived))),
            // There is a sender, so the time is over.
            Err(_) => Err(self.timed_out()),
        }
    }

    /// Counts the inputs that were taken, and those that were not as far as they are known.
    fn timed_out(&self) -> TimedOut {
        let hint = self.inputs.as_ref().map_or((0, Some(0)), Iterator::size_hint);
        let left = if hint.1 == Some(hint.0) { hint.0 } else { 0 };
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let total = count(self.taken).saturating_add(left);
        TimedOut::new(total.saturating_sub(count(self.yielded)), total)
    }

    /// Agrees on the size of chunks with earlier runs of a batch.
    fn begin(&mut self) {
        let Some(batch) = &self.batch else { return };
        let wanted = self.sizing.fixed().unwrap_or(BATCH_CHUNK);
        match batch.agree(self.shared, &self.name, wanted) {
            Ok(chunk) => self.sizing.fix(chunk),
            Err(error) => {
                // The failure comes with the first input.
                let first = self.inputs.take().filter(|_| self.kept.is_some());
                if let Some(input) = first.and_then(|mut inputs| inputs.next()) {
                    self.keep(input);
                }
                let label = self.settings.label.clone();
                self.add_unsent(match error {
                    ClusterError::OtherBatch { .. } => failure::function(error.to_string(), label),
                    _ => failure::disconnected(&chain(&error), label),
                });
            }
        }
    }
}

impl<I: Iterator> Drop for Chunks<'_, I> {
    fn drop(&mut self) {
        if let Some(per_item) = self.sizing.per_item() {
            self.shared.run_times.set(&self.name, per_item);
        }
        // The next run of a batch takes its outcomes.
        if self.batch.is_none() {
            for InFlight { ticket, .. } in self.in_flight.values() {
                self.shared.send(Command::End { ticket: *ticket, kill: false });
            }
        }
    }
}

brigade_sys::debug_fields! {
    impl<I: Iterator> Chunks<'_, I> {
        |it| in_flight: it.in_flight.len(), sizing: it.sizing, window: it.window
    }
}
