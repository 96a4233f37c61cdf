//! Tests of the real command, as users run it.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

mod cluster;
mod cluster_run;
mod common;
mod confinement;
mod cores;
mod defaults;
mod events;
mod hazards;
mod lists;
mod live;
mod pairs;
mod pipe;
mod pipe_ends;
mod resources;
mod results;
mod resume;
mod run;
mod sem;
mod supervision;
mod top;
mod words;
