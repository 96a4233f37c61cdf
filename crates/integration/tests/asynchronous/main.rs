//! Handles and streams as futures, and callbacks.

mod async_streams;
mod async_submit;
mod chains;
mod executors;
mod futures;
mod on_done;

brigade::init_for_tests!();
