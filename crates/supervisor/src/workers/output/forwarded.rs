//! Emits the `tracing` events that workers send.
//!
//! A worker may send anything, as fast as it can. Each event has a bounded size, and a turn of the
//! output thread reads a bounded number of bytes of each worker. After something that is not an
//! event, the rest is dropped.

use std::mem;
use std::sync::Arc;

use brigade_sys::catch_panic::catch_panic;
use brigade_wire::MessageError;
use brigade_wire::worker_event::{FieldValue, WorkerEvent};
use tracing::field::{Field, Value, display};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, dispatcher, warn};

use super::callsites::{self, Callsite};
use super::pipe::Writer;

/// The events of one worker.
pub(super) struct Forwarded {
    writer: Arc<Writer>,
    /// The beginning of an event, shorter than the longest one between calls.
    partial: Vec<u8>,
    is_broken: bool,
    /// Number of callsites that this worker has added.
    callsites: usize,
}

impl Forwarded {
    pub(super) fn new(writer: &Arc<Writer>) -> Self {
        let writer = Arc::clone(writer);
        Self { writer, partial: Vec::new(), is_broken: false, callsites: 0 }
    }

    /// Emits the events that are completed by `bytes`.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        if self.is_broken {
            return;
        }
        let mut all = mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        if let Err(error) = self.emit_all(&all) {
            self.is_broken = true;
            let Writer { pool, worker, pid } = &*self.writer;
            let pool = &**pool;
            let _ = catch_panic(|| {
                warn!(pool, %worker, pid, %error, "worker sent a malformed event; later ones are ignored");
            });
        }
    }

    fn emit_all(&mut self, mut bytes: &[u8]) -> Result<(), MessageError> {
        while let Some((event, rest)) = WorkerEvent::take(bytes)? {
            bytes = rest;
            let lost = event.lost;
            let mut unknown = 0;
            // An event without a target only reports lost ones.
            if !event.target.is_empty() {
                let level = Level::from(event.level);
                if level <= LevelFilter::current() {
                    // A subscriber that panics loses this event; the panic hook reports it.
                    let emitted = catch_panic(|| {
                        let callsite = callsites::of(&event, level, &mut self.callsites)?;
                        self.emit(&event, callsite);
                        Some(())
                    });
                    unknown = u64::from(matches!(emitted, Ok(None)));
                }
            }
            if lost + unknown > 0 {
                self.report_lost(lost, unknown);
            }
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn report_lost(&self, lost: u64, unknown: u64) {
        let Writer { pool, worker, pid } = &*self.writer;
        let pool = &**pool;
        let _ = catch_panic(|| {
            if lost > 0 {
                warn!(
                    pool, %worker, pid, events = lost,
                    "events of a worker were lost because the subscriber is too slow"
                );
            }
            if unknown > 0 {
                warn!(pool, %worker, pid, "event of a worker was lost: too many different ones");
            }
        });
    }

    fn emit(&self, event: &WorkerEvent<'_>, callsite: &'static Callsite) {
        let metadata = callsite.metadata();
        dispatcher::get_default(|dispatch| {
            if dispatch.enabled(metadata) {
                let Writer { pool, worker, pid } = &*self.writer;
                let (task, attempt) = event.task.unzip();
                let (pool, worker) = (&**pool, display(worker));
                let own: [Option<&dyn Value>; callsites::OWN.len()] = [
                    Some(&pool),
                    Some(&worker),
                    Some(pid),
                    task.as_ref().map(|task| task as &dyn Value),
                    attempt.as_ref().map(|attempt| attempt as &dyn Value),
                ];
                let sent: Vec<_> = event.fields.iter().map(|(_, it)| value(*it)).collect();
                let sent = sent.iter().map(|value| Some(&**value));
                send(metadata, own.into_iter().chain(sent), |event| dispatch.event(event));
            }
        });
    }
}

/// Passes an event with these values to `give`.
fn send<'a>(
    metadata: &'static Metadata<'static>,
    values: impl Iterator<Item = Option<&'a dyn Value>>,
    give: impl FnOnce(&Event<'_>),
) {
    let fields: Vec<Field> = metadata.fields().iter().collect();
    let Some(first) = fields.first() else { return };
    // `tracing` takes an array of a fixed length. What is not there is not recorded.
    let mut all: [(&Field, Option<&dyn Value>); callsites::MAX] = [(first, None); callsites::MAX];
    for (slot, pair) in all.iter_mut().zip(fields.iter().zip(values)) {
        *slot = pair;
    }
    let values = metadata.fields().value_set(&all);
    give(&Event::new(metadata, &values));
}

/// Returns a value as `tracing` takes it.
fn value(sent: FieldValue<'_>) -> Box<dyn Value + '_> {
    match sent {
        FieldValue::Bool(value) => Box::new(value),
        FieldValue::I64(value) => Box::new(value),
        FieldValue::U64(value) => Box::new(value),
        FieldValue::F64(value) => Box::new(value),
        FieldValue::Text(text) => Box::new(text),
        FieldValue::Formatted(text) => Box::new(display(text)),
    }
}
