//! The state of a stream, and its end.

use std::time::{Duration, Instant};

use super::machine::Machine;
use super::task::Task;
use super::{Stream, StreamReport};
use crate::cell::TaskCell;
use crate::error::TimedOut;
use brigade_task::backend::Wait;

impl<A, R> Stream<A, R> {
    /// Accepts no more inputs. The items of those that were put are still delivered; then `recv`
    /// returns `None`.
    pub fn finish(&self) {
        self.unless_forked(Machine::finish);
        self.room.notify_all();
    }

    /// Drops all pending inputs and their items, and returns their number. The stream continues
    /// with new inputs.
    ///
    /// Tasks that have not started are cancelled. Those that run are not stopped, but their results
    /// are dropped. No call to receive that begins later returns an item of an earlier input.
    pub fn reset(&self) -> u64 {
        let (submitted, others) = self.unless_forked(Machine::reset);
        self.room.notify_all();
        for task in submitted.iter().chain(&others) {
            task.cancel(&self.shared);
        }
        (submitted.len() + others.len()) as u64
    }

    /// Ends the stream: drops all pending inputs and their items, as [`reset`](Self::reset) does,
    /// and blocks until no task of the stream runs, at most for `timeout`.
    ///
    /// To get the remaining items first, [`finish`](Self::finish) the stream and receive them.
    /// The builder can start another stream.
    ///
    /// # Errors
    /// [`TimedOut`] if tasks still ran after `timeout`. They are killed.
    pub fn close(&self, timeout: Duration) -> Result<StreamReport, TimedOut> {
        let deadline = Instant::now().checked_add(timeout);
        let (submitted, others) = self.unless_forked(Machine::close);
        self.room.notify_all();
        for task in submitted.iter().chain(&others) {
            task.cancel(&self.shared);
        }
        // Those that have emitted items may still run.
        let others = others.iter().filter_map(Task::cell).filter(|cell| cell.task_ref().is_some());
        let submitted: Vec<&TaskCell> =
            submitted.iter().filter_map(Task::cell).chain(others).collect();
        for cell in &submitted {
            self.shared.wait_for(&***cell, deadline);
        }
        let running: Vec<&TaskCell> =
            submitted.iter().copied().filter(|cell| cell.is_pending()).collect();
        for task in running.iter().filter_map(|cell| cell.task_ref()) {
            self.shared.kill(task);
        }
        match running.len() {
            0 => Ok(self.report()),
            pending => Err(TimedOut::new(pending, submitted.len())),
        }
    }

    /// Returns `true` if the stream holds as many inputs as its limits allow, so that `put` would
    /// wait.
    pub fn is_full(&self) -> bool {
        self.unless_forked(|machine| machine.is_full())
    }

    /// Returns `true` if no input is pending.
    pub fn is_idle(&self) -> bool {
        self.pending() == 0
    }

    /// Returns the number of inputs whose items were neither received nor dropped.
    pub fn pending(&self) -> usize {
        self.unless_forked(|machine| machine.pending())
    }

    /// Returns the figures of the stream.
    pub fn report(&self) -> StreamReport {
        self.unless_forked(|machine| machine.report())
    }

    /// Acts on the machine. A fork of the process gets what an empty stream returns.
    fn unless_forked<T: Default>(&self, act: impl FnOnce(&mut Machine<Task<R>>) -> T) -> T {
        if self.shared.is_forked() { T::default() } else { self.with_machine(act) }
    }
}
