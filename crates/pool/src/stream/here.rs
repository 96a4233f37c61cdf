//! Runs the function of a stream without workers, in the thread that puts an input.

use std::time::Instant;

use brigade_sys::clock;
use brigade_wire::Attempt;
use brigade_worker::call_here;

use super::task::Task;
use super::{Full, Item, Stream};
use crate::drive::panicked;
use crate::error::TaskError;
use crate::when_full::WhenFull;
use brigade_task::function::Here;

impl<A, R> Stream<A, R> {
    pub(super) fn put_here(
        &self,
        here: &Here<A, R>,
        input: A,
        queued: Instant,
        when_full: WhenFull,
    ) -> Result<u64, Full<A>> {
        let id = loop {
            if let Err(kind) = self.wait_for_room(when_full) {
                return Err(Full::new(kind, input));
            }
            // A stream without workers has no inputs that wait: the id is submitted at once.
            let put = self.with_machine(|machine| {
                let id = machine.put(Task::Running, clock::now()).ok()?;
                machine.submit_next().map(|_| id)
            });
            if let Some(id) = put {
                break id;
            }
        };
        let started = Instant::now();
        let result = call_here(|| here(self.seed_of(id), input)).map_err(|report| {
            let kind = panicked(*report);
            let label = self.settings.task.label.clone();
            TaskError::new(kind).of_task(self.shared.next_task_ids(1), Attempt::first(), label)
        });
        let (started, finished) = (Some(started), Instant::now());
        let (worker, attempt) = (None, Attempt::first().get());
        let item = Item { id, index: 0, queued, started, finished, worker, attempt, result };
        let item = Task::Ran(Box::new(item));
        let dropped = self.with_machine(|machine| machine.finished_as(id, item));
        // Not under the lock.
        drop(dropped);
        Ok(id)
    }
}
