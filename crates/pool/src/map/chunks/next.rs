//! The chunks of a pool as those of a map.

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
