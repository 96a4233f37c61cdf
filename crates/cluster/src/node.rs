//! The node: takes tasks from the queue, runs them in a local pool, and records their outcomes.

mod machine;
