//! Starts, signals and reaps processes; no other code does.
//!
//! A pid names a process only until it is reaped; afterwards the kernel may give the number to a
//! stranger. So a single process is signalled through its pidfd, which never names another one. A
//! process group has no such handle, but its number stays reserved as long as its leader is at
//! least a zombie. Hence the rules of [`Process`]:
//!
//! 1. The lock on the state is held while a group is signalled and while a zombie is reaped; so a
//!    group is never signalled after its leader was reaped.
//! 2. Before the leader is reaped the rest of its group is killed, while its number is reserved.
//! 3. Waiting happens without the lock and leaves the zombie alone, so it never holds up a signal.

mod descendants;
mod ended;
pub(crate) mod environment;
mod exit;
mod folder;
mod foreign;
mod last_line;
mod look;
mod memory;
mod signal;

pub use descendants::is_shortage;
pub(crate) use ended::exit_of;
pub use ended::{Ended, Usage};
pub use environment::environment_of;
pub use exit::{Exit, signal_name};
pub(crate) use folder::{folder_of, has_our_numbers};
pub use foreign::{ForeignProcess, Swept};
pub use last_line::last_line;
pub use signal::Signal;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, getppid, kill_process,
    kill_process_group, pidfd_open, pidfd_send_signal, waitid,
};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use crate::clock::now;
use crate::fork::Origin;
use crate::guardian::GroupSlot;
use crate::scheduling::make_way;
use crate::signals::Blocked;
use crate::sync::{Mutex, MutexGuard};
use crate::wait::wait_readable;

/// A process that we have started, with the group that it leads.
///
/// All methods may be called from several threads at once. Dropping an unreaped process kills its
/// group and reaps it; a process that we may not kill is left alone. In a copy of this process that
/// `fork` has made the drop has no effect.
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    pidfd: OwnedFd,
    state: Mutex<State>,
    /// Locked for reading while its memory is written, and for writing while it is reaped; before
    /// `state`.
    memory: RwLock<()>,
    origin: Origin,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Running or a zombie: its number belongs to it.
    Unreaped,
    Reaped(Ended),
    /// Somebody else has reaped it, the program ignores SIGCHLD, or it was abandoned: its exit
    /// status is unknown.
    Lost,
}

/// Timeout of a drop: an unkillable process must not hold up its parent forever. A busy machine
/// needs more than a second to end a large one.
const DROP_LIMIT: Duration = Duration::from_secs(5);

impl Process {
    /// Starts a process as the leader of a new group.
    ///
    /// Pass descriptors of your own as standard streams; the ends of `Stdio::piped` are closed
    /// here. The command must not use `pre_exec` or another user: those make the standard library
    /// fork, which is slow in a large process, while otherwise it uses `posix_spawn`.
    ///
    /// The process starts with the signals of a terminal blocked, because a signal that stopped it
    /// in the middle of its start would stop this thread forever. Our own programs undo that with
    /// [`signals::reset`](crate::signals::reset).
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let blocked = Blocked::from_terminal();
        let mut child = command.process_group(0).spawn()?;
        drop(blocked);
        let opened = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(Errno::SRCH)
            // Nobody reaps the child before us, so its number cannot name another process yet.
            .and_then(|pid| Ok((pid, pidfd_open(pid, PidfdFlags::empty())?)));
        match opened {
            Ok((pid, pidfd)) => Ok(Self::new(pid, pidfd)),
            Err(error) => {
                // Without a pidfd (for example because no descriptors are left) we could not manage
                // it.
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// Takes over a child that leads its own group.
    pub(crate) fn new(pid: Pid, pidfd: OwnedFd) -> Self {
        let state = Mutex::new(State::Unreaped);
        Self { pid, pidfd, state, memory: RwLock::new(()), origin: Origin::here() }
    }

    /// Returns the process id. After it was reaped the number may belong to another process.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns the process id, as system calls take it.
    pub(crate) fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Returns the descriptor that becomes readable when the process has ended, and stays so.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Sends a signal to the process. It is not an error if the process has already ended.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.pidfd, signal.into()) {
            Err(Errno::NOSYS) => {
                self.unreaped().map_or(Ok(()), |_held| self.signal_reserved(signal))
            }
            sent => gone_is_fine(sent),
        }
    }

    /// The caller holds the lock and has seen [`State::Unreaped`], so the number will do where the
    /// pidfd does not: under valgrind, which lacks the call up to version 3.19 or later.
    fn signal_reserved(&self, signal: Signal) -> io::Result<()> {
        let signal: rustix::process::Signal = signal.into();
        gone_is_fine(match pidfd_send_signal(&self.pidfd, signal) {
            Err(Errno::NOSYS) => kill_process(self.pid, signal),
            sent => sent,
        })
    }

    /// Sends a signal to every process of the group. Does nothing after the leader was reaped,
    /// because the group was killed then.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        self.unreaped().map_or(Ok(()), |_held| self.signal_reserved_group(signal))
    }

    /// Kills the process, its group, and all its descendants, including those that have left the
    /// group.
    ///
    /// Descendants are found as long as their parents live, and stopped before their own children
    /// are searched for.
    ///
    /// # Errors
    /// If we may not kill the process.
    pub fn kill_tree(&self) -> io::Result<Swept> {
        // Without a spare descriptor no descendants are searched for. The kill itself must not
        // fail.
        let swept = self.pidfd.try_clone().and_then(|pidfd| {
            // Before it is reaped its number belongs to it, so `/proc` shows this very process.
            ForeignProcess::from_pidfd(self.pid(), pidfd).kill_tree(&mut Vec::new())
        });
        // A kernel without group signals through pidfds has killed only the leader.
        self.signal_group(Signal::Kill)?;
        Ok(swept.unwrap_or_default())
    }

    /// Stops the process, and kills it with its group if a short look finds no children. Otherwise
    /// returns `false`: then kill it with [`kill_tree`](Self::kill_tree), which takes a while for a
    /// process with many descendants.
    ///
    /// # Errors
    /// If we may not kill the process.
    pub fn kill_if_alone(&self) -> io::Result<bool> {
        // Even if the stop fails, the process is killed.
        let _ = self.signal(Signal::Stop);
        if !descendants::has_none(self.pid()) {
            return Ok(false);
        }
        self.signal_group(Signal::Kill)?;
        Ok(true)
    }

    /// Returns the exit status if the process has ended. The first call after its end kills the
    /// rest of its group and reaps it; the result is remembered.
    ///
    /// The error [`ECHILD`](io::Error::raw_os_error) means that the process has ended, but somebody
    /// else has reaped it.
    pub fn try_reap(&self) -> io::Result<Option<Exit>> {
        Ok(self.try_end(None)?.map(|ended| ended.exit))
    }

    /// Like [`try_reap`](Self::try_reap), with the resources that were used. Clears the entry of
    /// the group after the group was killed and before its number is free.
    ///
    /// # Errors
    /// Like [`try_reap`](Self::try_reap). Then the entry is not cleared.
    pub fn try_end(&self, slot: Option<&GroupSlot>) -> io::Result<Option<Ended>> {
        let _nobody_writes = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        match *state {
            State::Reaped(ended) => return Ok(Some(ended)),
            State::Lost => return Err(Errno::CHILD.into()),
            State::Unreaped => {}
        }
        match self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT) {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) => return Err(lose(&mut state, error)),
        }
        // The worker may have left the group, or the group may have a member of another user:
        // neither may keep the zombie from being reaped.
        let _ = self.signal_reserved_group(Signal::Kill);
        if let Some(slot) = slot {
            slot.clear();
        }
        let ended = ended::reap(self.pidfd()).map_err(|error| lose(&mut state, error))?;
        if let Some(ended) = ended {
            *state = State::Reaped(ended);
        }
        Ok(ended)
    }

    /// Leaves the group to itself: it is neither signalled nor reaped any more.
    pub fn abandon(&self) {
        let mut state = self.state();
        if matches!(*state, State::Unreaped) {
            *state = State::Lost;
        }
    }

    /// Waits for the end of the process and reaps it as [`try_reap`](Self::try_reap) does.
    ///
    /// The wait lasts as long as the process lives: kill it first, or wait until its pidfd is
    /// readable.
    pub fn reap(&self) -> io::Result<Exit> {
        loop {
            // An error means that another thread has reaped it meanwhile, which the next line
            // notices.
            let _ = self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if let Some(exit) = self.try_reap()? {
                return Ok(exit);
            }
        }
    }

    /// Returns `true` if the process is stopped (SIGSTOP, SIGTSTP), in which state it reads and
    /// writes nothing.
    ///
    /// The kernel is asked through the pidfd, because `/proc/<pid>` could be another process. A
    /// process that waits for its own `vfork` child is not stopped until that child has continued.
    pub fn is_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.wait(options).is_ok_and(|status| status.is_some_and(|status| status.stopped()))
    }

    /// Lets others run before the process, which is about to end.
    pub fn make_way(&self) {
        // It has the number as long as it is not reaped. If it fails, others wait a little longer.
        let _ = make_way(self.number());
    }

    /// Returns `true` if the kernel writes a core dump of the process or of a child of it, which
    /// takes long if it has much memory.
    pub fn is_dumping_core(&self) -> bool {
        // Before it is reaped its number belongs to it.
        let dumps = |pid| {
            let status = std::fs::read_to_string(folder_of(pid).join("status"));
            status.is_ok_and(|status| status.contains("CoreDumping:\t1"))
        };
        let children = || descendants::children(self.pid()).unwrap_or_default();
        dumps(self.pid()) || children().into_iter().any(dumps)
    }

    /// Returns `true` if a child of the process is stopped.
    pub fn has_stopped_child(&self) -> bool {
        let children = descendants::children(self.pid()).unwrap_or_default();
        children.into_iter().any(descendants::is_stopped)
    }

    fn wait(&self, options: WaitIdOptions) -> Result<Option<WaitIdStatus>, Errno> {
        retry_on_intr(|| waitid(WaitId::PidFd(self.pidfd.as_fd()), options))
    }

    /// The caller holds the lock and has seen [`State::Unreaped`].
    fn signal_reserved_group(&self, signal: Signal) -> io::Result<()> {
        let sent = kill_process_group(self.pid, signal.into());
        // A worker that has moved to another group gets no signals of this one, but it must not
        // escape a kill.
        if matches!(signal, Signal::Kill) || sent == Err(Errno::SRCH) {
            self.signal_reserved(signal)?;
        }
        gone_is_fine(sent)
    }

    /// Returns the lock, during which nobody reaps the process, unless it was reaped. If somebody
    /// else has done that, its number is no longer ours to signal.
    fn unreaped(&self) -> Option<MutexGuard<'_, State>> {
        let mut state = self.state();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if matches!(*state, State::Unreaped)
            && self.wait(options).is_err_and(|error| error == Errno::CHILD)
        {
            *state = State::Lost;
        }
        matches!(*state, State::Unreaped).then_some(state)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is a single assignment, so a panic elsewhere cannot have left it inconsistent.
        self.state.lock()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.origin.is_here() || !matches!(*self.state(), State::Unreaped) {
            return;
        }
        // A process that we may not kill (for example because it runs as another user now) may
        // live forever, and nobody waits for it. Other errors mean that somebody else has
        // reaped it, and then there is no work left.
        if self.signal_group(Signal::Kill).is_ok() {
            let deadline = now().saturating_add(DROP_LIMIT);
            let _ = match wait_readable(&[self.pidfd()], Some(deadline)) {
                Ok(_) => self.try_reap(),
                // The limit on descriptors was lowered to nothing.
                Err(_) => self.reap().map(Some),
            };
        }
    }
}

/// Creates a command for another program. Processes are started only here, so that none escapes
/// [`Process`]'s rules.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// The file of this very program, even if it was replaced or deleted meanwhile.
pub const THIS_PROGRAM: &str = "/proc/self/exe";

/// The name that a process of this program sees as its own.
pub const WORKER_NAME: &str = "brigade-worker";

/// Creates the command that starts another process of this very program, even if its file was
/// replaced or deleted meanwhile.
pub fn self_command() -> Command {
    let mut command = Command::new(THIS_PROGRAM);
    command.arg0(WORKER_NAME);
    command
}

/// Returns the process that started this one, or has adopted it; 0 if that is outside this pid
/// namespace.
pub fn parent_pid() -> u32 {
    getppid().map_or(0, |parent| parent.as_raw_nonzero().get().unsigned_abs())
}

fn lose(state: &mut State, error: Errno) -> io::Error {
    if error == Errno::CHILD {
        *state = State::Lost;
    }
    error.into()
}

fn gone_is_fine(sent: Result<(), Errno>) -> io::Result<()> {
    match sent {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
