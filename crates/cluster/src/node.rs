//! The node: takes tasks from the queue, runs them in a local pool, and records their outcomes.
//!
//! `machine` decides and does nothing else; `driver` has the connection and the clock.

mod builder;
mod delivery;
mod driver;
mod examination;
mod functions;
mod held_task;
mod machine;
mod peers;
mod record;
mod running;
mod runs;
mod status;
mod sweep;

pub use builder::{Node, NodeBuilder};
pub use running::RunningNode;
