//! The threads of a supervisor. The owner starts them, and the supervisor ends them.

pub mod cleaner;
pub mod output;
pub mod reaper;
pub mod spawner;
