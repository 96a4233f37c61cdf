//! Parts of a task that must end within a time limit.
//!
//! Protocol: the open sections are kept under a lock. After each change, the section that must end
//! first is written to the table that the host shares. The host is notified only if its next check
//! would be too late: when the first section is opened, or one that must end before all sections
//! that the host knows of. It checks at the earliest time that it was notified of, and then reads
//! the table. So opening and closing sections in a loop sends one message per time limit, and
//! closing sends none. A fork of the worker has no sections, because the table belongs to the
//! original.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::fork::Origin;
use brigade_sys::sync::Mutex;
use brigade_wire::handshake::FromWorkerControl;
use brigade_wire::slots::{Section, SlotTable};

use crate::control::Control;

/// A guard for a part of a task, created by [`expires`].
///
/// If it is not dropped within its time limit, the host kills the worker, and the task fails
/// because it exceeded its deadline.
#[must_use = "a section ends when its guard is dropped"]
#[derive(Debug)]
pub struct SectionGuard {
    /// `None` outside a worker and in a fork of one.
    number: Option<u64>,
}

/// Starts a part of the running task that must end within `limit`. It ends when the guard is
/// dropped, even by a panic.
///
/// Guards may be nested, and each limit applies. Guards that are left at the end of the task, or of
/// the item of a map, are forgotten. Outside a worker, and in a process that the task has forked,
/// this has no effect.
///
/// ```
/// let guard = brigade::worker::expires(std::time::Duration::from_secs(5));
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

/// Enables sections in this process.
pub(crate) fn begin(slots: SlotTable, control: Arc<Control>) {
    // Setting it fails only if called twice, and a process has one host.
    let origin = Origin::here();
    let state = Mutex::default();
    let (some_open, is_known) = (AtomicBool::new(false), AtomicBool::new(false));
    let _ = SECTIONS.set(WorkerSections { slots, control, state, some_open, is_known, origin });
}

/// Forgets the sections that a task has left open.
#[inline]
pub(crate) fn end_of_task() {
    if SECTIONS.get().is_some_and(|sections| sections.is_known.load(Ordering::Relaxed))
        && let Some(sections) = sections()
    {
        sections.clear();
    }
}

/// Forgets the sections that an item of a chunk has left open, so that they do not end later items.
#[inline]
pub(crate) fn end_of_item() {
    if SECTIONS.get().is_some_and(|sections| sections.some_open.load(Ordering::Relaxed))
        && let Some(sections) = sections()
    {
        sections.forget_open();
    }
}

/// Returns the sections, except in a fork, where the lock may be held by a thread that does not
/// exist there.
fn sections() -> Option<&'static WorkerSections> {
    SECTIONS.get().filter(|sections| sections.origin.is_here())
}

static SECTIONS: OnceLock<WorkerSections> = OnceLock::new();

#[derive(Debug)]
struct WorkerSections {
    slots: SlotTable,
    control: Arc<Control>,
    state: Mutex<State>,
    /// `true` if a section is open; written under the lock. A section that another thread opens
    /// while an item ends may count for either item.
    some_open: AtomicBool,
    /// `true` if the host was notified of a section of this task; written under the lock too.
    is_known: AtomicBool,
    origin: Origin,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u64, Section>,
    opened: u64,
    /// Time of the host's next check, as far as this side knows.
    look: Option<Monotonic>,
}

/// If the host's next check is closer than this, it is notified again, because it may already be
/// checking.
const MARGIN: Duration = Duration::from_millis(1);

impl WorkerSections {
    fn open(&self, limit: Duration) -> u64 {
        let now = clock::now();
        let due = now.saturating_add(limit);
        let mut state = self.state.lock();
        state.opened += 1;
        let number = state.opened;
        state.open.insert(number, Section { due, limit });
        let first = self.publish(&state);
        let known =
            state.look.is_some_and(|look| look <= first && look > now.saturating_add(MARGIN));
        if !known {
            state.look = Some(first);
            self.is_known.store(true, Ordering::Relaxed);
            // A host that is gone needs no message, and a task that has closed this socket loses
            // the limit.
            let _ = self.control.send(&FromWorkerControl::Section { due: first.as_nanos() });
        }
        number
    }

    fn close(&self, number: u64) {
        let mut state = self.state.lock();
        if state.open.remove(&number).is_some() {
            self.publish(&state);
        }
    }

    fn clear(&self) {
        let mut state = self.state.lock();
        if state.look.take().is_some() {
            self.is_known.store(false, Ordering::Relaxed);
            state.open.clear();
            self.publish(&state);
        }
    }

    /// The host still checks this task at the time that it was notified of, and finds nothing.
    #[cold]
    fn forget_open(&self) {
        let mut state = self.state.lock();
        state.open.clear();
        self.publish(&state);
    }

    /// Writes the section that must end first to the table, and returns the time at which it must
    /// end.
    fn publish(&self, state: &State) -> Monotonic {
        let first = state.open.values().min_by_key(|section| section.due).copied();
        self.slots.set_section(first);
        self.some_open.store(first.is_some(), Ordering::Relaxed);
        first.map_or(Monotonic::from_nanos(u64::MAX), |section| section.due)
    }
}
