//! Helpers for Brigade's own tests; never published.
//!
//! - Waiting: [`outcome`] waits for a task with a bound, and a [`Gate`] holds tasks until the test
//!   lets them go. The rest is in `brigade-testkit-core`, as are processes and random choices.
//! - Observing: [`LeakCheck`] counts the resources of a process, [`processes`] finds other
//!   processes.
//! - Forking: [`copy_process`] copies the test itself, runs checks in the copy, and waits for it.
//! - Misbehaving: [`faults`] is a catalog of task functions that misbehave as users' functions do.
//! - Serving: [`NatsServer`] and [`NatsCluster`] are servers of NATS JetStream.
//! - Separating: a [`Network`] has hosts that can be cut off.
//! - Closing: a [`Sandbox`] is an initializer that closes files and system calls for its worker.
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
mod outcome;
pub mod processes;
mod sandbox;

pub use brigade_testkit_core::{
    BOUND, PATIENCE, Random, Watchdog, example_snapshot, pause, payload, repeated, repetitions,
    wait_for, wait_or_explain, wait_until,
};
pub use copies::{Copied, InTheCopy, Side, copy_process};
pub use gate::{Gate, Pass, pass};
pub use leak::LeakCheck;
pub use nats::{NatsCluster, NatsServer};
pub use network::Network;
pub use outcome::outcome;
pub use sandbox::{CALLS, Sandbox};
