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

impl<I: Iterator<Item: Serialize + 'static>> map::Chunks for Chunks<'_, I> {
    type Results = Results;
    type Input = I::Item;

    #[inline]
    fn next<R: DeserializeOwned + 'static, T: Turn<Results>>(
        &mut self,
        turn: &mut T,
    ) -> Option<Result<R, TaskError>> {
        // In a fork of the process not even `owner` may be accessed.
        if self.frames.pool.shared().is_forked() {
            return self.frames.forked().map(Err);
        }
        loop {
            if let Some(result) = self.try_next(turn, None) {
                return Some(result);
            }
            if !self.frames.wait(None) {
                return None;
            }
        }
    }

    fn next_until<R: DeserializeOwned + 'static, T: Turn<Results>>(
        &mut self,
        turn: &mut T,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<R, TaskError>>, TimedOut> {
        if self.frames.pool.shared().is_forked() {
            return Ok(self.frames.forked().map(Err));
        }
        let when_full = std::mem::replace(&mut self.frames.when_full, WhenFull::Exceed);
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
