//! Leases of cores.

use std::fmt;
use std::sync::Arc;

use crate::allocator::Grant;
use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::pool::shared::Shared;
use crate::request::CoreRequest;
use crate::topology::Level;

/// Cores that are reserved for the owner of this value until it is dropped.
///
/// Its text form is the kernel's list format, which `taskset -c` accepts. Dropping it returns the
/// cores, including during a panic.
#[must_use = "dropping a lease returns the cores"]
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

    /// Returns the cpus to run on.
    pub fn cores(&self) -> &CpuSet {
        &self.cpus
    }

    /// Returns the request that was granted.
    pub fn request(&self) -> CoreRequest {
        self.request
    }

    /// Returns the closest level that all cpus of the lease share.
    pub fn span(&self) -> Level {
        self.shared.topology().span(&self.cpus)
    }

    /// Returns the number of groups of a level that the lease touches: 1 for [`Level::NumaNode`]
    /// means that all its memory is local.
    pub fn touched(&self, level: Level) -> usize {
        self.shared.topology().touched(&self.cpus, level)
    }
}

impl Drop for CoreLease {
    fn drop(&mut self) {
        self.shared.release(&self.taken);
    }
}

impl fmt::Display for CoreLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cpus.fmt(f)
    }
}

brigade_sys::debug_fields!(impl CoreLease { |it| cores: it.cpus, request: it.request });
