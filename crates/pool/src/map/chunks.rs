//! All chunks of a map: makes them of inputs, submits them, and takes their results when they have
//! ended.

mod frames;
mod submit;

use std::any::type_name;
use std::collections::HashMap;
#[cfg(feature = "futures")]
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_task::backend::Wait;
use brigade_task::function::Target;
use brigade_task::map::{self, Seeded, Setting, Turn};
use brigade_wire::codec::{self, CodecError};
use brigade_wire::shared::{SharedBuf, exporting};
use brigade_wire::{items, seed_of_input};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chunk::Results;
use crate::Pool;
use crate::buffers::append as append_buffers;
use crate::error::{TaskError, TimedOut};
use crate::when_full::WhenFull;
use frames::Frames;

/// If producing the inputs takes longer than this, a chunk whose size is not fixed is sent with the
/// inputs that it has.
const PATIENCE: Duration = Duration::from_micros(200);

/// Returns `true` once the time is over.
fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| until <= Instant::now())
}

/// The chunks of a map; see the module's documentation.
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Chunks<'pool, I: Iterator> {
    inputs: I,
    /// The inputs whose results were not yielded, by position, if results come with inputs.
    kept: Option<HashMap<u64, I::Item>>,
    frames: Frames<'pool>,
}

impl<'pool, I: Iterator> Chunks<'pool, I> {
    pub(super) fn new(pool: &'pool Pool, target: &Target<'_>, inputs: I) -> Self {
        Self { inputs, kept: None, frames: Frames::new(pool, target) }
    }

    /// Keeps the input that was taken last, if results come with inputs.
    fn keep(&mut self, input: I::Item) {
        if let Some(kept) = &mut self.kept {
            kept.insert(self.frames.submitted + u64::from(self.frames.filled), input);
        }
    }

    /// Returns the number of inputs that were not taken, if it is known.
    fn left(&self) -> Option<usize> {
        match self.inputs.size_hint() {
            _ if self.frames.exhausted => Some(0),
            (least, Some(most)) if least == most => Some(least),
            _ => None,
        }
    }
}

impl<I: Iterator<Item: Serialize + 'static>> map::Chunks for Chunks<'_, I> {
    type Results = Results;
    type Input = I::Item;

    #[inline]
    fn next_until<R: DeserializeOwned + 'static, T: Turn<Results>>(
        &mut self,
        turn: &mut T,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<R, TaskError>>, TimedOut> {
        // In a fork of the process not even `owner` may be accessed.
        if self.frames.pool.shared().is_forked() {
            return Ok(self.frames.forked().map(Err));
        }
        let when_full = self.frames.when_full;
        if deadline.is_some() {
            self.frames.when_full = WhenFull::Exceed;
        }
        let next = loop {
            if let Some(result) = self.try_next(turn, deadline) {
                break Ok(Some(result));
            }
            if !is_over(deadline) {
                if !self.frames.wait(deadline) {
                    break Ok(None);
                }
                continue;
            }
            // Outcomes that have arrived still count.
            self.frames.pool.shared().collect();
            if !self.frames.owner.completions.is_pending() {
                continue;
            }
            if self.frames.under_way.is_empty() && !self.frames.exhausted {
                // Whether there is another input is known only once it is asked for.
                self.next_chunk(1);
            }
            let has_ended = self.frames.under_way.is_empty() && self.frames.settled.is_empty();
            break if has_ended { Ok(None) } else { Err(self.frames.timed_out(self.left())) };
        };
        self.frames.when_full = when_full;
        next
    }

    #[inline]
    fn position(&self) -> u64 {
        self.frames.current.as_ref().map_or(0, Results::position)
    }

    fn keep_inputs(&mut self) {
        self.kept = Some(HashMap::new());
    }

    fn take_input(&mut self, position: u64) -> Option<I::Item> {
        let kept = self.kept.as_mut()?.remove(&position);
        kept.or_else(|| self.inputs.next())
    }

    fn set(&mut self, setting: Setting) {
        self.frames.set(setting);
    }
}

impl<I: Iterator<Item: Serialize + 'static>> Seeded for Chunks<'_, I> {
    fn set_seed(&mut self, seed: u64) {
        self.frames.set_seed(seed);
    }
}

#[cfg(feature = "futures")]
impl<I: Iterator<Item: Serialize + 'static>> map::PollChunks for Chunks<'_, I> {
    fn poll_next<R: DeserializeOwned + 'static, T: Turn<Results>>(
        &mut self,
        context: &Context<'_>,
        turn: &mut T,
    ) -> Poll<Option<Result<R, TaskError>>> {
        if self.frames.pool.shared().is_forked() {
            return Poll::Ready(self.frames.forked().map(Err));
        }
        // A future must not block.
        self.frames.when_full = WhenFull::Exceed;
        let mut is_registered = false;
        loop {
            if let Some(result) = self.try_next(turn, None) {
                return Poll::Ready(Some(result));
            }
            if self.frames.under_way.is_empty() && self.frames.settled.is_empty() {
                return Poll::Ready(None);
            }
            if !is_registered {
                let surplus = self.frames.owner.completions.add_waker(context.waker());
                self.frames.pool.shared().run_wakers(surplus);
                is_registered = true;
            } else if self.frames.owner.completions.is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<I: Iterator<Item: Serialize + 'static>> Chunks<'_, I> {
    /// Returns the next result if it has arrived. Takes no inputs once the time is over.
    #[inline]
    fn try_next<R: DeserializeOwned + 'static>(
        &mut self,
        turn: &mut impl Turn<Results>,
        until: Option<Instant>,
    ) -> Option<Result<R, TaskError>> {
        loop {
            if !self.frames.owner.completions.is_pending() {
                self.frames.settle_arrived();
                self.refill(until);
            }
            if let Some(result) = self.frames.current.as_mut().and_then(Results::next) {
                self.frames.yielded += 1;
                return Some(result);
            }
            self.frames.release();
            self.refill(until);
            self.frames.current = Some(turn.next(&mut self.frames.settled)?);
        }
    }

    /// Takes inputs and submits them, as far as the window and the maximum number of frames allow.
    fn refill(&mut self, until: Option<Instant>) {
        while !is_over(until) && self.frames.may_take() {
            match self.frames.room(self.left()) {
                0 => return,
                size => self.next_chunk(size),
            }
        }
    }

    fn next_chunk(&mut self, size: u32) {
        let limit = self.frames.pool.shared().config.supervisor.message_limit;
        let most_bytes = self.frames.sizing.argument_bytes();
        let begin = Instant::now();
        while self.frames.filled < size && self.frames.filling.len() < most_bytes {
            let Some(input) = self.inputs.next() else {
                self.frames.exhausted = true;
                break;
            };
            let before = self.frames.filling.len();
            let pushed = self.push(&input, limit);
            self.keep(input);
            match pushed {
                Ok(None) if self.frames.filling.len() <= limit => {}
                Ok(lent) => self.frames.separate(before, limit, lent),
                // It must count in the window before more inputs are taken.
                Err(error) => return self.frames.cannot_encode(&error),
            }
            self.frames.filled += 1;
            // Reading the clock takes longer than producing a short input.
            let may_be_slow = self.frames.filled.is_power_of_two() && self.frames.filled > 1;
            if may_be_slow && !self.frames.sizing.is_fixed() && begin.elapsed() > PATIENCE {
                break;
            }
        }
        self.frames.submit_filled();
    }

    /// Appends an encoded input to `filling`. Once an input had shared buffers, each ends with a
    /// list of buffers. Returns those that the list refers to; `None` as long as there were none.
    #[inline]
    fn push(
        &mut self,
        input: &I::Item,
        limit: usize,
    ) -> Result<Option<Vec<SharedBuf>>, Box<CodecError>> {
        let (pool, has_buffers) = (self.frames.pool, self.frames.has_buffers);
        let position = self.frames.submitted + u64::from(self.frames.filled);
        let seed = self.frames.seed.map(|seed| seed_of_input(seed, position));
        let mut lent = None;
        items::push_with(&mut self.frames.filling, |bytes| {
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
                let type_name = type_name::<I::Item>();
                lent = Some(append_buffers(buffers, &[], bytes, room, arena, type_name)?);
            }
            Ok::<(), Box<CodecError>>(())
        })?;
        Ok(lent)
    }
}

brigade_sys::debug_fields! {
    impl<I: Iterator> Chunks<'_, I> {
        |it|
        submitted: it.frames.submitted,
        yielded: it.frames.yielded,
        under_way: it.frames.under_way.len()
    }
}
