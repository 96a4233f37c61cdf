//! Puts inputs into a stream, and submits them to the pool.

use std::time::{Duration, Instant};

use brigade_sys::clock;
use brigade_task::Data;
use brigade_wire::{Attempt, codec, seed_of_input};
use serde::de::DeserializeOwned;

use super::task::{PoolTask, Task};
use super::{Full, PutErrorKind, Stream, share};
use crate::cell::{Rare, TaskCell};
use crate::emitted::Emitted;
use crate::error::{SubmitError, SubmitErrorKind};
use crate::payload::Argument;
use crate::run_record::RunRecord;
use crate::when_full::WhenFull;

impl<A: Data, R: DeserializeOwned + 'static> Stream<A, R> {
    /// Adds an input and returns its id. Blocks while the stream is full.
    ///
    /// Ids count the inputs of the stream, from 0. If an input fails to be encoded, or the pool
    /// refuses it because it is shut down or broken, its item has that error.
    ///
    /// # Errors
    /// Returns a [`Full`], which contains the input, if the stream was finished or closed.
    pub fn put(&self, input: A) -> Result<u64, Full<A>> {
        self.put_with(input, WhenFull::Wait)
    }

    /// Adds an input like [`put`](Self::put), but returns an error if the stream is full.
    ///
    /// # Errors
    /// [`PutErrorKind::Full`] if the stream is full; otherwise as `put`.
    pub fn try_put(&self, input: A) -> Result<u64, Full<A>> {
        self.put_with(input, WhenFull::Fail)
    }

    /// Adds an input like [`put`](Self::put), but waits at most `timeout` for room.
    ///
    /// # Errors
    /// [`PutErrorKind::TimedOut`] if the stream stayed full; otherwise as `put`.
    pub fn put_timeout(&self, input: A, timeout: Duration) -> Result<u64, Full<A>> {
        self.put_with(input, WhenFull::within(timeout))
    }

    fn put_with(&self, mut input: A, when_full: WhenFull) -> Result<u64, Full<A>> {
        if self.shared.is_forked() {
            return Err(Full::new(PutErrorKind::Forked, input));
        }
        let queued = Instant::now();
        if let Some(here) = &self.here {
            return self.put_here(here, input, queued, when_full);
        }
        let mut refused = None;
        loop {
            // An input that has to wait is encoded when there is room, and one that is refused
            // never.
            if let Err(kind) = self.wait_for_room(when_full) {
                return Err(Full::new(kind, input));
            }
            // The id, of which the seed is made, is known only once the input is added.
            let id = self.settings.seed.map(|_| self.with_machine(|machine| machine.next_id()));
            let task = match refused.take() {
                Some(task) if id.is_none() => task,
                _ => {
                    let (returned, task) =
                        self.encode(input, id.and_then(|id| self.seed_of(id)), queued);
                    input = returned;
                    Task::Pool(task)
                }
            };
            let put = self.with_machine(|machine| match id {
                Some(id) if id != machine.next_id() => Err(task),
                _ => machine.put(task, clock::now()).map_err(|(_, task)| task),
            });
            match put {
                Ok(id) => {
                    self.advance();
                    return Ok(id);
                }
                // Another producer came first. Not dropped under the lock.
                Err(task) => refused = Some(task),
            }
        }
    }

    /// Makes a task of an input, and returns the input.
    fn encode(&self, input: A, seed: Option<u64>, queued: Instant) -> (A, PoolTask) {
        let limit = self.shared.config.supervisor.message_limit;
        let arena = self.shared.arguments();
        let (input, encoded) = match seed {
            None => {
                let encoded = Argument::encode(&input, limit, arena, false);
                (input, encoded)
            }
            Some(seed) => {
                let seeded = (seed, input);
                let encoded = Argument::encode(&seeded, limit, arena, false);
                (seeded.1, encoded)
            }
        };
        let refused = encoded.as_ref().err();
        let refused = refused.map(|it| SubmitErrorKind::Codec { message: codec::chain(it) });
        let encoded = encoded.unwrap_or(Argument::EMPTY);
        let (id, function) = (self.shared.next_task_ids(1), self.function.clone());
        let (deadlines, _) = self.settings.task.constraints(&self.shared.config);
        let label = self.settings.task.label.clone();
        let mut record = RunRecord::default();
        if self.settings.flat {
            let workers = share(&self.shared, &self.settings).workers.max(1);
            let window = self.settings.limits.output / workers;
            record.emitted = Some(Box::new(Emitted::new(window)));
        }
        let retried_for = self.settings.task.retried_for;
        let span = self.shared.open_span(id, label.as_ref(), None);
        let rare = Rare::of(label, deadlines, retried_for, span).unwrap_or_default();
        let rare = Some(Rare { record: Some(Box::new(record)), ..rare });
        let cell = TaskCell::new(None, id, function, encoded, rare);
        (input, PoolTask { cell, queued, refused })
    }
}

impl<A, R> Stream<A, R> {
    /// Returns the seed of an input, if the stream has one.
    pub(super) fn seed_of(&self, id: u64) -> Option<u64> {
        self.settings.seed.map(|seed| seed_of_input(seed, id))
    }

    /// Blocks until an input is accepted, or returns the reason why none is.
    pub(super) fn wait_for_room(&self, when_full: WhenFull) -> Result<(), PutErrorKind> {
        let mut machine = self.machine.lock();
        loop {
            // The pool may have been resized.
            machine.set_share(share(&self.shared, &self.settings));
            match (machine.accepts(), when_full) {
                (Err(PutErrorKind::Full), WhenFull::Wait | WhenFull::Exceed) => {
                    machine = self.room.wait(machine);
                }
                (Err(PutErrorKind::Full), WhenFull::WaitUntil(deadline)) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(PutErrorKind::TimedOut);
                    }
                    machine = self.room.wait_timeout(machine, left).0;
                }
                (accepts, _) => return accepts,
            }
        }
    }

    /// Submits the inputs that the pool may have.
    pub(super) fn advance(&self) {
        let mut last: Option<(u64, TaskCell)> = None;
        let mut notify = false;
        loop {
            // No waker runs before the submission, which it might wait for.
            let ((next, epoch), is_news) = self.locked(|machine| {
                let next = machine.submit_next();
                let next = next.and_then(|(id, task)| Some((id, task.as_pool()?.clone())));
                (next, machine.epoch())
            });
            // A reset that came before the submission could not cancel the task.
            if let Some((_, cell)) = last.take().filter(|(submitted, _)| *submitted != epoch) {
                self.shared.cancel(&cell);
            }
            notify |= is_news;
            let Some((id, mut task)) = next else { break };
            self.submit(id, &mut task);
            last = Some((epoch, task.cell));
        }
        if notify {
            self.arrivals.notify(&self.shared);
        }
    }

    fn submit(&self, id: u64, task: &mut PoolTask) {
        let PoolTask { cell, refused, .. } = task;
        cell.watch(&self.arrivals.completions, id);
        let options = &self.settings.task;
        let submitted = if let Some(kind) = refused {
            Err(kind.clone())
        } else {
            let (_, constraints) = options.constraints(&self.shared.config);
            self.shared.submit(cell, None, options.retries, constraints, WhenFull::Exceed)
        };
        if let Err(kind) = submitted {
            let error = SubmitError::new(kind, ()).into_task_error();
            let error = error.of_task(cell.id, Attempt::first(), cell.label().cloned());
            self.shared.refuse(cell, error);
        }
    }
}
