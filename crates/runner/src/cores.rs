//! Leases the cores of jobs from a core pool.

use std::num::NonZeroUsize;

use brigade_cores::{CoreLease, CorePool, CoreRequest, Policy, ReserveError, Smt, Ticket};

use crate::stopper::Stopper;

/// The cores that jobs are pinned to.
///
/// Only the next job asks for cores, so the run holds at most one place in the pool's queue. Others
/// may lease from the same pool; its queue is fair to everybody.
#[derive(Debug)]
pub(crate) struct Cores {
    pool: CorePool,
    shape: Shape,
    waiting: Option<Ticket>,
}

/// The requested arrangement of cores.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    pub(crate) policy: Policy,
    pub(crate) smt: Smt,
}

impl Shape {
    fn request(self, count: usize) -> CoreRequest {
        CoreRequest::new(count).policy(self.policy).smt(self.smt)
    }
}

impl Cores {
    pub(crate) fn new(pool: CorePool, shape: Shape) -> Self {
        Self { pool, shape, waiting: None }
    }

    /// Returns the number of jobs of one core each that can run at once.
    pub(crate) fn usable(&self) -> NonZeroUsize {
        let cpus = self.pool.cpus().len();
        // Under a quota, more cores than it allows would only throttle each other.
        let quota =
            self.pool.topology().quota().map_or(cpus, |quota| {
                usize::try_from(quota.millicpus() / 1000).unwrap_or(usize::MAX)
            });
        NonZeroUsize::new(cpus.min(quota)).unwrap_or(NonZeroUsize::MIN)
    }

    /// Leases cores for the next job. Returns `None` if they are not free yet, and wakes `stopper`
    /// when they are.
    pub(crate) fn lease(
        &mut self,
        count: usize,
        stopper: &Stopper,
    ) -> Result<Option<CoreLease>, ReserveError> {
        let request = self.shape.request(count);
        if let Some(ticket) = &mut self.waiting
            && ticket.request() == request
        {
            let lease = ticket.try_take();
            if lease.is_some() {
                self.waiting = None;
            }
            return Ok(lease);
        }
        // The next job is not the one that queued before.
        self.waiting = None;
        match self.pool.try_reserve(request) {
            Err(ReserveError::Busy { .. }) => {}
            result => return result.map(Some),
        }
        let stopper = stopper.clone();
        let mut ticket = self.pool.reserve_later(request, move || stopper.wake())?;
        let lease = ticket.try_take();
        self.waiting = lease.is_none().then_some(ticket);
        Ok(lease)
    }

    /// Returns an error if a job of this width could never run.
    pub(crate) fn check(&self, count: usize) -> Result<(), ReserveError> {
        match self.pool.try_reserve(self.shape.request(count)) {
            Ok(_) | Err(ReserveError::Busy { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
