//! Ends and reaps the processes of fake workers.

use super::fake_worker::FakeWorker;
use super::world::World;
use crate::Event;

impl World {
    /// Returns `true` if a process that has just ended is gone. Otherwise it is reaped later.
    pub(super) fn is_reaped(&mut self, fake: &FakeWorker) -> bool {
        // One that is killed at once may be reaped at the same time.
        let gone = !self.killed_at_once.contains(&fake.id) || fake.begun % 4 == 3;
        if !gone {
            self.unreaped.push(fake.id);
        }
        gone
    }

    /// Reaps all processes that were reported dead.
    pub(super) fn reap(&mut self) {
        while let Some(worker) = self.unreaped.pop() {
            self.event(Event::Reaped { worker });
        }
    }

    /// Ends a worker that was killed, or that was asked to stop and is idle.
    pub(super) fn obey(&mut self, slot: u32) {
        let Some(fake) = self.workers.get(&slot) else {
            return;
        };
        if fake.doomed || fake.terminated {
            return self.crash(slot);
        }
        if fake.frozen {
            return;
        }
        if fake.stop_asked {
            self.begin(slot);
            if self.workers.get(&slot).is_some_and(|fake| fake.frames.is_empty()) {
                self.crash(slot);
            }
        }
    }
}
