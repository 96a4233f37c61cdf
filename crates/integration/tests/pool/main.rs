//! Pools and their workers, from the first to the last.

mod demand;
mod doorbell;
mod initializer;
mod lifecycle;
mod live_view;
mod parent_death;
mod shutdown;
mod slots;
mod starvation;
mod table;
mod workers;

brigade::init_for_tests!();
