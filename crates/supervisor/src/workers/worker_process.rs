//! The process of one worker, from the order to start it until it is reaped.
//!
//! ```text
//! ordered -> started -> connected -> dying -> dead
//! ```
//!
//! - A worker may be killed in every state, and more than once. If its process does not exist yet,
//!   it is not started. While its link is being opened the kill waits, and follows immediately.
//! - It is *dying* once it was killed. A worker that ends by itself skips this state.
//! - It is *dead* when its end was observed or is certain, and its output was read.

mod given;
mod thread;

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_crash::Files;
use brigade_sandbox::Group;
use brigade_sys::control::ControlSocket;
use brigade_sys::crash::CrashArea;
use brigade_sys::lifeline::{GroupLifeline, Lifeline};
use brigade_sys::process::{Exit, Process, Signal, Swept};
use brigade_sys::sync::Mutex;
use brigade_wire::WorkerId;
use brigade_wire::handshake::WorkerProgram;

use crate::workers::death::Death;
use crate::workers::limited::Limited;
use crate::workers::output::WorkerStreams;
use crate::workers::samples::Samples;
use crate::workers::settings::Settings;
use crate::workers::thread_end::{KILLED, ThreadEnd};

/// The process of one worker, shared by all threads that may have to end it.
pub struct WorkerProcess {
    worker: WorkerId,
    state: Mutex<State>,
    /// Set when the process is started.
    running: OnceLock<Running>,
    /// Set before the state becomes [`ProcessState::Dead`].
    death: OnceLock<Death>,
    /// Set if the process is about to end and the interrupted task will not be retried, so that the
    /// death may be reported before the process is reaped.
    early_end: OnceLock<Exit>,
    /// Records of crashes and samples, which the process shares, and the files that may be read for
    /// them.
    crash_area: OnceLock<(CrashArea, Files)>,
    samples: Samples,
    /// Ends the process with this one.
    lifeline: OnceLock<Lifeline>,
    /// The process of the worker, which is a child of the one that was started if that is a
    /// wrapper.
    worker_pid: OnceLock<u32>,
    /// The control group of the process, until its limits hold.
    group: Mutex<Option<Group>>,
    /// The limits that hold, once the worker is ready.
    limited: OnceLock<Limited>,
    /// The end of the worker, if it is a thread of this process.
    thread: OnceLock<ThreadEnd>,
    /// The process could not be killed, and nothing waits for its death.
    left_behind: AtomicBool,
}

/// The state of a worker's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// There is no process yet.
    Ordered,
    /// The handshake is under way.
    Started,
    /// The worker takes tasks.
    Connected,
    /// It was killed.
    Dying,
    /// Its end is known.
    Dead,
}

struct State {
    state: ProcessState,
    /// The link is being opened.
    is_connecting: bool,
}

/// A process that was started, with its connections to the host.
struct Running {
    process: Process,
    /// The program of the server from which it was forked; `None` if it was executed.
    program: Option<WorkerProgram>,
    lifeline: OnceLock<GroupLifeline>,
    /// Kept open, because closing it would tell the worker that the host is gone.
    control: ControlSocket,
    streams: WorkerStreams,
}

/// Progress of a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// There is no process yet, or its link is being opened; the thread that does so kills it.
    NotYet,
    /// SIGKILL was sent to the whole process group.
    Sent,
    /// The process is stopped. [`WorkerProcess::kill_tree`] finds the processes that it has started
    /// and kills all of them, which takes longer.
    Stopped,
}

impl WorkerProcess {
    /// Creates the record of a process that is to be started.
    pub fn new(worker: WorkerId) -> Self {
        Self {
            worker,
            state: Mutex::new(State { state: ProcessState::Ordered, is_connecting: false }),
            running: OnceLock::new(),
            death: OnceLock::new(),
            early_end: OnceLock::new(),
            crash_area: OnceLock::new(),
            samples: Samples::default(),
            lifeline: OnceLock::new(),
            worker_pid: OnceLock::new(),
            group: Mutex::new(None),
            limited: OnceLock::new(),
            thread: OnceLock::new(),
            left_behind: AtomicBool::new(false),
        }
    }

    /// Returns the worker's id.
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Returns the process id, if the process was started.
    pub fn pid(&self) -> Option<u32> {
        self.process().map(Process::pid)
    }

    /// Returns the state.
    pub fn state(&self) -> ProcessState {
        self.state.lock().state
    }

    /// Returns `true` if the worker was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.state() == ProcessState::Dying
    }

    /// Records the new process. Returns `false` if it was killed in the meantime; it is killed
    /// then.
    pub(crate) fn set_started(
        &self,
        process: Process,
        program: Option<WorkerProgram>,
        control: ControlSocket,
        streams: impl FnOnce(u32) -> WorkerStreams,
    ) -> bool {
        let mut state = self.state.lock();
        if state.state != ProcessState::Ordered {
            // Dropping the process kills and reaps it, which must not happen under the lock.
            drop(state);
            return false;
        }
        let streams = streams(process.pid());
        let running = Running { process, program, lifeline: OnceLock::new(), control, streams };
        // Set only here, once.
        let _ = self.running.set(running);
        state.state = ProcessState::Started;
        true
    }

    /// Returns `true` if it was forked from a server, and not executed.
    pub fn is_forked(&self) -> bool {
        self.program().is_some()
    }

    /// Returns the program of the server from which it was forked.
    pub(crate) fn program(&self) -> Option<&WorkerProgram> {
        self.running.get()?.program.as_ref()
    }

    /// Makes the whole process group end with this process. Without it, processes that tasks have
    /// started outlive a host that is killed.
    pub(crate) fn bind_to_host(&self) -> io::Result<()> {
        if let Some(Running { process, lifeline, .. }) = self.running.get() {
            let _ = lifeline.set(GroupLifeline::bind(process)?);
        }
        Ok(())
    }

    /// Records that the worker takes tasks.
    pub(crate) fn set_connected(&self) {
        let mut state = self.state.lock();
        if state.state == ProcessState::Started {
            state.state = ProcessState::Connected;
        }
    }

    /// Records the end of the process, once.
    pub(crate) fn set_dead(&self, death: Death) {
        let _ = self.death.set(death);
        self.state.lock().state = ProcessState::Dead;
    }

    /// Returns the end of the process, if it is known.
    pub fn death(&self) -> Option<&Death> {
        self.death.get()
    }

    /// Lets the death be reported before the process is reaped, which is about to end this way.
    pub fn allow_early_report(&self, exit: Exit) {
        let _ = self.early_end.set(exit);
    }

    /// Returns the way in which the process is about to end, if its death may be reported early.
    pub(crate) fn early_end(&self) -> Option<Exit> {
        self.early_end.get().copied()
    }

    pub(crate) fn set_worker_pid(&self, pid: u32) {
        let _ = self.worker_pid.set(pid);
    }

    /// Makes the control group that the settings need. Returns the files by which to enter it.
    pub(crate) fn make_group(&self, settings: &Settings) -> io::Result<Vec<File>> {
        if !settings.groups.serve(&settings.limits) {
            return Ok(Vec::new());
        }
        let group = settings.groups.create(&settings.limits)?;
        let doors = group.doors();
        *self.group.lock() = Some(group);
        doors
    }

    /// Makes the limits hold from now on. The error can follow "the worker could not be started: ".
    pub(crate) fn enforce(&self, settings: &Settings) -> Result<(), String> {
        if let Some(pid) = self.worker_pid.get() {
            let group = self.group.lock().take();
            let _ = self.limited.set(Limited::enforce(settings, *pid, group)?);
        }
        Ok(())
    }

    /// Returns the limits that hold for the process, if it has any.
    pub fn limited(&self) -> Option<&Limited> {
        self.limited.get()
    }

    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Sends the signal that asks for a sample. Does nothing if the worker is the child of the
    /// process that was started: the signal would not reach it.
    pub(crate) fn signal_for_sample(&self) -> bool {
        self.process().is_some_and(|it| it.signal_main_thread(Signal::Urgent).is_ok())
    }

    /// Gives up a process that could not be killed: nothing waits for its death.
    pub fn leave_behind(&self) {
        self.left_behind.store(true, Ordering::Release);
    }

    /// Returns `true` after [`leave_behind`](Self::leave_behind).
    pub fn is_left_behind(&self) -> bool {
        self.left_behind.load(Ordering::Acquire)
    }

    /// Kills the process, or stops it if it may have started others. If there is no process yet,
    /// prevents its start.
    ///
    /// # Errors
    /// If this process may not kill the worker.
    pub fn kill(&self) -> io::Result<Killed> {
        let mut state = self.state.lock();
        if state.state == ProcessState::Dead {
            return Ok(Killed::Sent);
        }
        state.state = ProcessState::Dying;
        let is_connecting = state.is_connecting;
        drop(state);
        if self.thread.get().is_some() {
            self.give_up_thread(KILLED);
            return Ok(Killed::Sent);
        }
        match self.running.get() {
            Some(running) if !is_connecting => {
                let is_killed = running.process.kill_if_alone()?;
                Ok(if is_killed { Killed::Sent } else { Killed::Stopped })
            }
            _ => Ok(Killed::NotYet),
        }
    }

    /// Kills the process, its group, and all its descendants.
    ///
    /// # Errors
    /// If this process may not kill the worker.
    pub fn kill_tree(&self) -> io::Result<Swept> {
        self.process().map_or(Ok(Swept::default()), Process::kill_tree)
    }

    /// Kills the process and its group at once.
    ///
    /// # Errors
    /// If this process may not kill the worker.
    pub(crate) fn kill_group(&self) -> io::Result<()> {
        self.process().map_or(Ok(()), |process| process.signal_group(Signal::Kill))
    }

    /// Opens the link to the process, unless it was killed. A kill that is requested meanwhile
    /// follows immediately.
    ///
    /// ipc-channel 0.23 never closes the socket of a failed connect, and connecting to a dead
    /// process fails. Without this, shutdowns that kill starting workers would occasionally leak a
    /// descriptor.
    pub(crate) fn connect<R>(&self, open: impl FnOnce() -> R) -> Option<R> {
        let mut state = self.state.lock();
        if state.state != ProcessState::Started {
            return None;
        }
        state.is_connecting = true;
        drop(state);
        let result = open();
        let mut state = self.state.lock();
        state.is_connecting = false;
        let was_killed = state.state == ProcessState::Dying;
        drop(state);
        if was_killed {
            // This fails only if the process is already gone.
            let _ = self.kill_group();
        }
        Some(result)
    }

    /// Asks the process group to end. A stopped group has to be continued to receive the signal.
    ///
    /// # Errors
    /// If this process may not signal the worker.
    pub fn terminate(&self) -> io::Result<()> {
        if let Some(process) = self.process() {
            process.signal_group(Signal::Terminate)?;
            process.signal_group(Signal::Continue)?;
        }
        Ok(())
    }

    /// Returns `true` if the process is stopped by a signal, or a child of it if that counts.
    pub fn is_stopped(&self, with_children: bool) -> bool {
        let stops = |it: &Process| it.is_stopped() || (with_children && it.has_stopped_child());
        self.process().is_some_and(stops)
    }

    /// Waits for the end of the process, and reaps it.
    pub(crate) fn reap(&self) -> io::Result<Exit> {
        self.process().map_or(Ok(Exit::Unknown), Process::reap)
    }

    /// Returns `true` if nothing of the process is left, or nothing waits for that.
    pub fn is_gone(&self) -> bool {
        self.is_left_behind() || !self.process().is_some_and(Process::is_unreaped)
    }

    /// Kills the process and waits for its end.
    ///
    /// # Errors
    /// If this process may not kill the worker, or its exit status is lost.
    pub fn end(&self) -> io::Result<Exit> {
        self.kill_group()?;
        self.reap()
    }

    /// Returns the process, if it was started.
    pub fn process(&self) -> Option<&Process> {
        self.running.get().map(|running| &running.process)
    }

    /// Returns the descriptor that becomes readable when the process has ended.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.process().map(Process::pidfd)
    }

    pub(crate) fn control(&self) -> Option<&ControlSocket> {
        self.running.get().map(|running| &running.control)
    }
}

brigade_sys::debug_fields! {
    impl WorkerProcess {
        |it| worker: it.worker, pid: it.pid(), state: it.state()
    }
}

#[cfg(test)]
mod tests;
