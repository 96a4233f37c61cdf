//! Streams of items.

mod flat_streams;
mod items;
mod stream_threads;
mod streams;

brigade::init_for_tests!();
