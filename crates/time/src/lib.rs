//! Time for state machines: points in time, and timers over them. Nothing here reads a clock.
//!
//! [`Monotonic`] is a point on the machine's monotonic clock. [`TimerHeap`] keeps timers and tells
//! the next deadline; `brigade_sys::clock::now` reads the clock.
//!
//! ```
//! use brigade_time::{Monotonic, TimerHeap};
//! use std::time::Duration;
//!
//! let now = Monotonic::from_nanos(0);
//! let mut timers = TimerHeap::new();
//! timers.arm(now.saturating_add(Duration::from_secs(2)), "retry");
//! let key = timers.arm(now.saturating_add(Duration::from_secs(1)), "deadline");
//! assert_eq!(timers.cancel(key), Some("deadline"));
//! assert_eq!(timers.next_deadline().map(Monotonic::since_zero), Some(Duration::from_secs(2)));
//! ```
//!
//! Invariants:
//! - The same calls return the same values: no clock, no input or output, no thread, no randomness.
//! - A timer never fires before its deadline.
//! - The crate has no dependencies, except for serde if the feature `serde` is enabled.

#![forbid(unsafe_code)]

mod heap;
mod monotonic;

pub use heap::{Fired, TimerHeap, TimerKey};
pub use monotonic::Monotonic;
