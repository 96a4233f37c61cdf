//! The chunks of a pool as those of a map.

use std::collections::HashMap;
use std::time::Instant;

use brigade_task::map::{self, Seeded, Setting, Turn};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Chunks, is_over};
use crate::error::{TaskError, TimedOut};
use crate::map::chunk::Results;
use crate::when_full::WhenFull;
use brigade_task::backend::Wait;

impl<I: Iterator> map::Chunks for Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    type Results = Results;
    type Input = I::Item;

    #[inline]
    fn next<R, T>(&mut self, turn: &mut T) -> Option<Result<R, TaskError>>
    where
        R: DeserializeOwned + 'static,
        T: Turn<Results>,
    {
        // In a fork of the process not even `owner` may be accessed.
        if self.pool.shared().is_forked() {
            return self.forked().map(Err);
        }
        loop {
            if let Some(result) = self.try_next(turn, None) {
                return Some(result);
            }
            if !self.wait(None) {
                return None;
            }
        }
    }

    fn next_until<R, T>(
        &mut self,
        turn: &mut T,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<R, TaskError>>, TimedOut>
    where
        R: DeserializeOwned + 'static,
        T: Turn<Results>,
    {
        if self.pool.shared().is_forked() {
            return Ok(self.forked().map(Err));
        }
        let when_full = std::mem::replace(&mut self.when_full, WhenFull::Exceed);
        let next = self.next_in_time(turn, deadline);
        self.when_full = when_full;
        next
    }

    #[inline]
    fn position(&self) -> u64 {
        self.current.as_ref().map_or(0, Results::position)
    }

    fn keep_inputs(&mut self) {
        self.kept = Some(HashMap::new());
    }

    fn take_input(&mut self, position: u64) -> Option<I::Item> {
        let kept = self.kept.as_mut()?.remove(&position);
        kept.or_else(|| self.inputs.next())
    }

    fn set(&mut self, setting: Setting) {
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
}

impl<I: Iterator> Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    fn next_in_time<R, T>(
        &mut self,
        turn: &mut T,
        until: Option<Instant>,
    ) -> Result<Option<Result<R, TaskError>>, TimedOut>
    where
        R: DeserializeOwned + 'static,
        T: Turn<Results>,
    {
        loop {
            if let Some(result) = self.try_next(turn, until) {
                return Ok(Some(result));
            }
            if !is_over(until) {
                if !self.wait(until) {
                    return Ok(None);
                }
                continue;
            }
            // Outcomes that have arrived still count.
            self.pool.shared().collect();
            if !self.owner.completions.is_pending() {
                continue;
            }
            if self.under_way.is_empty() && !self.exhausted {
                // Whether there is another input is known only once it is asked for.
                self.next_chunk(1);
            }
            let has_ended = self.under_way.is_empty() && self.settled.is_empty();
            return if has_ended { Ok(None) } else { Err(self.timed_out()) };
        }
    }

    /// Counts the inputs that were taken, and those that were not as far as they are known.
    fn timed_out(&self) -> TimedOut {
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let taken = count(self.submitted + u64::from(self.filled));
        let total = taken.saturating_add(self.left().unwrap_or(0));
        TimedOut::new(total.saturating_sub(count(self.yielded)), total)
    }
}

impl<I: Iterator> Seeded for Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    fn set_seed(&mut self, seed: u64) {
        self.function = self.seeded.clone();
        self.refused = self.function.is_err();
        self.seed = Some(seed);
    }
}
