//! Pools in programs that do not call `brigade::init`: those whose workers are threads of this one,
//! and the helper programs that each test starts.

mod first_mistakes;
mod in_process;
mod leaks;
mod started;
mod terminal;
mod undisturbed;
