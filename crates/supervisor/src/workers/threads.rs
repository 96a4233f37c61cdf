//! The threads of a supervisor. The owner starts them, and the supervisor ends them.

pub use super::cleaner::thread as cleaner;
pub use super::output::thread as output;
pub use super::reaper::thread as reaper;
pub use super::spawner;
