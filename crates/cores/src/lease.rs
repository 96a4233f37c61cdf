//! Cores that belong to somebody until the lease is dropped.

use std::fmt;
use std::sync::Arc;

use crate::allocator::Grant;
use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::pool::shared::Shared;
use crate::request::CoreRequest;
use crate::topology::Level;

/// Cores that belong to the owner of this value until it is dropped.
///
/// Written in the kernel's list format, so that it can be given to `taskset -c`. Dropping it gives the cores back, also in a panic.
#[must_use = "dropping a lease gives the cores back"]
pub struct CoreLease {
    shared: Arc<Shared>,
    request: CoreRequest,
    taken: Bits,
    cpus: CpuSet,
}

impl CoreLease {
    pub(crate) fn new(shared: &Arc<Shared>, request: CoreRequest, grant: Grant) -> Self {
        let cpus = shared.layout().cpu_ids(&grant.used);
        Self { shared: Arc::clone(shared), request, taken: grant.taken, cpus }
    }

    /// The cpus to run on.
    pub fn cores(&self) -> &CpuSet {
        &self.cpus
    }

    /// The hardware threads beside them that stay idle; none unless that was asked for.
    pub fn idle_siblings(&self) -> CpuSet {
        self.shared.layout().cpu_ids(&self.taken).difference(&self.cpus)
    }

    /// What was asked for.
    pub fn request(&self) -> CoreRequest {
        self.request
    }

    /// The closest thing that all cpus of the lease share.
    pub fn span(&self) -> Level {
        self.shared.topology().span(&self.cpus)
    }

    /// How many groups of a level the lease touches: 1 for [`Level::NumaNode`] means that all its memory is local.
    pub fn touched(&self, level: Level) -> usize {
        self.shared.topology().touched(&self.cpus, level)
    }
}

impl Drop for CoreLease {
    fn drop(&mut self) {
        self.shared.give_back(&self.taken);
    }
}

impl fmt::Display for CoreLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cpus.fmt(f)
    }
}

impl fmt::Debug for CoreLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreLease")
            .field("cores", &self.cpus)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
