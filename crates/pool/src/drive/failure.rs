//! Breaks the pool when it cannot continue, so that nobody waits for something that will not
//! happen.

use std::fmt;

use brigade_scheduler::Event;
use brigade_wire::WorkerId;

use super::outcome::EventData;
use super::shared::Shared;

impl Shared {
    /// Breaks the pool because one of its threads cannot do its work anymore. Its workers are
    /// killed, so that all tasks get outcomes.
    pub(super) fn give_up(&self, part: &str, problem: &dyn fmt::Display) {
        let reason = format!("cannot {part}: {problem}");
        self.step(Event::Break { reason: reason.into() }, EventData::Nothing);
        let workers: Vec<WorkerId> =
            self.lock().worker_slots.iter().flatten().map(|slot| slot.id).collect();
        for worker in workers {
            self.step(Event::Misbehaved { worker }, EventData::Nothing);
        }
    }
}
