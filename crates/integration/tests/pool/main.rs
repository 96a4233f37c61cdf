//! Pools and their workers, from the first to the last, and what is said about them.

mod all_pools;
mod bootstrap;
mod cores;
mod demand;
mod doorbell;
mod forwarded_events;
mod initializer;
mod lifecycle;
mod live_view;
mod nesting;
mod parent_death;
mod resources;
mod shutdown;
mod slots;
mod slow_tasks;
mod spans;
mod starts;
mod starvation;
mod table;
mod timeline;
mod ui;
mod workers;

brigade::init_for_tests!();
