//! Holds what tests of Brigade do to their process, and safe Rust cannot; never published.
//!
//! - [`misdeeds`]: what foreign code in a task can do to its process
//! - [`allocations`]: [`CountingAllocator`](allocations::CountingAllocator) counts
//!
//! ```
//! use brigade_testkit_sys::misdeeds;
//!
//! let own = misdeeds::duplicate(0).or_else(|_| misdeeds::memory_file());
//! assert!(own.is_ok());
//! ```
//!
//! Invariant: only tests depend on it.

pub mod allocations;
pub mod misdeeds;
