//! Helpers for the tests of all of Brigade's crates; never published. It depends on none that has
//! processes, so that the lowest ones can use it. The rest is in `brigade-testkit`.
//!
//! - Waiting: [`wait_until`] never waits without a bound, and a [`Watchdog`] bounds calls that
//!   should return by themselves.
//! - Observing: [`processes`] finds other processes.
//! - Repeating: [`Random`] makes the same choices for the same seed, and [`repetitions`] is more in
//!   `cargo xtask ci`.
//! - Filling: [`payload`] and [`repeated`] make large values fast.
//! - Showing: [`example_snapshot`] has something for all that shows metrics.
//!
//! ```
//! use brigade_testkit_core::{BOUND, wait_until};
//!
//! let mut looks = 0;
//! wait_until("the third look", BOUND, || {
//!     looks += 1;
//!     looks == 3
//! });
//! ```
//!
//! Invariant: nothing here waits for a time where it could wait for a condition, and every wait has
//! a bound.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that calls it stops where a value is missing")]

mod pattern;
pub mod processes;
mod random;
mod repetitions;
mod snapshot;
mod wait;
mod watchdog;

pub use pattern::{payload, repeated};
pub use random::Random;
pub use repetitions::repetitions;
pub use snapshot::example_snapshot;
pub use wait::{BOUND, PATIENCE, pause, wait_for, wait_or_explain, wait_until};
pub use watchdog::Watchdog;
