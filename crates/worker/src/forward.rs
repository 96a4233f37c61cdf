//! Forwards the `tracing` events of a worker to its host.
//!
//! A subscriber writes each event to a pipe, as soon as it is emitted, so that those before a crash
//! arrive. Writing never blocks: events that find the pipe full are lost, and counted.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_wire::worker_event::{EVENT_LIMIT, EventLevel, FieldValue, MAX_FIELDS, WorkerEvent};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber, dispatcher};

use crate::bounded::{bounded, cut};
use crate::context;

/// The pipe of this worker, if its subscriber is ours.
static PIPE: OnceLock<EventPipe> = OnceLock::new();

struct EventPipe {
    /// It does not block.
    file: File,
    lost: AtomicU64,
}

/// Installs the subscriber, unless the program has one.
pub(crate) fn install(level: EventLevel, pipe: OwnedFd) {
    if dispatcher::set_global_default(Dispatch::new(Forwarder(level.into()))).is_ok() {
        // A process has one host.
        let _ = PIPE.set(EventPipe { file: pipe.into(), lost: AtomicU64::new(0) });
    }
}

/// Reports lost events at the end of a task, because no other event may follow for long.
#[inline]
pub(crate) fn end_of_task() {
    if let Some(pipe) = PIPE.get()
        && pipe.lost.load(Ordering::Relaxed) > 0
    {
        pipe.send(WorkerEvent::lost(0));
    }
}

impl EventPipe {
    fn send(&self, mut event: WorkerEvent<'_>) {
        event.lost = self.lost.swap(0, Ordering::Relaxed);
        // A pipe takes all of so few bytes, or nothing.
        let sent = event.encode().is_ok_and(|bytes| (&self.file).write(&bytes).is_ok());
        if !sent {
            let itself = u64::from(!event.target.is_empty());
            self.lost.fetch_add(event.lost + itself, Ordering::Relaxed);
        }
    }
}

/// A subscriber that is interested in events up to a level, and in no spans.
struct Forwarder(Level);

impl Subscriber for Forwarder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.0
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0.into())
    }

    fn event(&self, event: &Event<'_>) {
        let Some(pipe) = PIPE.get() else { return };
        let metadata = event.metadata();
        let mut fields = Fields { all: Vec::new(), room: ROOM };
        event.record(&mut fields);
        let task = context::task().zip(context::attempt());
        pipe.send(WorkerEvent {
            level: (*metadata.level()).into(),
            target: cut(metadata.target(), MAX_NAME),
            file: metadata.file().map(|file| cut(file, MAX_NAME)),
            line: metadata.line(),
            task: task.map(|(task, attempt)| (task.get(), attempt.get())),
            lost: 0,
            fields: fields.all.iter().map(|(name, value)| (*name, value.borrow())).collect(),
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Spans are not enabled; this one is never recorded.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Longer targets, paths and names of fields are cut.
const MAX_NAME: usize = 128;

/// Number of bytes for the fields; longer texts are cut. The rest of an event is at most half a
/// kibibyte.
const ROOM: usize = EVENT_LIMIT - 512;

/// Upper bound of the bytes that a field takes besides its name and its text.
const BYTES_OF_A_FIELD: usize = 16;

/// The fields of an event, cut so that the event is not too long.
struct Fields {
    all: Vec<(&'static str, Value)>,
    room: usize,
}

enum Value {
    Plain(FieldValue<'static>),
    Text(String),
    Formatted(String),
}

impl Value {
    fn borrow(&self) -> FieldValue<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::Text(text) => FieldValue::Text(text),
            Self::Formatted(text) => FieldValue::Formatted(text),
        }
    }
}

impl Fields {
    /// Adds a field whose value takes at most the number of bytes that `value` is called with.
    fn add(&mut self, field: &Field, value: impl FnOnce(usize) -> Value) {
        let name = cut(field.name(), MAX_NAME);
        let Some(room) = self.room.checked_sub(name.len() + BYTES_OF_A_FIELD) else { return };
        if self.all.len() < MAX_FIELDS {
            let value = value(room);
            let (Value::Text(text) | Value::Formatted(text)) = &value else {
                self.room = room;
                return self.all.push((name, value));
            };
            self.room = room - text.len();
            self.all.push((name, value));
        }
    }
}

impl Visit for Fields {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, |_| Value::Plain(FieldValue::Bool(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, |_| Value::Plain(FieldValue::I64(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, |_| Value::Plain(FieldValue::U64(value)));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, |_| Value::Plain(FieldValue::F64(value)));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, |room| Value::Text(cut(value, room).to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, |room| Value::Formatted(bounded(&format_args!("{value:?}"), room)));
    }
}
