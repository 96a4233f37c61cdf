//! Parts of a task that must end in time.
//!
//! Protocol: the sections that are open are kept under a lock. After each change the one that must end first stands in
//! the table that the host shares. The host is told when its next look would be too late: when the first section is opened, or one that must end
//! before all that it knows of. It looks when the earliest time that it was told has come, and at whatever stands there then. So
//! opening and closing sections in a loop sends word once in the time that a section may take, and closing never does.
//! A copy that a task makes with `fork` has no sections: the table is the original's.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::fork::Origin;
use brigade_wire::handshake::FromWorkerControl;
use brigade_wire::slots::{Section, SlotTable};

use crate::bootstrap::Control;

/// Guards a part of a task: if it is not dropped within its time, the host kills the worker, and the task has exceeded its
/// deadline.
#[must_use = "a section ends when its guard is dropped"]
#[derive(Debug)]
pub struct SectionGuard {
    /// `None` outside a worker and in a copy of one.
    number: Option<u64>,
}

/// Begins a part of the running task that must end within `limit`; it ends when the guard is dropped, also by a panic.
///
/// Guards may be nested, and each holds. At the end of the task, or of the item of a map, those that are left are
/// forgotten. Outside a worker, and in
/// a copy that the task has made with `fork`, nothing happens.
///
/// ```
/// let guard = brigade_worker::expires(std::time::Duration::from_secs(5));
/// // Something that may hang.
/// drop(guard);
/// ```
pub fn expires(limit: Duration) -> SectionGuard {
    SectionGuard { number: sections().map(|sections| sections.open(limit)) }
}

impl Drop for SectionGuard {
    fn drop(&mut self) {
        if let (Some(number), Some(sections)) = (self.number, sections()) {
            sections.close(number);
        }
    }
}

/// Makes sections possible in this process.
pub(crate) fn begin(slots: SlotTable, control: Arc<Control>) {
    // There is one host, and one call.
    let origin = Origin::here();
    let state = Mutex::default();
    let some_open = AtomicBool::new(false);
    let _ = SECTIONS.set(Sections { slots, control, state, some_open, origin });
}

/// Forgets what a task has left open.
pub(crate) fn end_of_task() {
    if let Some(sections) = sections() {
        sections.clear();
    }
}

/// Forgets what an item of a chunk has left open, so that it does not end the items behind it.
#[inline]
pub(crate) fn end_of_item() {
    if let Some(sections) = sections()
        && sections.some_open.load(Ordering::Relaxed)
    {
        sections.forget_open();
    }
}

/// Not to be found in a copy, where also the lock may be held by a thread that is not there.
fn sections() -> Option<&'static Sections> {
    SECTIONS.get().filter(|sections| sections.origin.is_here())
}

static SECTIONS: OnceLock<Sections> = OnceLock::new();

#[derive(Debug)]
struct Sections {
    slots: SlotTable,
    control: Arc<Control>,
    state: Mutex<State>,
    /// Whether a section is open; written under the lock. What is opened on another thread while an item ends may count for
    /// either item.
    some_open: AtomicBool,
    origin: Origin,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u64, Section>,
    opened: u64,
    /// When the host looks next, as far as this side knows.
    look: Option<Monotonic>,
}

/// So long before the host looks it is told again: it may be looking already.
const MARGIN: Duration = Duration::from_millis(1);

impl Sections {
    fn open(&self, limit: Duration) -> u64 {
        let now = clock::now();
        let due = now.saturating_add(limit);
        let mut state = self.lock();
        state.opened += 1;
        let number = state.opened;
        state.open.insert(number, Section { due, limit });
        let first = self.publish(&state);
        let known =
            state.look.is_some_and(|look| look <= first && look > now.saturating_add(MARGIN));
        if !known {
            state.look = Some(first);
            // A host that is gone needs no word, and a task that has closed this socket gets no limit.
            let _ = self.control.tell(&FromWorkerControl::Section { due: first.as_nanos() });
        }
        number
    }

    fn close(&self, number: u64) {
        let mut state = self.lock();
        if state.open.remove(&number).is_some() {
            self.publish(&state);
        }
    }

    fn clear(&self) {
        let mut state = self.lock();
        if state.look.take().is_some() {
            state.open.clear();
            self.publish(&state);
        }
    }

    /// The host still looks at this task when it was told to, and finds nothing.
    #[cold]
    fn forget_open(&self) {
        let mut state = self.lock();
        state.open.clear();
        self.publish(&state);
    }

    /// Shows the host the section that must end first; when that is.
    fn publish(&self, state: &State) -> Monotonic {
        let first = state.open.values().min_by_key(|section| section.due).copied();
        self.slots.set_section(first);
        self.some_open.store(first.is_some(), Ordering::Relaxed);
        first.map_or(Monotonic::from_nanos(u64::MAX), |section| section.due)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
