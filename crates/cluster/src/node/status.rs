//! Numbers of a node that other threads and other programs see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::machine::{Counts, Machine};
use crate::message::NodeStatus;

/// The state of a node as of its last event. Written by the driver only.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    /// The name that was given to the node, or else that of its machine.
    pub(super) host: String,
    workers: u32,
    offers: String,
    tasks: Vec<String>,
    started: Instant,
    held: AtomicU64,
    running: AtomicU64,
    recorded: AtomicU64,
    refused: AtomicU64,
    returned: AtomicU64,
    given_up: AtomicU64,
    worker_deaths: AtomicU64,
    is_draining: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        (name, host): (String, String),
        workers: u32,
        offers: String,
        tasks: Vec<String>,
    ) -> Self {
        Self {
            name,
            host,
            workers,
            offers,
            tasks,
            started: Instant::now(),
            held: AtomicU64::default(),
            running: AtomicU64::default(),
            recorded: AtomicU64::default(),
            refused: AtomicU64::default(),
            returned: AtomicU64::default(),
            given_up: AtomicU64::default(),
            worker_deaths: AtomicU64::default(),
            is_draining: AtomicBool::default(),
        }
    }

    pub(super) fn set(&self, machine: &Machine) {
        let Counts { returned, given_up, worker_deaths, lost: _ } = machine.counts();
        self.held.store(machine.held() as u64, Ordering::Relaxed);
        self.running.store(machine.running().into(), Ordering::Relaxed);
        self.returned.store(returned, Ordering::Relaxed);
        self.given_up.store(given_up, Ordering::Relaxed);
        self.worker_deaths.store(worker_deaths, Ordering::Relaxed);
        self.is_draining.store(machine.is_draining(), Ordering::Relaxed);
    }

    pub(super) fn count_recorded(&self) {
        self.recorded.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn status(&self) -> NodeStatus {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        NodeStatus {
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workers: self.workers,
            held: u32::try_from(load(&self.held)).unwrap_or(u32::MAX),
            running: u32::try_from(load(&self.running)).unwrap_or(u32::MAX),
            recorded: load(&self.recorded),
            refused: load(&self.refused),
            returned: load(&self.returned),
            given_up: load(&self.given_up),
            worker_deaths: load(&self.worker_deaths),
            offers: self.offers.clone(),
            tasks: self.tasks.clone(),
            is_draining: self.is_draining.load(Ordering::Relaxed),
            uptime_seconds: self.started.elapsed().as_secs(),
        }
    }
}
