//! Collects the spans and events of a process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use brigade_testkit::{BOUND, wait_until};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber, subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Collects the spans and events of this process, from its first use on.
#[derive(Debug, Clone, Default)]
pub struct Spans(Arc<State>);

#[derive(Debug, Default)]
struct State {
    all: Mutex<BTreeMap<u64, Spanned>>,
    events: Mutex<Vec<Emitted>>,
    /// The pool whose output thread closes no span.
    held: Mutex<Option<String>>,
    released: Condvar,
}

/// One span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spanned {
    /// Its name.
    pub name: &'static str,
    /// The id of its parent.
    pub parent: Option<u64>,
    /// The values of its fields, as text.
    pub fields: BTreeMap<&'static str, String>,
    /// The name of the thread that closed it.
    pub closed_by: Option<String>,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emitted {
    /// Its level.
    pub level: Level,
    /// Its target.
    pub target: String,
    /// The values of its fields, as text.
    pub fields: BTreeMap<&'static str, String>,
    /// The name of the thread that emitted it.
    pub thread: String,
}

impl Emitted {
    /// Returns the value of a field, or an empty text.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Spanned {
    /// Returns the value of a field, or an empty text.
    pub fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

impl Spans {
    /// Returns the collector of this process. The first call installs it for all threads.
    ///
    /// # Panics
    /// Panics if there is another subscriber.
    pub fn get() -> &'static Self {
        static SPANS: OnceLock<Spans> = OnceLock::new();
        SPANS.get_or_init(|| {
            let spans = Self::default();
            subscriber::set_global_default(Registry::default().with(spans.clone()))
                .expect("no other subscriber");
            spans
        })
    }

    /// Returns the spans of the tasks of a pool, in the order in which they were opened.
    pub fn of_pool(&self, pool: &str) -> Vec<Spanned> {
        let all = self.lock();
        let of_pool = all.values().filter(|span| span.name == "task" && span.field("pool") == pool);
        of_pool.cloned().collect()
    }

    /// Returns the events about a pool with this target, in order.
    pub fn events(&self, pool: &str, target: &str) -> Vec<Emitted> {
        let events = self.0.events.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |event: &&Emitted| event.field("pool") == pool && event.target == target;
        events.iter().filter(wanted).cloned().collect()
    }

    /// Returns the span with this id.
    pub fn span(&self, id: u64) -> Option<Spanned> {
        self.lock().get(&id).cloned()
    }

    /// Blocks until this number of tasks of a pool have a closed span, and returns these spans.
    #[track_caller]
    pub fn wait_for_closed(&self, pool: &str, count: usize) -> Vec<Spanned> {
        let closed = || {
            let mut spans = self.of_pool(pool);
            spans.retain(|span| span.closed_by.is_some());
            spans
        };
        wait_until(&format!("{count} closed spans of {pool}"), BOUND, || closed().len() >= count);
        closed()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Spanned>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the output thread of a pool when it closes a span or emits an event, until this is
    /// called with `None`.
    pub fn hold(&self, pool: Option<&str>) {
        *self.0.held.lock().unwrap_or_else(PoisonError::into_inner) = pool.map(str::to_owned);
        self.0.released.notify_all();
    }

    fn wait_while_held(&self, pool: &str) {
        let held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
        let is_held = |held: &mut Option<String>| held.as_deref() == Some(pool);
        drop(self.0.released.wait_while(held, is_held));
    }
}

/// The number of a span that is new in each process, because the registry uses its ids again.
struct Number(u64);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let number = |span: &tracing_subscriber::registry::SpanRef<'_, S>| {
            span.extensions().get::<Number>().map(|number| number.0)
        };
        let mut all = self.lock();
        let parent = span.parent().as_ref().and_then(number);
        let mut spanned = Spanned { name: span.name(), parent, ..Spanned::default() };
        attributes.record(&mut Fields(&mut spanned.fields));
        let id = all.len() as u64 + 1;
        all.insert(id, spanned);
        span.extensions_mut().insert(Number(id));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(Number(number)) = span.extensions().get::<Number>()
            && let Some(spanned) = self.lock().get_mut(number)
        {
            values.record(&mut Fields(&mut spanned.fields));
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let (level, target) = (*event.metadata().level(), event.metadata().target().to_owned());
        let thread = thread::current().name().unwrap_or("").to_owned();
        if thread == "brigade-output" {
            self.wait_while_held(fields.get("pool").map_or("", String::as_str));
        }
        let event = Emitted { level, target, fields, thread };
        self.0.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let thread = thread::current();
        let closed_by = thread.name().unwrap_or("");
        let number = span.extensions().get::<Number>().map_or(0, |number| number.0);
        let pool = self.span(number).map(|span| span.field("pool").to_owned());
        if closed_by == "brigade-output" {
            self.wait_while_held(&pool.unwrap_or_default());
        }
        if let Some(spanned) = self.lock().get_mut(&number) {
            spanned.closed_by = Some(closed_by.to_owned());
        }
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
