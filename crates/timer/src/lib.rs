//! Deadlines for processes.

#![forbid(unsafe_code)]

mod heap;

pub use heap::{Fired, TimerHeap, TimerKey};
