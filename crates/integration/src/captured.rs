//! Collects the output of workers from the events of a pool that captures it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Collects the output events of this process, from its first use on.
#[derive(Debug, Default)]
pub struct Captured {
    lines: Mutex<HashMap<String, Vec<Line>>>,
}

/// Maximum number of lines kept for a pool, so that the record of a flood does not fill the memory.
const MAX: usize = 1_000;

/// A line at which the subscriber of tests panics.
pub const POISON: &str = "poison for the subscriber";

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// The worker, as shown in events.
    pub worker: String,
    /// The worker's pid.
    pub pid: u64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The printed line.
    pub line: String,
}

impl Captured {
    /// Returns the collector of this process. The first call installs it as the subscriber of all
    /// threads.
    ///
    /// # Panics
    /// Panics if there is another subscriber.
    pub fn get() -> &'static Self {
        static CAPTURED: OnceLock<Captured> = OnceLock::new();
        CAPTURED.get_or_init(|| {
            tracing::subscriber::set_global_default(Tap).expect("no other subscriber");
            Self::default()
        })
    }

    /// Returns the lines that the workers of the pool `name` have printed so far.
    pub fn of_pool(&self, name: &str) -> Vec<Line> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(name).cloned().unwrap_or_default()
    }

    /// Returns the lines of one stream, in order.
    pub fn stream(&self, pool: &str, stream: &str) -> Vec<String> {
        let lines = self.of_pool(pool).into_iter().filter(|line| line.stream == stream);
        lines.map(|line| line.line).collect()
    }
}

/// Passes on the events with the documented target.
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
        if of_pool.len() < MAX {
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
