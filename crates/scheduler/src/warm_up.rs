//! Starts all workers before there is work for them.

use std::sync::Arc;

use crate::worker::WorkerState;
use crate::workers::Workers;

/// The last warm-up: in progress, complete, or given up.
#[derive(Debug, Default)]
pub(crate) struct WarmUp {
    in_progress: bool,
    given_up: Option<Arc<str>>,
}

impl WarmUp {
    /// Returns `true` while all workers are started, with or without work.
    pub(crate) fn is_in_progress(&self) -> bool {
        self.in_progress
    }

    /// Returns the reason why the last warm-up was given up, if it was.
    pub(crate) fn given_up(&self) -> Option<Arc<str>> {
        self.given_up.clone()
    }

    pub(crate) fn begin(&mut self, workers: &mut Workers) {
        for worker in workers.wanted_mut() {
            worker.awaited_by_warm_up = worker.state != WorkerState::Ready;
        }
        self.given_up = None;
    }

    /// Ends the warm-up once each slot has been ready. They need not all be ready at the same time,
    /// because workers come and go.
    pub(crate) fn update(&mut self, workers: &Workers) {
        self.in_progress = workers.wanted().any(|worker| worker.awaited_by_warm_up);
    }

    pub(crate) fn stop(&mut self, workers: &mut Workers) {
        for worker in workers.iter_mut() {
            worker.awaited_by_warm_up = false;
        }
        self.in_progress = false;
    }

    /// Gives the warm-up up because not all workers can be started. Those that exist go on.
    pub(crate) fn give_up(&mut self, workers: &mut Workers, reason: Arc<str>) {
        if self.in_progress {
            self.stop(workers);
            self.given_up = Some(reason);
        }
    }
}
