//! Deaths and deadlines: one thread that waits for both.
//!
//! It sleeps in one `ppoll` over the pidfds of all ready workers and an event descriptor, until the
//! machine's next deadline. When a worker is dead it reaps it, takes its last words, and puts an end mark
//! into the worker's link; the attendant reads everything that the worker had written before that mark and
//! only then tells the machine of the death. So a result that was complete before the death counts.
//!
//! When the machine is due is in `due`, which whoever holds the core's lock keeps up to date; it is read without the lock, because
//! threads that come by may have done what was due. A worker that was killed and whose task will not run again is reported
//! before its death is seen, on this thread as well: what it ran is read first and its answers then, so that what it does in
//! between changes nothing. Its process stays in the list until it is reaped, and the pool ends after that.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::process::{Exit, Process};
use brigade_sys::scheduling::prefer_short_slices;
use brigade_sys::wait::{Waker, wait_readable};
use brigade_wire::WorkerId;
use brigade_wire::handshake::FromWorkerControl;
use brigade_wire::link::ipc::Poison;
use brigade_wire::slots::SlotTable;
use tracing::warn;

use super::carry_out::Afterwards;
use super::console::Output;
use super::death::{self, Ran};
use super::outcome::Facts;
use super::shared::{Shared, now};
use crate::machine::{Event, Now};

/// How a process ends that was killed.
const SIGKILL: i32 = 9;

pub(super) struct Reaper {
    watched: Mutex<Vec<Arc<Watched>>>,
    waker: Waker,
    /// Nanoseconds of the machine's clock; the largest number is never. Written under the core's lock.
    due: AtomicU64,
    ended: AtomicBool,
}

/// A ready worker whose death is waited for.
pub(super) struct Watched {
    pub(super) worker: WorkerId,
    pub(super) process: Arc<Process>,
    pub(super) output: Output,
    pub(super) slots: Arc<SlotTable>,
    /// For an ipc link, whose attendant reports the death.
    pub(super) end_mark: Option<Poison>,
    /// Set before the end mark is put into the link.
    pub(super) death: OnceLock<Death>,
    /// Closing it earlier would tell the worker that we are gone.
    pub(super) control: ControlSocket,
    /// The worker has closed its end, so there is nothing to wait for any more.
    pub(super) hung_up: AtomicBool,
    pub(super) end: End,
}

/// How far the end of a process has come that was killed and need not be waited for.
#[derive(Debug, Default)]
pub(super) struct End {
    /// SIGKILL was sent, and what it ran will not run again: its death may be reported before it is seen.
    sent: AtomicBool,
    /// Its death was reported; only the process itself is left to be reaped.
    reported: AtomicBool,
}

/// How a process ended.
#[derive(Debug, Clone)]
pub(super) struct Death {
    pub(super) exit: Exit,
    pub(super) last_words: String,
    /// What ran when it was reported, if that was before the death was seen.
    pub(super) ran: Option<Ran>,
}

impl Reaper {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self {
            watched: Mutex::new(Vec::new()),
            waker: Waker::new()?,
            due: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn watch(&self, watched: Arc<Watched>) {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
        self.wake();
    }

    /// A worker was killed whose death may be reported now, although the system is still clearing it up.
    pub(super) fn need_not_wait_for(&self, worker: WorkerId) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watched) = watched.iter().find(|watched| watched.worker == worker) {
            watched.end.sent.store(true, Ordering::Release);
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        self.waker.wake();
    }

    /// When the machine is to tick. Who makes it earlier wakes the reaper as well.
    pub(super) fn sleep_until(&self, due: Option<Now>) {
        let due = due.map_or(u64::MAX, |due| u64::try_from(due.as_nanos()).unwrap_or(u64::MAX));
        // Mostly it is what it was, and the reaper's copy of the line stays valid.
        if self.due.load(Ordering::Relaxed) != due {
            self.due.store(due, Ordering::Release);
        }
    }

    fn due(&self) -> Option<Now> {
        Some(self.due.load(Ordering::Acquire)).filter(|due| *due != u64::MAX).map(Now::from_nanos)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }
}

/// Waits and reaps until the pool ends.
pub(super) fn run(shared: &Shared) {
    let reaper = &shared.reaper;
    // Deadlines are kept on this thread, on busy machines too. A kernel that cannot do it changes nothing.
    let _ = prefer_short_slices();
    // A waker may have forked, and returned in both processes.
    while !shared.is_forked() {
        let watched = reaper.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if reaper.ended.load(Ordering::Acquire)
            && watched.iter().all(|watched| !watched.is_reported())
        {
            return;
        }
        report_early(shared, &watched);
        // What was due may have been done by a thread that came by: then the core's lock is not taken.
        let deadline = match reaper.due() {
            Some(due) if due <= now() => tick(shared),
            due => due,
        };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![reaper.waker.as_fd()];
        descriptors.extend(watched.iter().map(|watched| watched.process.pidfd()));
        let talkative: Vec<&Arc<Watched>> =
            watched.iter().filter(|watched| !watched.hung_up.load(Ordering::Relaxed)).collect();
        descriptors.extend(talkative.iter().map(|watched| watched.control.as_fd()));
        let ready = match wait_readable(&descriptors, deadline.map(Monotonic::from_zero)) {
            Ok(ready) => ready,
            Err(error) => {
                warn!(pool = shared.config.name, %error, "failed to wait for workers");
                return;
            }
        };
        if ready[0] {
            reaper.waker.drain();
        }
        let (dead, said) = ready[1..].split_at(watched.len());
        for (watched, _) in talkative.iter().zip(said).filter(|(_, ready)| **ready) {
            hear(shared, watched);
        }
        for (watched, _) in watched.iter().zip(dead).filter(|(_, ready)| **ready) {
            reap(shared, watched);
        }
    }
}

/// Does what is due, and returns when that will be next. One lock for both: while tasks are submitted the lock is nearly
/// always held, and each time that this thread has to sleep for it, a submitter has to wake it.
fn tick(shared: &Shared) -> Option<Now> {
    let mut after = Afterwards::default();
    let mut core = shared.lock();
    if core.machine.armed().is_some_and(|due| due <= now()) {
        // A task that has ended in time, and whose answer lies there, costs no worker its life.
        core.collect(shared, &mut after);
        core.handle(now(), Event::Tick, Facts::Nothing, shared, &mut after);
    }
    let next = core.machine.armed();
    drop(core);
    // This thread sleeps until then without being woken for it.
    after.is_armed();
    after.run(shared);
    next
}

/// Takes one packet from a worker.
fn hear(shared: &Shared, watched: &Watched) {
    let worker = watched.worker;
    let problem = match watched.control.receive(Some(clock::now()), None) {
        Ok(Received::Packet { bytes, .. }) => match FromWorkerControl::decode(&bytes) {
            Ok(FromWorkerControl::Section { due }) => {
                return shared.section_begun(worker, Monotonic::from_nanos(due).since_zero());
            }
            _ => "an unexpected packet on the control socket",
        },
        Ok(Received::TimedOut | Received::PeerDied) => return,
        // It is about to end, or its task has closed everything.
        Ok(Received::Closed) | Err(_) => {
            watched.hung_up.store(true, Ordering::Relaxed);
            return;
        }
    };
    warn!(pool = shared.config.name, %worker, problem, "worker broke the protocol");
    shared.step(Event::Misbehaved { worker }, Facts::Nothing);
}

/// Reports workers that were killed and are still being cleared up; not more at a time than the pool has workers, or
/// tasks that fill the memory and are killed one after the other would fill it together.
fn report_early(shared: &Shared, watched: &[Arc<Watched>]) {
    let most = shared.target.load(Ordering::Relaxed);
    let reported = watched.iter().filter(|watched| watched.is_reported()).count();
    let sent = |watched: &&Arc<Watched>| {
        watched.end.sent.load(Ordering::Acquire) && !watched.is_reported()
    };
    for watched in watched.iter().filter(sent).take(most.saturating_sub(reported)) {
        watched.end.reported.store(true, Ordering::Relaxed);
        // Before the answers are looked at: what the process answers in its last moment has then run and not been answered,
        // whereas a look after it would find a task that seems never to have begun.
        let ran = Ran::now(shared, watched.worker, &watched.slots);
        report(shared, watched, Exit::Signal(SIGKILL), Some(ran));
    }
}

fn reap(shared: &Shared, watched: &Arc<Watched>) {
    let exit = match watched.process.reap() {
        Ok(exit) => exit,
        Err(error) => {
            // Somebody else in this process waits for any child; the status is lost, the death is not.
            let pid = watched.process.pid();
            warn!(pool = shared.config.name, pid, %error, "failed to read how a worker ended");
            Exit::Unknown
        }
    };
    if !watched.is_reported() {
        report(shared, watched, exit, None);
    }
    shared
        .reaper
        .watched
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|other| !Arc::ptr_eq(other, watched));
}

/// Has everything handled that the worker had written, and then its death.
fn report(shared: &Shared, watched: &Watched, exit: Exit, ran: Option<Ran>) {
    let last_words = shared.console.last_words(&watched.output);
    // Only this thread sets it, once for each process.
    let _ = watched.death.set(Death { exit, last_words, ran });
    if let Some(end_mark) = &watched.end_mark {
        end_mark.poison();
    } else {
        let mut after = Afterwards::default();
        shared.lock().collect_slot(watched.worker.slot as usize, shared, &mut after);
        after.run(shared);
        death::report(shared, watched);
    }
}

impl Watched {
    fn is_reported(&self) -> bool {
        self.end.reported.load(Ordering::Relaxed)
    }
}
