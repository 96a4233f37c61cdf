//! `tracing` events that wait to be emitted.
//!
//! A subscriber is user code: it may panic, block, query the pool, or end it, so no thread that
//! drives the pool calls it. An event is *noted* where it happens, as a closure, and the output
//! thread calls the closure to emit it; see [`output`](crate::output). If no subscriber wants the
//! level, no closure is created, so noting costs one load.

use tracing::Level;
use tracing::level_filters::LevelFilter;

/// Notes an event about a pool: `note!(output, WARN, %worker, "failed")` moves `worker`, and emits
/// `warn!(pool, %worker, "failed")` later. `output` may be any value with a method `note`.
#[macro_export]
macro_rules! note {
    ($notes:expr, $level:ident, $($event:tt)+) => {
        $notes.note(::tracing::Level::$level, move |pool| {
            ::tracing::event!(::tracing::Level::$level, pool, $($event)+);
        })
    };
}

/// Emits an event; called with the pool's name.
pub type Note = Box<dyn FnOnce(&str) + Send>;

/// Noted events in their order.
#[derive(Default)]
pub struct Notes(Vec<Note>);

impl Notes {
    /// Adds an event if any subscriber may want its level. Calls no subscriber.
    pub fn add(&mut self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        if is_wanted(level) {
            self.0.push(Box::new(emit));
        }
    }
}

impl IntoIterator for Notes {
    type Item = Note;
    type IntoIter = std::vec::IntoIter<Note>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[inline]
pub(crate) fn is_wanted(level: Level) -> bool {
    level <= LevelFilter::current()
}
