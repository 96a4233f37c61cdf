//! What Brigade's tests over real processes have in common; never published.
//!
//! The tests stand in `tests`, one concept a file; each test executable is its own worker. [`pool`] makes the
//! pool that most of them use, [`Captured`] collects what workers print, [`Helper`] runs one of the programs in `src/bin` in surroundings of its own,
//! [`scribble`] is a task that writes over the memory that its worker shares with the host, [`stress`] is the
//! program that does everything at random, and [`fuzz`] the program whose tasks scribble over everything that they reach.
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

mod answering;
mod captured;
mod common;
pub mod fuzz;
mod helper;
pub mod scribble;
pub mod stress;
mod watch;

pub use answering::Answering;
pub use captured::{Captured, Line, POISON};
pub use common::{attempt, builder, pool, worker_died};
pub use helper::Helper;
