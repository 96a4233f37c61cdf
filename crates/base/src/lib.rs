//! Parts that state machines and the protocol share: ids of tasks, attempts and workers, points in
//! time with timers and pauses, and counted resources.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! ```
//! use brigade_base::{Monotonic, TaskId, TimerHeap};
//! use std::time::Duration;
//!
//! let now = Monotonic::from_nanos(0);
//! let mut timers = TimerHeap::new();
//! timers.arm(now.saturating_add(Duration::from_secs(1)), TaskId::new(7));
//! assert_eq!(timers.next_deadline().map(Monotonic::since_zero), Some(Duration::from_secs(1)));
//! ```

//! # Invariants
//! - The same calls return the same values: no clock, no input or output, no thread, no randomness.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-base/latest")]
#![forbid(unsafe_code)]

mod ids;
mod resources;
mod time;

pub use ids::{
    Attempt, Revocation, SplitMix64, TaskId, WorkerId, mix64, seed_of_input, stable_hash,
};
pub use resources::{
    Grant, Inventory, Lanes, Ledger, Need, Needs, Resource, ResourceError, amount_in, indices_in,
    variables_in,
};
pub use time::{Escalation, Fired, Monotonic, Retry, TimerHeap, TimerKey};
