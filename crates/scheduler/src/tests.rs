//! Scenarios in a simulated world around the scheduler, and random play against a model.

mod checks;
mod chunks;
mod deadlines;
mod demand;
mod extremes;
mod fake_worker;
mod mail;
mod model;
mod needs;
mod play;
mod random;
mod reaping;
mod retries;
mod sanity;
mod scaling;
mod scenarios;
mod slow;
mod world;
