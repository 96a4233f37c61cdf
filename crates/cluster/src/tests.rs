//! Helpers of unit tests.

pub(crate) mod stale_server;
