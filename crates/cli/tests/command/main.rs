//! The real command, as people run it.

mod common;
mod resume;
mod run;
mod supervision;
