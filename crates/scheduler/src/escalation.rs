//! Ends workers that were asked to stop and did not: SIGTERM first, then SIGKILL.

use brigade_time::Monotonic;

use crate::alarms::Alarm;
use crate::{Action, KillCause, Outbox, Scheduler, WorkerState};

impl<T> Scheduler<T> {
    /// Starts the escalation for a worker that was asked to stop and has nothing left to do.
    pub(crate) fn begin_escalation(&mut self, now: Monotonic, index: usize) {
        let worker = &mut self.workers[index];
        if worker.stop_alarm.is_none() {
            let due = now.saturating_add(self.settings.stop_grace);
            self.alarms.set(&mut worker.stop_alarm, due, Alarm::Stop(worker.id.slot));
        }
    }

    /// Takes the next step for a worker whose grace period is over.
    pub(crate) fn escalate(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[slot as usize];
        worker.stop_alarm = None;
        if worker.state == (WorkerState::Stopping { terminated: false }) {
            worker.state = WorkerState::Stopping { terminated: true };
            let due = now.saturating_add(self.settings.stop_grace);
            self.alarms.set(&mut worker.stop_alarm, due, Alarm::Stop(slot));
            outbox.push(Action::Terminate { worker: worker.id });
        } else {
            let worker = worker.id;
            self.kill(worker, KillCause::Shutdown, outbox);
        }
    }
}
