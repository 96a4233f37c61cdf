//! Runs of jobs: how they end, and what they leave.

mod forked;
mod joblog;
mod outcomes;
#[cfg(feature = "report")]
mod results;
