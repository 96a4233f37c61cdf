//! The chunks of a map: sends as many as there is room for, and waits for outcomes.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use brigade_codec::chain;
use brigade_task::map::{self, Queued, Setting, Turn};
use brigade_task::{SubmitErrorKind, TaskError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::results::Results;
use super::sizing::Sizing;
use crate::client::failure::{self, closed};
use crate::client::inbox::{ChunkOutcome, Inbox};
use crate::client::machine::Ticket;
use crate::client::mapped::Mapped;
use crate::client::prepare::{Place, encode};
use crate::client::settings::Settings;
use crate::client::shared::{Command, Shared};
use crate::client::submission::Target;
use crate::error::ClusterError;
use crate::input_hash::input_hash;
use crate::message::{INLINE_LIMIT, Items, ItemsBuilder};
use crate::names::{ItemId, Priority};
use crate::needs::Needs;

/// Number of inputs that are taken ahead, unless the map has its own.
const WINDOW: usize = 1 << 18;

/// Number of bytes of inputs that are taken ahead.
const WINDOW_BYTES: usize = 64 << 20;

/// Number of items of a batch's chunks, unless the map or an earlier run has its own.
const BATCH_CHUNK: u32 = 16;

/// The chunks of a map.
pub struct Chunks<'cluster, I: Iterator> {
    shared: &'cluster Arc<Shared>,
    batch: Option<Mapped>,
    name: Arc<str>,
    inputs: Option<I>,
    /// The inputs whose results were not yielded, by position, if results come with inputs.
    kept: Option<HashMap<u64, I::Item>>,
    /// Number of inputs that were taken.
    taken: u64,
    /// Number of inputs that were sent, or whose failure is known.
    placed: u64,
    settings: Settings,
    sizing: Sizing,
    window: usize,
    /// An encoded input that did not fit into the last chunk.
    held: Option<Vec<u8>>,
    inbox: Arc<Inbox>,
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
        batch: Option<Mapped>,
        (name, types): (&str, u64),
        inputs: I,
    ) -> Self {
        let settings = Settings { label: Some(name.into()), types, ..Settings::default() };
        Self {
            shared,
            batch,
            name: name.into(),
            inputs: Some(inputs),
            kept: None,
            taken: 0,
            placed: 0,
            settings,
            sizing: Sizing::new(shared.run_times.get(name)),
            window: WINDOW,
            held: None,
            inbox: Arc::default(),
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

    fn take_arrived(&mut self, (index, outcome): (u64, ChunkOutcome)) -> Results {
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

impl<I: Iterator> map::Chunks for Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    type Results = Results;
    type Input = I::Item;

    fn next<R, T>(&mut self, turn: &mut T) -> Option<Result<R, TaskError>>
    where
        R: DeserializeOwned + 'static,
        T: Turn<Results>,
    {
        loop {
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                return Some(result);
            }
            self.current = turn.next(&mut self.arrived);
            if let Some(current) = &self.current {
                self.items -= current.items as usize;
                self.bytes -= current.bytes;
            } else {
                let arrived = self.next_chunk()?;
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
            Setting::Deadline(limit) => self.settings.deadline = Some(limit),
            Setting::Retries(retries) => self.settings.retries = retries,
        }
    }
}

impl<I: Iterator> Queued for Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    type Priority = Priority;
    type Needs = Needs;

    fn set_priority(&mut self, priority: Priority) {
        self.settings.priority = priority;
    }

    fn set_needs(&mut self, needs: Needs) {
        self.settings.needs = needs;
    }
}

impl<I: Iterator> Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    /// Sends what there is room for, and waits for the next outcome. Returns `None` if there are no
    /// more.
    fn next_chunk(&mut self) -> Option<Results> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin();
        }
        while self.inputs.is_some() && self.has_room() {
            self.send_chunk();
        }
        if let Some(unsent) = self.unsent.pop_front() {
            return Some(unsent);
        }
        if let Some(arrived) = self.inbox.try_take() {
            return Some(self.take_arrived(arrived));
        }
        if self.in_flight.is_empty() {
            return None;
        }
        let arrived = self.inbox.take();
        Some(self.take_arrived(arrived))
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

    /// Takes the inputs of one chunk and sends them.
    fn send_chunk(&mut self) {
        let most = self.sizing.items().min(u32::try_from(self.window).unwrap_or(u32::MAX));
        let mut builder = ItemsBuilder::default();
        let mut hashes = Vec::new();
        let mut failed = None;
        while builder.count() < most {
            let encoded = match self.next_input() {
                Some(Ok(encoded)) => encoded,
                Some(Err(kind)) => {
                    failed = Some(kind);
                    break;
                }
                None => break,
            };
            // The chunks of a batch have the same items in each run, whatever their size.
            let is_full = builder.count() > 0 && builder.len() + encoded.len() > INLINE_LIMIT;
            if is_full && self.batch.is_none() {
                self.held = Some(encoded);
                break;
            }
            if self.batch.is_some() {
                hashes.push(input_hash(&encoded));
            }
            builder.push(&encoded);
        }
        if builder.count() > 0 {
            let (count, bytes) = (builder.count(), builder.len());
            self.send(builder.finish(), hashes, count, bytes);
        }
        if let Some(kind) = failed {
            let label = self.settings.label.clone();
            self.add_unsent(failure::not_sent(kind, label));
        }
    }

    /// Takes an input and encodes it. Returns `None` after the last one.
    fn next_input(&mut self) -> Option<Result<Vec<u8>, SubmitErrorKind>> {
        if let Some(held) = self.held.take() {
            return Some(Ok(held));
        }
        let Some(input) = self.inputs.as_mut()?.next() else {
            self.inputs = None;
            return None;
        };
        let encoded = encode(&input);
        self.keep(input);
        Some(encoded)
    }

    fn send(&mut self, items: Items, hashes: Vec<u64>, count: u32, bytes: usize) {
        let index = self.next;
        self.next += 1;
        let position = self.placed;
        self.placed += u64::from(count);
        self.items += count as usize;
        self.bytes += bytes;
        let ticket = self.shared.next_ticket();
        self.in_flight.insert(index, InFlight { ticket, position, items: count, bytes });
        if let Err(kind) = self.try_send(items, hashes, count, index, ticket) {
            let error = failure::not_sent(kind, self.settings.label.clone());
            self.inbox.put(index, Err(error));
        }
    }

    fn try_send(
        &mut self,
        items: Items,
        hashes: Vec<u64>,
        count: u32,
        index: u64,
        ticket: Ticket,
    ) -> Result<(), SubmitErrorKind> {
        let place = match &self.batch {
            None => Place::Client,
            Some(Mapped { origin, is_continued }) => {
                let (origin, may_be_done) = (origin.clone(), *is_continued);
                Place::Batch { origin, item: ItemId::chunk(self.sent), may_be_done }
            }
        };
        self.sent += 1;
        if self.shared.is_forked() {
            return Err(SubmitErrorKind::Forked);
        }
        let target = Target::Chunk { inbox: Arc::clone(&self.inbox), index, items: count };
        let (shared, settings) = (self.shared, &self.settings);
        let submission =
            place.prepare(shared, ticket, &self.name, settings, (items, hashes), target)?;
        shared.window.enter().map_err(|_| closed())?;
        let is_sent = shared.send(Command::Submit(Box::new(submission)));
        if is_sent { Ok(()) } else { Err(closed()) }
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

impl<I: Iterator> fmt::Debug for Chunks<'_, I> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Chunks")
            .field("in_flight", &self.in_flight.len())
            .field("sizing", &self.sizing)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
