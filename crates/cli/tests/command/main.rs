//! The real command, as people run it.

mod common;
mod hazards;
mod resume;
mod run;
mod supervision;
