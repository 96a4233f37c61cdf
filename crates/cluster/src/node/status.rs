//! Numbers of a node that other threads and other programs see.

use std::time::Instant;

use brigade_sys::sync::Mutex;
use tokio::sync::Notify;

use super::machine::{Machine, NodeCounts};
use crate::message::NodeStatus;

/// The state of a node as of its last event. Written by the driver only.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    /// The name that was given to the node, or else that of its machine.
    pub(super) host: String,
    /// Asks the driver to drain the node.
    pub(super) drain: Notify,
    started: Instant,
    /// Without the time since the start. Nothing that panics runs under this lock.
    status: Mutex<NodeStatus>,
}

impl Shared {
    pub(super) fn new(
        (name, host): (String, String),
        workers: u32,
        offers: String,
        tasks: Vec<String>,
    ) -> Self {
        let status = NodeStatus {
            name: name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workers,
            offers,
            tasks,
            ..NodeStatus::default()
        };
        let drain = Notify::new();
        Self { name, host, drain, started: Instant::now(), status: Mutex::new(status) }
    }

    pub(super) fn set(&self, machine: &Machine) {
        let NodeCounts { returned, given_up, worker_deaths } = machine.counts();
        let mut status = self.status.lock();
        status.held = u32::try_from(machine.held()).unwrap_or(u32::MAX);
        status.running = machine.running();
        (status.returned, status.given_up) = (returned, given_up);
        status.worker_deaths = worker_deaths;
        status.is_draining = machine.is_draining();
    }

    pub(super) fn count_recorded(&self) {
        self.status.lock().recorded += 1;
    }

    pub(super) fn count_refused(&self) {
        self.status.lock().refused += 1;
    }

    pub(super) fn status(&self) -> NodeStatus {
        let uptime_seconds = self.started.elapsed().as_secs();
        NodeStatus { uptime_seconds, ..self.status.lock().clone() }
    }
}
