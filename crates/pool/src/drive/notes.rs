//! Events of `tracing` on their way to the subscriber.
//!
//! A subscriber is code of users: it may panic, block, ask the pool, or end it. So nothing that drives the pool calls it.
//! An event is *noted* where it happens, as a closure that will emit it, and the console thread emits it: see
//! `console`. Without a subscriber for the level nothing is made, so that noting costs a load.

use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Emits an event; it is given the pool's name.
pub(super) type Note = Box<dyn FnOnce(&str) + Send>;

/// Events in their order.
#[derive(Default)]
pub(super) struct Notes(Vec<Note>);

impl Notes {
    /// Adds an event, if anybody may want one of its level. Asks no subscriber.
    pub(super) fn add(&mut self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        if is_wanted(level) {
            self.0.push(Box::new(emit));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Notes {
    type Item = Note;
    type IntoIter = std::vec::IntoIter<Note>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

pub(super) fn is_wanted(level: Level) -> bool {
    level <= LevelFilter::current()
}
