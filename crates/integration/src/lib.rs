//! Shared parts of Brigade's tests over real processes; never published.
//!
//! The tests are in `tests`, one concept per file, and one program for each kind of surroundings,
//! which is its own worker program. They need cargo-nextest, which gives each test a process of its
//! own: many look at their whole process, or end it.
//!
//! - [`pool`] builds the pool that most of them use.
//! - [`Captured`] collects the output of workers.
//! - [`Log`] collects what is logged, and [`Spans`] the spans and events.
//! - [`Helper`] runs one of the programs in `src/bin` with its own temporary folder.
//! - [`scribble`] is a task that writes over the memory that its worker shares with the host.
//! - [`stress`] is the program that does everything at random.
//! - [`fuzz`] is the program whose tasks scribble over everything that they can reach, or whose
//!   workers are attackers.
//! - [`liar`] is the worker's half of the protocol, for programs that lie with it.
//!
//! ```
//! brigade::init_for_tests!();
//!
//! # fn main() {
//! let pool = brigade_integration::pool(1);
//! let handle = pool.submit(brigade_testkit::faults::spins, 10).unwrap();
//! assert_eq!(brigade_testkit::outcome(handle).unwrap(), 10);
//! # }
//! ```
//!
//! Invariant: no test waits without a bound, so a hang is a failure that says what was awaited.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that calls it stops where a value is missing")]

/// The program of the README, which runs as a test of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

mod answering;
mod captured;
mod common;
mod consistent;
pub mod fuzz;
mod helper;
pub mod liar;
mod log;
pub mod scribble;
mod spans;
pub mod stress;
mod watch;

pub use answering::Answering;
pub use captured::{Captured, Line, POISON};
pub use common::{JOIN, attempt, builder, picky, pool, square, worker_died};
pub use consistent::assert_consistent;
pub use helper::Helper;
pub use log::Log;
pub use spans::{Emitted, Spanned, Spans};
