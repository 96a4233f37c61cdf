//! The limit of the memory that blocks take, and the rules for those who exceed it.

pub use crate::error::AllocError;
use crate::memory_limit::memory_limit;

/// The conduct of an allocation whose arena has used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Wait for a release. If no release is to come, because nobody else uses a block, exceed the
    /// budget: nobody waits forever.
    Wait,
    /// Return [`AllocError::BudgetUsedUp`], unless there is no other block.
    Fail,
    /// Exceed the budget. That is for tasks that hold up others if they wait.
    Exceed,
}

/// The protection of a worker's bytes while the host reads them; the [module](super) compares the
/// levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum Protection {
    /// By type alone: writing after the end of writing needs undefined behavior in the worker.
    #[default]
    Trusted,
    /// The worker's mapping of a block is read-only until the block is reused, so that a stray
    /// write faults in the worker.
    ReadOnly,
    /// The host copies the bytes to memory that no worker can write.
    Copied,
}

/// The budget where the memory of the machine is not known.
const UNKNOWN: usize = 1 << 30;

/// Returns a quarter of the memory that this process may use.
pub fn default_budget() -> usize {
    match memory_limit() {
        // The system does not say.
        0 => UNKNOWN,
        limit => usize::try_from(limit / 4).unwrap_or(usize::MAX),
    }
}
