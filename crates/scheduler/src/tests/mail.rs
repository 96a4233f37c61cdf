//! Messages that the fake workers have written, and their reading.

use std::time::Duration;

use brigade_base::{Attempt, WorkerId};

use super::fake_worker::answers;
use super::model::Data;
use super::play::unknown_task;
use super::world::World;
use crate::Event;

impl World {
    /// Reads what the worker has written.
    pub(super) fn hear(&mut self, slot: u32) {
        self.hear_from([slot]);
    }

    /// Reads what all workers have written.
    pub(super) fn hear_all(&mut self) {
        self.hear_from(self.slots());
    }

    fn hear_from(&mut self, slots: impl IntoIterator<Item = u32>) {
        let mut heard = false;
        for slot in slots {
            while let Some(event) = self.next_mail(slot) {
                heard = true;
                self.event(event);
            }
        }
        if heard {
            self.event(Event::Balance);
        }
    }

    fn next_mail(&mut self, slot: u32) -> Option<Event<Data>> {
        let fake = self.workers.get_mut(&slot)?;
        let event = fake.mail.pop_front()?;
        if let Some(task) = answers(&event) {
            let answered = fake.answered.pop_front();
            // In the table, it still runs.
            let running = answered.filter(|_| fake.condemned == Some(task));
            fake.frames.extend(running);
            fake.frames.rotate_right(usize::from(running.is_some()));
        }
        Some(event)
    }

    /// Makes the worker report the outcome of a task that it was not sent.
    pub(super) fn answer_another(&mut self, worker: WorkerId) {
        self.hear(worker.slot);
        self.event(Event::Finished {
            worker,
            task: unknown_task(),
            attempt: Attempt::first(),
            run_time: Duration::ZERO,
            worn: false,
            failure: None,
        });
        let doomed = self.workers.get(&worker.slot).is_none_or(|fake| fake.doomed);
        assert!(doomed, "a worker that reported a foreign task lives on");
    }
}
