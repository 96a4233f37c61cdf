//! Scenarios with a made-up world around the machine, and random play against a model.

mod checks;
mod crew;
mod demand;
mod extremes;
mod limits;
mod model;
mod play;
mod random;
mod scenarios;
mod world;
