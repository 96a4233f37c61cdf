//! The thread that waits for deaths and deadlines.
//!
//! It sleeps in one `epoll` over the pidfds of all ready workers and an event descriptor, until the
//! owner's next deadline. When a worker has died, the thread reaps it, takes its last output, and
//! reports the death.
//!
//! A worker that was killed and whose task will not be retried is reported before its death is
//! observed, also by this thread. The owner learns first that the worker is given up, so that
//! nothing the worker does in between makes a difference. The process stays in the list until it is
//! reaped, and the thread does not end before that. Then the owner learns that whatever the process
//! had is free.
//!
//! All work here is bounded: the thread runs no user code, writes no output, and waits for no other
//! thread. A death whose captured lines have to be emitted first is deferred until they are, or for
//! `output::EMIT_TIMEOUT`. If the thread panics or cannot wait for descriptors, it gives up, kills
//! all workers, and continues without descriptors.

mod crashed;

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use brigade_crash::CrashReport;
use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::control::Received;
use brigade_sys::memory_limit::out_of_memory_kills;
use brigade_sys::poller::Poller;
use brigade_sys::process::{Exit, Process};
use brigade_sys::scheduling::prefer_short_slices;
use brigade_wire::handshake::FromWorkerControl;

use crate::note;
use crashed::Crash;

use crate::workers::alarm::ThreadAlarm;
use crate::workers::asked::Asked;
use crate::workers::death::Death;
use crate::workers::output::{EMIT_TIMEOUT, LastLines, OutputForwarder};
use crate::workers::reaper::Reaper;
use crate::workers::supervised::Supervised;
use crate::workers::threads::cleaner;
use crate::workers::verdict::Evidence;
use crate::workers::worker_process::WorkerProcess;

/// Waits and reaps until the pool ends.
pub fn run(owner: &impl Supervised) {
    // This thread keeps deadlines on busy machines too. Failure on older kernels is harmless.
    let _ = prefer_short_slices();
    let alarm = &owner.supervisor().reaper.alarm;
    let mut thread = ReaperThread {
        owner,
        poller: &owner.supervisor().reaper.workers.poller,
        watched: HashMap::new(),
        servers: HashMap::new(),
        unreported: Vec::new(),
        ready: Vec::new(),
        out_of_memory: out_of_memory_kills(),
    };
    if let Err(error) = thread.poller.add(alarm, ALARM) {
        thread.continue_without_descriptors(&error);
    }
    // A waker may have forked and returned in both processes.
    while !owner.is_forked() {
        match catch_panic(|| thread.turn()) {
            Ok(Ok(Continue(()))) => {}
            Ok(Ok(Break(()))) => return,
            Ok(Err(error)) => thread.continue_without_descriptors(&error),
            // The panic hook has reported it. If it happens repeatedly, the pause limits the rate.
            Err(_) if alarm.is_parking() => {
                ThreadAlarm::sleep(Some(now().saturating_add(EMIT_TIMEOUT)));
            }
            Err(_) => thread.continue_without_descriptors(&"the reaper thread panicked"),
        }
    }
}

/// State of the thread that lasts from one turn to the next.
struct ReaperThread<'a, S> {
    owner: &'a S,
    poller: &'a Poller,
    /// Keyed by the token of the pidfd; the token of the control socket is the next number.
    watched: HashMap<u64, Entry>,
    /// Fork servers, keyed like workers.
    servers: HashMap<u64, Arc<Process>>,
    unreported: Vec<Unreported>,
    ready: Vec<u64>,
    /// Processes that the kernel has killed for their memory, as far as this thread has seen.
    out_of_memory: Option<u64>,
}

struct Entry {
    process: Arc<WorkerProcess>,
    /// The worker has closed its end of the control socket, which is no longer polled.
    hung_up: bool,
    /// The death was reported or is about to be; the process still has to be reaped.
    reported: bool,
    /// It has crashed.
    crash: Option<Crash>,
}

/// A known death that waits for the worker's last lines to be emitted.
struct Unreported {
    process: Arc<WorkerProcess>,
    lines: LastLines,
    until: Monotonic,
}

const ALARM: u64 = 0;

impl Entry {
    fn new(process: Arc<WorkerProcess>) -> Self {
        Self { process, hung_up: false, reported: false, crash: None }
    }

    /// Returns the signal of a crash whose record is complete.
    fn announced(&self) -> Option<i32> {
        let signal = self.process.crash_area().and_then(|(area, _)| area.announced());
        signal.filter(|signal| CrashReport::has_signal(*signal))
    }
}

impl<S: Supervised> ReaperThread<'_, S> {
    fn reaper(&self) -> &Reaper {
        &self.owner.supervisor().reaper
    }

    fn output(&self) -> &OutputForwarder {
        &self.owner.supervisor().output
    }

    /// Does what is due, and waits once. Breaks if it was the last time.
    fn turn(&mut self) -> io::Result<ControlFlow<()>> {
        let owner = self.owner;
        let reaper = &owner.supervisor().reaper;
        let ended = reaper.alarm.has_ended();
        self.take_new()?;
        // A process that could not be killed may live forever.
        let is_awaited = |entry: &Entry| entry.reported && !entry.process.is_left_behind();
        if ended && !self.watched.values().any(is_awaited) {
            return Ok(Break(()));
        }
        self.end_crashed();
        self.report_early();
        self.report_emitted();
        // Another thread may have done what was due; then the core's lock is not needed.
        let due = match reaper.due() {
            Some(due) if due <= now() => owner.tick(),
            due => due,
        };
        let asked = self.kill_asked();
        let patience = self.unreported.iter().map(|unreported| unreported.until).min();
        let crashed = self.watched.values().filter_map(|it| Some(it.crash?.until)).min();
        let deadline = due.into_iter().chain(patience).chain(asked).chain(crashed).min();
        if reaper.alarm.is_parking() {
            self.kill_all();
            ThreadAlarm::sleep(deadline);
            return Ok(Continue(()));
        }
        let mut ready = std::mem::take(&mut self.ready);
        let waited = self.poller.ready_until(deadline, &mut ready);
        // Control messages that a worker sent before its death come first.
        ready.sort_unstable_by_key(|token| token % 2 != 0);
        self.take_new_workers();
        for token in ready.iter().copied() {
            match token {
                ALARM => reaper.alarm.drain(),
                control if control % 2 == 0 => self.receive_control(control - 1),
                pidfd => match self.servers.remove(&pidfd) {
                    Some(server) => {
                        self.poller.remove(server.pidfd());
                        let _ = server.try_reap();
                        self.owner.supervisor().forget_fork_server(server.pid());
                    }
                    None => self.reap(pidfd),
                },
            }
        }
        self.ready = ready;
        waited.map(Continue)
    }

    fn take_new(&mut self) -> io::Result<()> {
        let reaper = &self.owner.supervisor().reaper;
        for server in std::mem::take(&mut *reaper.servers.lock()) {
            let token = reaper.workers.token();
            // A server that is not watched is reaped when it is needed next.
            if !reaper.alarm.is_parking() && self.poller.add(server.pidfd(), token).is_ok() {
                self.servers.insert(token, server);
            }
        }
        self.take_new_workers();
        reaper.workers.check()
    }

    fn take_new_workers(&mut self) {
        let new = self.owner.supervisor().reaper.workers.take_new();
        self.watched.extend(new.into_iter().map(|(token, process)| (token, Entry::new(process))));
    }

    /// Receives one packet from a worker.
    fn receive_control(&mut self, token: u64) {
        let Some(entry) = self.watched.get_mut(&token) else { return };
        let Some(control) = entry.process.control() else { return };
        let worker = entry.process.worker();
        let problem = match control.receive(Some(now()), None) {
            Ok(Received::Packet { bytes, .. }) => match FromWorkerControl::decode(&bytes) {
                Ok(FromWorkerControl::Section { due }) => {
                    let due = Monotonic::from_nanos(due);
                    return self.owner.section_began(worker, due);
                }
                Ok(FromWorkerControl::Sampled) if entry.process.sample_arrived() => return,
                Ok(FromWorkerControl::Sampled) => "a sample that nobody has asked for",
                Ok(FromWorkerControl::Crashed) if entry.crash.is_some() => "a second crash",
                Ok(FromWorkerControl::Crashed) => match entry.announced() {
                    Some(signal) => return self.crashed(token, signal),
                    None => "the notice of a crash without its record",
                },
                _ => "an unexpected packet on the control socket",
            },
            Ok(Received::TimedOut | Received::PeerDied) => return,
            // The worker is about to end, or its task has closed all descriptors.
            Ok(Received::Closed) | Err(_) => {
                self.poller.remove(control);
                entry.hung_up = true;
                return;
            }
        };
        self.owner.misbehaved(worker, problem);
    }

    /// Kills workers that have said where they are, and returns the time at which the next one is
    /// killed anyway.
    fn kill_asked(&self) -> Option<Monotonic> {
        let (reaper, now) = (self.reaper(), now());
        let mut asked = reaper.asked.lock();
        if asked.is_empty() {
            return None;
        }
        let is_parking = reaper.alarm.is_parking();
        let due: Vec<_> = asked.extract_if(.., |it| is_parking || it.is_due(now)).collect();
        let next = asked.iter().map(|asked| asked.until).min();
        drop(asked);
        for Asked { process, at_once, .. } in due {
            cleaner::kill(self.owner, &process, at_once);
        }
        next
    }

    /// Reports workers that are about to end but not reaped yet, and workers that could not be
    /// killed.
    ///
    /// The number of the former at any time is limited to the number of workers of the pool.
    /// Otherwise, tasks that fill the memory and are killed one after the other would together
    /// exceed it.
    fn report_early(&mut self) {
        let most = self.owner.max_workers();
        let mut room =
            most.saturating_sub(self.watched.values().filter(|entry| entry.reported).count());
        let mut early = Vec::new();
        for entry in self.watched.values_mut().filter(|entry| !entry.reported) {
            let left_behind = entry.process.is_left_behind();
            let exit = if left_behind { Some(Exit::Unknown) } else { entry.process.early_end() };
            if let Some(exit) = exit.filter(|_| left_behind || room > 0) {
                room = room.saturating_sub(1);
                entry.reported = true;
                early.push((Arc::clone(&entry.process), exit));
            }
        }
        for (process, exit) in early {
            self.owner.gave_up_on(&process);
            self.read_last_output(process, exit);
        }
    }

    fn reap(&mut self, token: u64) {
        let Some(entry) = self.watched.remove(&token) else { return };
        let Entry { process, hung_up, reported, .. } = entry;
        if let Some(pidfd) = process.pidfd() {
            self.poller.remove(pidfd);
        }
        if let Some(control) = process.control().filter(|_| !hung_up) {
            self.poller.remove(control);
        }
        self.reap_process(process, reported);
    }

    fn reap_process(&mut self, process: Arc<WorkerProcess>, reported: bool) {
        let exit = match process.reap() {
            Ok(exit) => exit,
            Err(error) => {
                // Other code in this process has reaped the child. The exit status is lost, but the
                // death is certain.
                let pid = process.pid();
                note!(
                    self.output(), WARN, pid, %error, "cannot read the exit status of a worker"
                );
                Exit::Unknown
            }
        };
        if !reported {
            self.read_last_output(Arc::clone(&process), exit);
        }
        self.owner.reaped(&process);
    }

    fn read_last_output(&mut self, process: Arc<WorkerProcess>, exit: Exit) {
        let (stderr_tail, lines) = process.finish_streams(self.output());
        let crash = process.crash_report(exit).or_else(|| self.killed_for_memory(&process, exit));
        let verdict = Evidence {
            exit,
            stderr_tail: &stderr_tail,
            crash: crash.as_ref(),
            limited: process.limited(),
            in_sandbox: self.owner.settings().sandbox.is_some(),
            pid: process.pid().unwrap_or(0),
        }
        .judge();
        let stack = process.last_stack();
        process.set_dead(Death { exit, stderr_tail, crash, stack, verdict });
        match lines {
            None => self.owner.died(&process),
            Some(lines) => {
                let until = now().saturating_add(EMIT_TIMEOUT);
                self.unreported.push(Unreported { process, lines, until });
            }
        }
    }

    /// Reports deaths whose last lines have been emitted or have waited long enough.
    fn report_emitted(&mut self) {
        if self.unreported.is_empty() {
            return;
        }
        let (output, now) = (&self.owner.supervisor().output, now());
        let is_due = |it: &mut Unreported| it.until <= now || output.are_emitted(it.lines);
        let due: Vec<Unreported> = self.unreported.extract_if(.., is_due).collect();
        for Unreported { process, .. } in due {
            self.owner.died(&process);
        }
    }

    /// Kills and reaps every worker. Without descriptors, no death would be noticed.
    fn kill_all(&mut self) {
        for (_, Entry { process, reported, .. }) in std::mem::take(&mut self.watched) {
            match process.kill_group() {
                Ok(()) => self.reap_process(process, reported),
                Err(error) => {
                    if !process.is_left_behind() {
                        self.owner.could_not_kill(&process, error);
                    }
                    if !reported {
                        self.read_last_output(process, Exit::Unknown);
                    }
                }
            }
        }
    }

    fn continue_without_descriptors(&self, problem: &dyn std::fmt::Display) {
        let alarm = &self.reaper().alarm;
        if !alarm.is_parking() {
            alarm.switch_to_parking();
            self.owner.gave_up("wait for worker deaths", problem);
        }
    }
}
