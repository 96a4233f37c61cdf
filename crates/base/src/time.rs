//! Time for state machines: points in time, timers over them, escalations and pauses. Nothing here
//! reads a clock.
//!
//! [`Monotonic`] is a point on the machine's monotonic clock. [`TimerHeap`] keeps timers and tells
//! the next deadline. [`Escalation`] takes steps of growing force one after the other. [`Retry`]
//! says when to try again. `brigade_sys::clock::now` reads the clock.
//!
//! ```
//! use brigade_base::{Monotonic, TimerHeap};
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
//! - A timer never fires before its deadline, and a step of an escalation is never due before its
//!   time.

mod escalation;
mod heap;
mod monotonic;
mod retry;

pub use escalation::Escalation;
pub use heap::{Fired, TimerHeap, TimerKey};
pub use monotonic::Monotonic;
pub use retry::Retry;
