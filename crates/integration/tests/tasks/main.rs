//! Tasks: their values, their order, and all ways in which they end.

mod arenas;
mod backpressure;
mod cancellation;
mod chaos;
mod chunks;
mod crashes;
mod cut_off;
mod deadlines;
mod failures;
mod handles;
mod journal;
mod keys;
mod liars;
mod map;
mod metrics;
mod refused;
mod retried_items;
mod retries;
mod timeouts;
mod waiting;
mod which_input;

brigade::init_for_tests!();
