//! What workers print, as the events of a pool that captures it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Collects the events of this process from its first use on.
#[derive(Debug, Default)]
pub struct Captured {
    lines: Mutex<HashMap<String, Vec<Line>>>,
}

/// So many lines of a pool are kept; the record of a flood must not be what fills memory.
const MOST: usize = 1_000;

/// The subscriber of tests panics at this line.
pub const POISON: &str = "poison for the subscriber";

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The worker, as events show it.
    pub worker: String,
    /// Its process.
    pub pid: u64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// What it printed.
    pub line: String,
}

impl Captured {
    /// The one of this process; the first call makes it the subscriber for all threads.
    ///
    /// # Panics
    /// When there is another subscriber.
    pub fn get() -> &'static Self {
        static CAPTURED: OnceLock<Captured> = OnceLock::new();
        CAPTURED.get_or_init(|| {
            tracing::subscriber::set_global_default(Tap).expect("no other subscriber");
            Self::default()
        })
    }

    /// What the workers of the pool with this name have printed so far.
    pub fn of_pool(&self, name: &str) -> Vec<Line> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(name).cloned().unwrap_or_default()
    }

    /// The lines of one stream, in their order.
    pub fn stream(&self, pool: &str, stream: &str) -> Vec<String> {
        let lines = self.of_pool(pool).into_iter().filter(|line| line.stream == stream);
        lines.map(|line| line.line).collect()
    }
}

/// Passes on what has the target that is documented.
struct Tap;

#[derive(Default)]
struct Fields {
    pool: String,
    line: Line,
}

impl Subscriber for Tap {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "brigade::output"
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let mut lines = Captured::get().lines.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(fields.line.line != POISON, "a subscriber panics");
        let of_pool = lines.entry(fields.pool).or_default();
        if of_pool.len() < MOST {
            of_pool.push(fields.line);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "pool" => value.clone_into(&mut self.pool),
            "stream" => value.clone_into(&mut self.line.stream),
            "line" => value.clone_into(&mut self.line.line),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "pid" {
            self.line.pid = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "worker" {
            self.line.worker = format!("{value:?}");
        }
    }
}
