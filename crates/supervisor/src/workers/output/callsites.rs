//! The callsites of events that workers send.
//!
//! `tracing` identifies an event by static metadata, and keeps each callsite for the life of the
//! process. So the metadata of each different event is leaked once, and their number is bounded.

use std::collections::HashMap;
use std::sync::OnceLock;

use brigade_sys::sync::Mutex;
use brigade_wire::worker_event::{MAX_FIELDS, WorkerEvent};
use tracing::callsite::{self, Identifier};
use tracing::field::FieldSet;
use tracing::metadata::Kind;
use tracing::subscriber::Interest;
use tracing::{Level, Metadata};

/// Maximum number of different events in the life of a process: more than large programs have.
const MAX_CALLSITES: usize = 4096;

/// Maximum number of different events that one worker may add.
const MAX_OF_A_WORKER: usize = 1024;

/// The fields that the host adds, before those of the event.
pub(super) const OWN: [&str; 5] = ["pool", "worker", "pid", "task", "attempt"];

/// Maximum number of fields.
pub(super) const MAX: usize = OWN.len() + MAX_FIELDS;

/// The origin of equal events.
#[derive(Debug, Default)]
pub(super) struct Callsite {
    metadata: OnceLock<Metadata<'static>>,
}

impl Callsite {
    #[expect(clippy::expect_used, reason = "set before anybody gets the callsite")]
    fn known(&self) -> &Metadata<'static> {
        self.metadata.get().expect("a callsite has metadata")
    }

    pub(super) fn metadata(&'static self) -> &'static Metadata<'static> {
        self.known()
    }
}

impl tracing::Callsite for Callsite {
    /// Subscribers are asked for each event.
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        self.known()
    }
}

type Known = HashMap<Box<[u8]>, &'static Callsite>;

/// The callsites by everything that distinguishes them.
static CALLSITES: Mutex<Option<Known>> = Mutex::new(None);

/// Returns the callsite of an event. Returns `None` if it is new and there are too many; `added`
/// counts those that the event's worker has added.
///
/// Adding one calls the subscriber.
pub(super) fn of(
    event: &WorkerEvent<'_>,
    level: Level,
    added: &mut usize,
) -> Option<&'static Callsite> {
    let key = key(event);
    let callsite = {
        let mut callsites = CALLSITES.lock();
        let callsites = callsites.get_or_insert_default();
        if let Some(callsite) = callsites.get(&*key) {
            return Some(callsite);
        }
        if *added >= MAX_OF_A_WORKER || callsites.len() >= MAX_CALLSITES {
            return None;
        }
        let callsite = leak(event, level);
        callsites.insert(key, callsite);
        callsite
    };
    *added += 1;
    // Calls the subscriber, and must not do so under the lock. It does not matter if another thread
    // uses the callsite before.
    callsite::register(callsite);
    Some(callsite)
}

fn key(event: &WorkerEvent<'_>) -> Box<[u8]> {
    let WorkerEvent { level, target, file, line, fields, .. } = event;
    let file = file.unwrap_or("");
    let mut key = format!("{level:?}\0{target}\0{file}\0{line:?}").into_bytes();
    for (name, _) in fields {
        // No text contains this byte.
        key.push(0xff);
        key.extend_from_slice(name.as_bytes());
    }
    key.into()
}

fn leak(event: &WorkerEvent<'_>, level: Level) -> &'static Callsite {
    let callsite: &'static Callsite = Box::leak(Box::default());
    let text = |text: &str| -> &'static str { Box::leak(Box::from(text)) };
    // As the macros of `tracing` name events.
    let name = match (event.file, event.line) {
        (Some(file), Some(line)) => text(&format!("event {file}:{line}")),
        _ => "event of a worker",
    };
    let names = event.fields.iter().map(|(name, _)| {
        // Otherwise it would seem to be a statement of the host.
        if OWN.contains(name) { text(&format!("event.{name}")) } else { text(name) }
    });
    let names: Vec<&'static str> = OWN.into_iter().chain(names).collect();
    let fields = FieldSet::new(names.leak(), Identifier(callsite));
    let (target, file) = (text(event.target), event.file.map(text));
    let metadata = Metadata::new(name, target, level, file, event.line, None, fields, Kind::EVENT);
    // Nobody else has it yet.
    let _ = callsite.metadata.set(metadata);
    callsite
}
