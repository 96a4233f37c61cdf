//! Deaths and deadlines: one thread that waits for both.
//!
//! It sleeps in one `epoll` over the pidfds of all ready workers and an event descriptor, until the
//! machine's next deadline. When a worker is dead it reaps it, takes its last words, and puts an end mark
//! into the worker's link; the attendant reads everything that the worker had written before that mark and
//! only then tells the machine of the death. So a result that was complete before the death counts.
//!
//! When the machine is due is in `due`, which whoever holds the core's lock keeps up to date; it is read without the lock, because
//! threads that come by may have done what was due. A worker that was killed and whose task will not run again is reported
//! before its death is seen, on this thread as well: what it ran is read first and its answers then, so that what it does in
//! between changes nothing. Its process stays in the list until it is reaped, and the pool ends after that.
//!
//! Everything here is bounded: no code of users runs on this thread, nothing is written, nobody is waited for. A death whose
//! captured lines are to be told first is put aside until they are, or for `console::PATIENCE`. If the thread cannot wait for
//! descriptors, or panics, it breaks the pool, ends all workers, and goes on without.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::poller::Poller;
use brigade_sys::process::{Exit, Process, Signal};
use brigade_sys::scheduling::prefer_short_slices;
use brigade_wire::WorkerId;
use brigade_wire::handshake::FromWorkerControl;
use brigade_wire::link::ipc::Poison;
use brigade_wire::slots::SlotTable;
use tracing::{Level, warn};

use super::afterwards::Afterwards;
use super::alarm::Alarm;
use super::console::{LastLines, Output, PATIENCE};
use super::death::{self, Ran};
use super::outcome::Facts;
use super::post::Life;
use super::shared::{Shared, now};
use crate::machine::{Event, Now};

/// How a process ends that was killed.
const SIGKILL: i32 = 9;

/// How a process ended whose end is not known.
const UNKNOWN: Exit = Exit::Unknown;

pub(super) struct Reaper {
    /// Workers that the thread does not know yet.
    new: Mutex<Vec<Arc<Watched>>>,
    alarm: Alarm,
    /// Nanoseconds of the machine's clock; the largest number is never. Written under the core's lock.
    due: AtomicU64,
    ended: AtomicBool,
}

/// A ready worker whose death is waited for.
pub(super) struct Watched {
    pub(super) worker: WorkerId,
    pub(super) process: Arc<Process>,
    pub(super) life: Arc<Life>,
    pub(super) output: Output,
    pub(super) slots: Arc<SlotTable>,
    /// For an ipc link, whose attendant reports the death.
    pub(super) end_mark: Option<Poison>,
    /// Set before the end mark is put into the link.
    pub(super) death: OnceLock<Death>,
    /// Closing it earlier would tell the worker that we are gone.
    pub(super) control: ControlSocket,
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
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            new: Mutex::default(),
            alarm: Alarm::new()?,
            due: AtomicU64::new(u64::MAX),
            ended: AtomicBool::new(false),
        })
    }

    pub(super) fn watch(&self, watched: Arc<Watched>) {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.alarm.wake();
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
pub(super) fn run(shared: &Shared, poller: Poller) {
    // Deadlines are kept on this thread, on busy machines too. A kernel that cannot do it changes nothing.
    let _ = prefer_short_slices();
    let mut round = Round {
        shared,
        poller,
        watched: HashMap::new(),
        next: 1,
        unreported: Vec::new(),
        ready: Vec::new(),
    };
    if let Err(error) = round.poller.add(&shared.reaper.alarm, ALARM) {
        round.go_on_without_descriptors(&error);
    }
    // A waker may have forked, and returned in both processes.
    while !shared.is_forked() {
        match catch_unwind(AssertUnwindSafe(|| round.turn())) {
            Ok(Ok(Turn::Next)) => {}
            Ok(Ok(Turn::Last)) => return,
            Ok(Err(error)) => round.go_on_without_descriptors(&error),
            // The panic hook has said where. If it happens again and again, then not at full speed.
            Err(_) if shared.reaper.alarm.does_without() => {
                Alarm::sleep(Some(clock::now().saturating_add(PATIENCE)));
            }
            Err(_) => round.go_on_without_descriptors(&"the thread that does has panicked"),
        }
    }
}

/// What the thread keeps from one turn to the next.
struct Round<'a> {
    shared: &'a Shared,
    poller: Poller,
    /// By the token of their pidfd; that of the control socket is the next one.
    watched: HashMap<u64, Entry>,
    next: u64,
    unreported: Vec<Unreported>,
    ready: Vec<u64>,
}

struct Entry {
    watched: Arc<Watched>,
    /// The worker has closed its end of the control socket, so there is nothing to wait for any more.
    hung_up: bool,
    /// Its death was reported, or is about to be; only the process itself is left to be reaped.
    reported: bool,
}

/// A death that is known and whose last lines are on their way.
struct Unreported {
    watched: Arc<Watched>,
    lines: LastLines,
    until: Monotonic,
}

enum Turn {
    Next,
    Last,
}

const ALARM: u64 = 0;

impl Round<'_> {
    fn turn(&mut self) -> io::Result<Turn> {
        let reaper = &self.shared.reaper;
        let ended = reaper.ended.load(Ordering::Acquire);
        self.take_new()?;
        // A process that could not be killed may live for ever.
        let is_awaited = |entry: &Entry| entry.reported && !entry.watched.life.is_left_behind();
        if ended && !self.watched.values().any(is_awaited) {
            return Ok(Turn::Last);
        }
        self.report_early();
        self.report_told();
        // What was due may have been done by a thread that came by: then the core's lock is not taken.
        let due = match reaper.due() {
            Some(due) if due <= now() => tick(self.shared),
            due => due,
        };
        let patience = self.unreported.iter().map(|unreported| unreported.until).min();
        let deadline = due.map(Monotonic::from_zero).into_iter().chain(patience).min();
        if reaper.alarm.does_without() {
            self.end_all();
            Alarm::sleep(deadline);
            return Ok(Turn::Next);
        }
        let mut ready = std::mem::take(&mut self.ready);
        let waited = self.poller.ready_until(deadline, &mut ready);
        // What a worker said before its death comes first.
        ready.sort_unstable_by_key(|token| token % 2 != 0);
        for token in ready.iter().copied() {
            match token {
                ALARM => reaper.alarm.drain(),
                control if control % 2 == 0 => self.hear(control - 1),
                pidfd => self.reap(pidfd),
            }
        }
        self.ready = ready;
        waited.map(|()| Turn::Next)
    }

    fn take_new(&mut self) -> io::Result<()> {
        let reaper = &self.shared.reaper;
        let new = std::mem::take(&mut *reaper.new.lock().unwrap_or_else(PoisonError::into_inner));
        let mut added = Ok(());
        for watched in new {
            let token = self.next;
            self.next += 2;
            if !reaper.alarm.does_without() && added.is_ok() {
                added = self.poller.add(watched.process.pidfd(), token);
                added = added.and_then(|()| self.poller.add(watched.control.as_fd(), token + 1));
            }
            self.watched.insert(token, Entry { watched, hung_up: false, reported: false });
        }
        added
    }

    /// Takes one packet from a worker.
    fn hear(&mut self, token: u64) {
        let Some(entry) = self.watched.get_mut(&token) else { return };
        let watched = &entry.watched;
        let worker = watched.worker;
        let problem = match watched.control.receive(Some(clock::now()), None) {
            Ok(Received::Packet { bytes, .. }) => match FromWorkerControl::decode(&bytes) {
                Ok(FromWorkerControl::Section { due }) => {
                    let due = Monotonic::from_nanos(due).since_zero();
                    return self.shared.section_begun(worker, due);
                }
                _ => "an unexpected packet on the control socket",
            },
            Ok(Received::TimedOut | Received::PeerDied) => return,
            // It is about to end, or its task has closed everything.
            Ok(Received::Closed) | Err(_) => {
                self.poller.remove(watched.control.as_fd());
                entry.hung_up = true;
                return;
            }
        };
        self.shared.misbehaved(worker, problem);
    }

    /// Reports workers that were killed and are still being cleared up, and those that could not be killed. Of the former not
    /// more at a time than the pool has workers, or tasks that fill the memory and are killed one after the other would fill
    /// it together.
    fn report_early(&mut self) {
        let most = self.shared.target.load(Ordering::Relaxed);
        let mut room =
            most.saturating_sub(self.watched.values().filter(|entry| entry.reported).count());
        let mut early = Vec::new();
        for entry in self.watched.values_mut().filter(|entry| !entry.reported) {
            let left_behind = entry.watched.life.is_left_behind();
            if left_behind || (room > 0 && entry.watched.life.may_be_reported()) {
                room = room.saturating_sub(1);
                entry.reported = true;
                let exit = if left_behind { UNKNOWN } else { Exit::Signal(SIGKILL) };
                early.push((Arc::clone(&entry.watched), exit));
            }
        }
        for (watched, exit) in early {
            // Before the answers are looked at: what the process answers in its last moment has then run and not been
            // answered, whereas a look after it would find a task that seems never to have begun.
            let ran = Ran::now(self.shared, watched.worker, &watched.slots);
            self.take_last_words(watched, exit, Some(ran));
        }
    }

    fn reap(&mut self, token: u64) {
        let Some(entry) = self.watched.remove(&token) else { return };
        let Entry { watched, hung_up, reported } = entry;
        self.poller.remove(watched.process.pidfd());
        if !hung_up {
            self.poller.remove(watched.control.as_fd());
        }
        self.bury(watched, reported);
    }

    fn bury(&mut self, watched: Arc<Watched>, reported: bool) {
        let exit = match watched.process.reap() {
            Ok(exit) => exit,
            Err(error) => {
                // Somebody else in this process waits for any child; the status is lost, the death is not.
                let pid = watched.process.pid();
                self.shared.console.note(
                    Level::WARN,
                    move |pool| warn!(pool, pid, %error, "failed to read how a worker ended"),
                );
                UNKNOWN
            }
        };
        if !reported {
            self.take_last_words(watched, exit, None);
        }
    }

    fn take_last_words(&mut self, watched: Arc<Watched>, exit: Exit, ran: Option<Ran>) {
        let (last_words, lines) = self.shared.console.last_words(&watched.output);
        // Only this thread sets it, once for each process.
        let _ = watched.death.set(Death { exit, last_words, ran });
        match lines {
            None => report(self.shared, &watched),
            Some(lines) => {
                let until = clock::now().saturating_add(PATIENCE);
                self.unreported.push(Unreported { watched, lines, until });
            }
        }
    }

    /// Reports deaths whose last lines are told, or would have been by somebody who is not blocked.
    fn report_told(&mut self) {
        if self.unreported.is_empty() {
            return;
        }
        let (shared, now) = (self.shared, clock::now());
        let is_due = |it: &mut Unreported| it.until <= now || shared.console.is_told(it.lines);
        let due: Vec<Unreported> = self.unreported.extract_if(.., is_due).collect();
        for Unreported { watched, .. } in due {
            report(shared, &watched);
        }
    }

    /// Without descriptors no death is seen: every worker is killed and waited for.
    fn end_all(&mut self) {
        for (_, Entry { watched, reported, .. }) in std::mem::take(&mut self.watched) {
            match watched.process.signal_group(Signal::Kill) {
                Ok(()) => self.bury(watched, reported),
                Err(error) => {
                    if !watched.life.is_left_behind() {
                        self.shared.could_not_kill(watched.worker, &watched.life, error);
                    }
                    if !reported {
                        self.take_last_words(watched, UNKNOWN, None);
                    }
                }
            }
        }
    }

    fn go_on_without_descriptors(&self, problem: &dyn std::fmt::Display) {
        let reaper = &self.shared.reaper;
        if !reaper.alarm.does_without() {
            reaper.alarm.do_without_descriptors();
            self.shared.give_up("wait for workers", problem);
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

/// Has everything handled that the worker had written, and then its death.
fn report(shared: &Shared, watched: &Watched) {
    if let Some(end_mark) = &watched.end_mark {
        end_mark.poison();
    } else {
        let mut after = Afterwards::default();
        shared.lock().collect_slot(watched.worker.slot as usize, shared, &mut after);
        after.run(shared);
        death::report(shared, watched);
    }
}
