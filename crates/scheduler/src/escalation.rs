//! Ends workers that were asked to stop and did not: SIGTERM first, then SIGKILL.
//!
//! The modes of a [shutdown](crate::Shutdown) are not such an escalation: see `lifecycle`.

use brigade_base::{Escalation, Monotonic};

use crate::alarms::Alarm;
use crate::worker::EndWorker;
use crate::{Action, KillCause, Outbox, Scheduler, TaskData};

impl<T: TaskData> Scheduler<T> {
    /// Starts the escalation for a worker that was asked to stop and has nothing left to do.
    pub(crate) fn begin_escalation(&mut self, now: Monotonic, index: usize) {
        let worker = &mut self.workers[index];
        if worker.escalation.is_none() {
            let grace = self.settings.stop_grace;
            let steps = [(grace, EndWorker::Terminate), (grace, EndWorker::Kill)];
            worker.escalation = Some(Escalation::new(now, steps));
            self.update_stop_alarm(index);
        }
    }

    /// Takes the next step for a worker whose grace period is over.
    pub(crate) fn escalate(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[slot as usize];
        worker.stop_alarm = None;
        let id = worker.id;
        match worker.escalation.as_mut().and_then(|escalation| escalation.advance(now)) {
            Some(EndWorker::Terminate) => outbox.push(Action::Terminate { worker: id }),
            Some(EndWorker::Kill) => return self.kill(id, KillCause::Shutdown, outbox),
            None => {}
        }
        self.update_stop_alarm(slot as usize);
    }

    fn update_stop_alarm(&mut self, index: usize) {
        let worker = &mut self.workers[index];
        let due = worker.escalation.as_ref().and_then(Escalation::next_deadline);
        if let Some(due) = due {
            self.alarms.set(&mut worker.stop_alarm, due, Alarm::Stop(worker.id.slot));
        }
    }
}
