//! Scenarios with a made-up world around the machine, and random play against a model.

mod crew;
mod limits;
mod random;
mod scenarios;
mod world;
