//! Helpers for Brigade's own tests; never published.
//!
//! - Waiting: [`wait_until`] and [`outcome`] never wait without a bound, a [`Watchdog`] bounds
//!   calls that should return by themselves, and a [`Gate`] holds tasks until the test lets them
//!   go.
//! - Observing: [`LeakCheck`] counts the resources of a process, [`processes`] finds other
//!   processes.
//! - Forking: [`copy_process`] copies the test itself, runs checks in the copy, and waits for it.
//! - Misbehaving: [`faults`] is a catalog of task functions that misbehave as users' functions do.
//! - Serving: [`NatsServer`] and [`NatsCluster`] are servers of NATS JetStream.
//! - Separating: a [`Network`] has hosts that can be cut off.
//! - Closing: a [`Sandbox`] is an initializer that closes files and system calls for its worker.
//! - Repeating: [`Random`] makes the same choices for the same seed.
//!
//! ```
//! use std::time::Duration;
//!
//! let check = brigade_testkit::LeakCheck::new();
//! let mut looks = 0;
//! brigade_testkit::wait_until("the third look", Duration::from_secs(5), || {
//!     looks += 1;
//!     looks == 3
//! });
//! check.assert_none(Duration::from_secs(5));
//! ```
//!
//! Invariant: nothing here waits for a time where it could wait for a condition, and every wait has
//! a bound.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that calls it stops where a value is missing")]

mod copies;
pub mod faults;
mod gate;
mod leak;
mod nats;
mod network;
pub mod processes;
mod random;
mod sandbox;
mod wait;
mod watchdog;

pub use copies::{Copied, InTheCopy, Side, copy_process};
pub use gate::{Gate, Pass, pass};
pub use leak::LeakCheck;
pub use nats::{NatsCluster, NatsServer};
pub use network::Network;
pub use random::Random;
pub use sandbox::{CALLS, Sandbox};
pub use wait::{BOUND, outcome, pause, wait_for, wait_or_explain, wait_until};
pub use watchdog::Watchdog;
