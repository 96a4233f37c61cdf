//! Breaks the pool when it cannot continue, so that nobody waits for something that will not
//! happen.

use std::fmt;
use std::io;

use brigade_scheduler::Event;
use brigade_supervisor::{WorkerProcess, note};
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

    /// Handles a worker that may not be killed, because this process has fewer privileges than when
    /// it started the worker. The worker is left behind, its death is reported as if it had died,
    /// and the pool breaks, because other workers would fail in the same way.
    pub(super) fn could_not_kill(&self, process: &WorkerProcess, error: io::Error) {
        let (worker, pid) = (process.worker(), process.pid().unwrap_or(0));
        let reason = format!(
            "{worker} (pid {pid}) cannot be killed and was left behind: {error}; a program must drop privileges before it builds a pool"
        );
        note!(
            self.supervisor.output, WARN, %worker, pid, %error,
            "cannot kill a worker, which was left behind"
        );
        self.left_behind.lock().push(pid);
        self.step(Event::Break { reason: reason.into() }, EventData::Nothing);
        process.leave_behind();
        self.supervisor.reaper.wake();
    }
}
