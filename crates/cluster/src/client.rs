//! The client: submits tasks to a cluster, and receives their outcomes.

mod cursor;
mod machine;
