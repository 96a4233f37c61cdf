//! The thread that waits for deaths and deadlines.
//!
//! It sleeps in one `epoll` over the pidfds of all ready workers and an event descriptor, until the
//! scheduler's next deadline. When a worker has died, the thread reaps it, takes its last output,
//! and puts an end mark into an ipc link; the attendant reads everything that the worker had
//! written before the mark and only then reports the death to the scheduler. Over rings, this
//! thread reads the rest itself. So a result that was complete before the death counts.
//!
//! `due` holds the scheduler's next deadline. Threads that hold the core's lock keep it up to date;
//! the reaper reads it without the lock, because such a thread may already have done what was due.
//!
//! A worker that was killed and whose task will not be retried is reported before its death is
//! observed, also by this thread. It first reads which attempt was interrupted and then the
//! outcomes, so that nothing the worker does in between makes a difference. The process stays in
//! the list until it is reaped, and the pool does not end before that.
//!
//! All work here is bounded: the thread runs no user code, writes no output, and waits for no other
//! thread. A death whose captured lines have to be emitted first is deferred until they are, or for
//! `output::EMIT_TIMEOUT`. If the thread panics or cannot wait for descriptors, it breaks the pool,
//! kills all workers, and continues without descriptors.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use brigade_scheduler::Event;
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::control::Received;
use brigade_sys::poller::Poller;
use brigade_sys::process::{Exit, Signal};
use brigade_sys::scheduling::prefer_short_slices;
use brigade_sys::sync::Mutex;
use brigade_wire::handshake::FromWorkerControl;
use tracing::{Level, warn};

use super::alarm::Alarm;
use super::death::{self, Interrupted};
use super::deferred::Deferred;
use super::outcome::EventData;
use super::output::{EMIT_TIMEOUT, LastLines};
use super::shared::Shared;
use super::watched_worker::{Death, WatchedWorker};

/// The signal that ends a killed process.
const SIGKILL: i32 = 9;

/// Exit status of a process whose end was not observed.
const UNKNOWN: Exit = Exit::Unknown;

pub(super) struct Reaper {
    /// Workers that the thread has not added yet.
    new: Mutex<Vec<Arc<WatchedWorker>>>,
    alarm: Alarm,
    /// The next deadline in nanoseconds of the scheduler's clock; `u64::MAX` stands for none.
    /// Written under the core's lock.
    due: AtomicU64,
    ended: AtomicBool,
}

impl Reaper {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            new: Mutex::default(),
            alarm: Alarm::new()?,
            due: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn watch(&self, watched: Arc<WatchedWorker>) {
        self.new.lock().push(watched);
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.alarm.wake();
    }

    /// Sets the next deadline. A thread that makes it earlier has to wake the reaper as well.
    pub(super) fn sleep_until(&self, due: Option<Monotonic>) {
        let due = due.map_or(u64::MAX, Monotonic::as_nanos);
        // Usually the deadline is unchanged; skipping the store keeps the reaper's cache line
        // valid.
        if self.due.load(Ordering::Relaxed) != due {
            self.due.store(due, Ordering::Release);
        }
    }

    fn due(&self) -> Option<Monotonic> {
        Some(self.due.load(Ordering::Acquire))
            .filter(|due| *due != u64::MAX)
            .map(Monotonic::from_nanos)
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }
}

/// Waits and reaps until the pool ends.
pub(super) fn run(shared: &Shared, poller: Poller) {
    // This thread keeps deadlines on busy machines too. Failure on older kernels is harmless.
    let _ = prefer_short_slices();
    let mut thread = ReaperThread {
        shared,
        poller,
        watched: HashMap::new(),
        next: 1,
        unreported: Vec::new(),
        ready: Vec::new(),
    };
    if let Err(error) = thread.poller.add(&shared.reaper.alarm, ALARM) {
        thread.continue_without_descriptors(&error);
    }
    // A waker may have forked and returned in both processes.
    while !shared.is_forked() {
        match catch_panic(|| thread.turn()) {
            Ok(Ok(Turn::Next)) => {}
            Ok(Ok(Turn::Last)) => return,
            Ok(Err(error)) => thread.continue_without_descriptors(&error),
            // The panic hook has reported it. If it happens repeatedly, the pause limits the rate.
            Err(_) if shared.reaper.alarm.is_parking() => {
                Alarm::sleep(Some(now().saturating_add(EMIT_TIMEOUT)));
            }
            Err(_) => thread.continue_without_descriptors(&"the reaper thread panicked"),
        }
    }
}

/// State of the thread that lasts from one turn to the next.
struct ReaperThread<'a> {
    shared: &'a Shared,
    poller: Poller,
    /// Keyed by the token of the pidfd; the token of the control socket is the next number.
    watched: HashMap<u64, Entry>,
    next: u64,
    unreported: Vec<Unreported>,
    ready: Vec<u64>,
}

struct Entry {
    watched: Arc<WatchedWorker>,
    /// The worker has closed its end of the control socket, which is no longer polled.
    hung_up: bool,
    /// The death was reported or is about to be; the process still has to be reaped.
    reported: bool,
}

/// A known death that waits for the worker's last lines to be emitted.
struct Unreported {
    watched: Arc<WatchedWorker>,
    lines: LastLines,
    until: Monotonic,
}

enum Turn {
    Next,
    Last,
}

const ALARM: u64 = 0;

impl ReaperThread<'_> {
    fn turn(&mut self) -> io::Result<Turn> {
        let reaper = &self.shared.reaper;
        let ended = reaper.ended.load(Ordering::Acquire);
        self.take_new()?;
        // A process that could not be killed may live forever.
        let is_awaited = |entry: &Entry| entry.reported && !entry.watched.state.is_left_behind();
        if ended && !self.watched.values().any(is_awaited) {
            return Ok(Turn::Last);
        }
        self.report_early();
        self.report_emitted();
        // Another thread may have done what was due; then the core's lock is not needed.
        let due = match reaper.due() {
            Some(due) if due <= now() => tick(self.shared),
            due => due,
        };
        let patience = self.unreported.iter().map(|unreported| unreported.until).min();
        let deadline = due.into_iter().chain(patience).min();
        if reaper.alarm.is_parking() {
            self.kill_all();
            Alarm::sleep(deadline);
            return Ok(Turn::Next);
        }
        let mut ready = std::mem::take(&mut self.ready);
        let waited = self.poller.ready_until(deadline, &mut ready);
        // Control messages that a worker sent before its death come first.
        ready.sort_unstable_by_key(|token| token % 2 != 0);
        for token in ready.iter().copied() {
            match token {
                ALARM => reaper.alarm.drain(),
                control if control % 2 == 0 => self.receive_control(control - 1),
                pidfd => self.reap(pidfd),
            }
        }
        self.ready = ready;
        waited.map(|()| Turn::Next)
    }

    fn take_new(&mut self) -> io::Result<()> {
        let reaper = &self.shared.reaper;
        let new = std::mem::take(&mut *reaper.new.lock());
        let mut added = Ok(());
        for watched in new {
            let token = self.next;
            self.next += 2;
            if !reaper.alarm.is_parking() && added.is_ok() {
                added = self.poller.add(watched.process.pidfd(), token);
                added = added.and_then(|()| self.poller.add(watched.control.as_fd(), token + 1));
            }
            self.watched.insert(token, Entry { watched, hung_up: false, reported: false });
        }
        added
    }

    /// Receives one packet from a worker.
    fn receive_control(&mut self, token: u64) {
        let Some(entry) = self.watched.get_mut(&token) else { return };
        let watched = &entry.watched;
        let worker = watched.worker;
        let problem = match watched.control.receive(Some(now()), None) {
            Ok(Received::Packet { bytes, .. }) => match FromWorkerControl::decode(&bytes) {
                Ok(FromWorkerControl::Section { due }) => {
                    let due = Monotonic::from_nanos(due);
                    return self.shared.section_begun(worker, due);
                }
                _ => "an unexpected packet on the control socket",
            },
            Ok(Received::TimedOut | Received::PeerDied) => return,
            // The worker is about to end, or its task has closed all descriptors.
            Ok(Received::Closed) | Err(_) => {
                self.poller.remove(watched.control.as_fd());
                entry.hung_up = true;
                return;
            }
        };
        self.shared.misbehaved(worker, problem);
    }

    /// Reports workers that were killed but not reaped yet, and workers that could not be killed.
    ///
    /// The number of the former at any time is limited to the number of workers of the pool.
    /// Otherwise, tasks that fill the memory and are killed one after the other would together
    /// exceed it.
    fn report_early(&mut self) {
        let most = self.shared.target.load(Ordering::Relaxed);
        let mut room =
            most.saturating_sub(self.watched.values().filter(|entry| entry.reported).count());
        let mut early = Vec::new();
        for entry in self.watched.values_mut().filter(|entry| !entry.reported) {
            let left_behind = entry.watched.state.is_left_behind();
            if left_behind || (room > 0 && entry.watched.state.may_be_reported()) {
                room = room.saturating_sub(1);
                entry.reported = true;
                let exit = if left_behind { UNKNOWN } else { Exit::Signal(SIGKILL) };
                early.push((Arc::clone(&entry.watched), exit));
            }
        }
        for (watched, exit) in early {
            // This has to be read before the outcomes. If the process sends an outcome at the last
            // moment, the attempt then counts as interrupted; in the other order, the task would
            // seem never to have started.
            let interrupted = Interrupted::read(self.shared, watched.worker, &watched.table);
            self.read_last_output(watched, exit, Some(interrupted));
        }
    }

    fn reap(&mut self, token: u64) {
        let Some(entry) = self.watched.remove(&token) else { return };
        let Entry { watched, hung_up, reported } = entry;
        self.poller.remove(watched.process.pidfd());
        if !hung_up {
            self.poller.remove(watched.control.as_fd());
        }
        self.reap_process(watched, reported);
    }

    fn reap_process(&mut self, watched: Arc<WatchedWorker>, reported: bool) {
        let exit = match watched.process.reap() {
            Ok(exit) => exit,
            Err(error) => {
                // Other code in this process has reaped the child. The exit status is lost, but the
                // death is certain.
                let pid = watched.process.pid();
                self.shared.output.note(
                    Level::WARN,
                    move |pool| warn!(pool, pid, %error, "failed to read the exit status of a worker"),
                );
                UNKNOWN
            }
        };
        if !reported {
            self.read_last_output(watched, exit, None);
        }
    }

    fn read_last_output(
        &mut self,
        watched: Arc<WatchedWorker>,
        exit: Exit,
        interrupted: Option<Interrupted>,
    ) {
        let (stderr_tail, lines) = self.shared.output.finish_streams(&watched.streams);
        // Only this thread sets it, once per process.
        let _ = watched.death.set(Death { exit, stderr_tail, interrupted });
        match lines {
            None => report(self.shared, &watched),
            Some(lines) => {
                let until = now().saturating_add(EMIT_TIMEOUT);
                self.unreported.push(Unreported { watched, lines, until });
            }
        }
    }

    /// Reports deaths whose last lines have been emitted or have waited long enough.
    fn report_emitted(&mut self) {
        if self.unreported.is_empty() {
            return;
        }
        let (shared, now) = (self.shared, now());
        let is_due = |it: &mut Unreported| it.until <= now || shared.output.are_emitted(it.lines);
        let due: Vec<Unreported> = self.unreported.extract_if(.., is_due).collect();
        for Unreported { watched, .. } in due {
            report(shared, &watched);
        }
    }

    /// Kills and reaps every worker. Without descriptors, no death would be noticed.
    fn kill_all(&mut self) {
        for (_, Entry { watched, reported, .. }) in std::mem::take(&mut self.watched) {
            match watched.process.signal_group(Signal::Kill) {
                Ok(()) => self.reap_process(watched, reported),
                Err(error) => {
                    if !watched.state.is_left_behind() {
                        self.shared.could_not_kill(watched.worker, &watched.state, error);
                    }
                    if !reported {
                        self.read_last_output(watched, UNKNOWN, None);
                    }
                }
            }
        }
    }

    fn continue_without_descriptors(&self, problem: &dyn std::fmt::Display) {
        let reaper = &self.shared.reaper;
        if !reaper.alarm.is_parking() {
            reaper.alarm.switch_to_parking();
            self.shared.give_up("wait for worker deaths", problem);
        }
    }
}

/// Does what is due and returns the next deadline. It takes the lock only once for both: while
/// tasks are being submitted the lock is nearly always held, and each time this thread sleeps for
/// it, a submitter has to wake it.
fn tick(shared: &Shared) -> Option<Monotonic> {
    let mut deferred = Deferred::default();
    let mut core = shared.lock();
    if core.scheduler.next_deadline().is_some_and(|due| due <= now()) {
        // A task that has finished in time, but whose outcome was not collected yet, must not cost
        // its worker's life.
        core.collect(shared, &mut deferred);
        core.handle(now(), Event::Tick, EventData::Nothing, shared, &mut deferred);
    }
    let next = core.scheduler.next_deadline();
    core.next_tick = next;
    shared.reaper.sleep_until(next);
    drop(core);
    // This thread knows the deadline and need not be woken for it.
    deferred.skip_reaper_wake();
    deferred.run(shared);
    next
}

/// Has everything handled that the worker had written, and then its death.
fn report(shared: &Shared, watched: &WatchedWorker) {
    if let Some(end_mark) = &watched.end_mark {
        end_mark.send();
    } else {
        let mut deferred = Deferred::default();
        shared.lock().collect_slot(watched.worker.slot as usize, shared, &mut deferred);
        deferred.run(shared);
        death::report(shared, watched);
    }
}
