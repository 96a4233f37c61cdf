//! Scenarios with a made-up world around the machine, and random play against a model.

mod random;
mod scenarios;
mod world;
