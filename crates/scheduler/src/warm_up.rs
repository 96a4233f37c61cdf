//! Starts all workers before there is work for them.

use std::sync::Arc;

use brigade_time::Monotonic;

use crate::{Outbox, Scheduler, WorkerState};

impl<T> Scheduler<T> {
    /// Starts all workers that the pool may have.
    pub(crate) fn warm_up(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if !self.lifecycle.is_running() {
            return;
        }
        self.lifecycle.set_quiescent(false);
        for worker in self.workers.wanted_mut() {
            worker.awaited_by_warm_up = worker.state != WorkerState::Ready;
        }
        self.update_warming();
        self.not_warmed = None;
        self.spawn_for_demand(now, outbox);
    }

    /// Ends the warm-up once each slot has been ready. They need not all be ready at the same time,
    /// because workers come and go.
    pub(crate) fn update_warming(&mut self) {
        self.warming = self.workers.wanted().any(|worker| worker.awaited_by_warm_up);
    }

    pub(crate) fn stop_warming(&mut self) {
        for worker in self.workers.iter_mut() {
            worker.awaited_by_warm_up = false;
        }
        self.warming = false;
    }

    /// Gives a warm-up up because not all workers can be started. Those that exist go on.
    pub(crate) fn give_up_warming(&mut self, reason: Arc<str>) {
        if self.warming {
            self.stop_warming();
            self.not_warmed = Some(reason);
        }
    }
}
