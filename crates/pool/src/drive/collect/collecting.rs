//! The state that the listening callers and the collector thread share besides the core.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_sys::arena::{ArgumentArena, affordable};
use brigade_wire::link::ring::Spins;
use brigade_wire::ring::{Doorbell, Listener};

use crate::wake_queue::WakeQueue;

/// Address space of each arena, unless the system limits it. Memory is allocated only when used.
pub(in crate::drive) const ARENA: usize = 16 << 30;

/// State that the listening callers and the collector thread share besides the core.
pub(in crate::drive) struct Collecting {
    pub(in crate::drive) doorbell: Arc<Doorbell>,
    /// Callers whose outcomes have arrived.
    pub(in crate::drive) wake_queue: Arc<WakeQueue>,
    /// The arena for large arguments. Without it they are sent through the rings in fragments.
    pub(in crate::drive) arguments: Option<Arc<ArgumentArena>>,
    /// Spins of the caller that listens.
    pub(in crate::drive) spins: Spins,
    pub(in crate::drive) ended: AtomicBool,
}

impl Collecting {
    /// `budget` is that of the arena for arguments, or `None` if workers must not see the arguments
    /// of each other; `cores` is the number of cores of the host.
    pub(in crate::drive) fn new(budget: Option<usize>, cores: usize) -> std::io::Result<Self> {
        let doorbell = Arc::new(Doorbell::new()?);
        doorbell.listen(Listener::Thread);
        // A system that refuses this much address space has to do without the arena.
        let arguments = budget.zip(affordable(ARENA, 1)).and_then(|(budget, bytes)| {
            ArgumentArena::create("brigade-arguments", bytes, budget).ok()
        });
        let bell = Arc::clone(&doorbell);
        let wake_queue = WakeQueue::new(cores, move || bell.thread().wake());
        Ok(Self {
            doorbell,
            wake_queue,
            arguments,
            spins: Spins::default(),
            ended: AtomicBool::new(false),
        })
    }

    pub(in crate::drive) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.doorbell.thread().wake();
    }
}
