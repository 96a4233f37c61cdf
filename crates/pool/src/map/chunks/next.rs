//! The chunks of a pool as those of a map.

use std::collections::HashMap;

use brigade_task::map::{self, Seeded, Setting, Turn};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Chunks;
use crate::error::TaskError;
use crate::map::chunk::Results;

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
            if let Some(result) = self.try_next(turn) {
                return Some(result);
            }
            if !self.wait() {
                return None;
            }
        }
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
            Setting::Deadline(limit) => self.deadline = Some(limit),
            Setting::Retries(retries) => self.retries = retries,
        }
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
