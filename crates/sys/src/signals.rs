//! Handles signals from a terminal, and signal settings that a process inherits from its parent.
//!
//! A terminal signals its whole foreground group. A child belongs to that group from its birth
//! until it has created a group of its own, so a signal that arrives in between is pending in the
//! child after it has left. If it stopped the child then, nobody would continue it: `fg` reaches
//! only the parent's group, and the parent waits in `vfork` until the child executes its program.
//! Therefore:
//!
//! 1. The child starts with these signals blocked:
//!    [`Process::spawn`](crate::process::Process::spawn) blocks them around the start,
//!    [`launch`](crate::launch) and [`guardian`](crate::guardian) block all.
//! 2. In its own group, the child discards pending signals before it unblocks anything. Our own
//!    programs call [`reset`]; for other programs, `launch` does it before it executes the program.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

use crate::syscall::checked;

/// Signals that a terminal sends to a whole group.
const FROM_TERMINAL: [c_int; 5] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// The highest signal of Linux.
const LAST: c_int = 64;

/// The highest signal below the real-time signals.
const LAST_STANDARD: c_int = 31;

/// Gives this process the signals of a worker, whatever it has inherited:
///
/// - No signal is blocked in the calling thread, and none from the terminal is pending.
/// - Signals that the parent ignored have their default action, so that the process can be asked to
///   end, and can wait for its children. SIGHUP stays ignored: `nohup` also covers all descendants.
/// - SIGPIPE is ignored, as in every Rust program. So are SIGTTOU and SIGTTIN: the process is in
///   the background of its terminal, where a write succeeds then and a read is an error. Otherwise
///   either could stop it forever.
/// - Handlers that the program has installed stay, and so do the actions of real-time signals:
///   nothing ends or stops a process with them, and querying them would slow down each start of a
///   worker.
pub fn reset() {
    set_actions(LAST_STANDARD, |signal, action| match (signal, action) {
        (libc::SIGPIPE | libc::SIGTTIN | libc::SIGTTOU, libc::SIG_DFL | libc::SIG_IGN) => {
            libc::SIG_IGN
        }
        (libc::SIGHUP, libc::SIG_IGN) => libc::SIG_IGN,
        (_, libc::SIG_IGN) => libc::SIG_DFL,
        (_, other) => other,
    });
    block_only(&empty());
}

/// Gives a child that is about to execute another program the signals with which programs start:
/// nothing is blocked, no signal of the terminal is pending, and signals that the parent ignores
/// are ignored, except SIGPIPE. A worker starts with the signals of a terminal blocked, until it
/// calls [`reset`]. Only makes system calls.
pub(crate) fn reset_for_program(is_worker: bool) {
    set_actions(LAST, |signal, action| match (signal, action) {
        // Every Rust program ignores it for its own sake.
        (libc::SIGPIPE, _) => libc::SIG_DFL,
        (_, libc::SIG_IGN) => libc::SIG_IGN,
        // No handler of the parent may run once signals are unblocked.
        _ => libc::SIG_DFL,
    });
    block_only(&if is_worker { from_terminal() } else { empty() });
}

/// Ignores SIGHUP, or gives it its default action.
pub(crate) fn ignore_hangup(is_ignored: bool) {
    // SAFETY: an action of zeros is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let to = if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL };
    set_action(libc::SIGHUP, &mut action, to);
}

/// Lets the default action of a signal end this process, which has a single thread. Returns if it
/// does not.
pub(crate) fn end_by(signal: c_int) {
    let mut only = empty();
    // SAFETY: an action of zeros is the default one; the set is initialized; the other calls have
    // no conditions.
    unsafe {
        let action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        libc::kill(libc::getpid(), signal);
        libc::sigaddset(&raw mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, ptr::null_mut());
    }
}

/// The exit code with which shells report a signal is this number more.
pub(crate) const EXIT_OF_SIGNALS: c_int = 128;

/// Discards the signals that are blocked in this thread and pending.
pub(crate) fn discard_pending() {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let all = full();
    // SAFETY: the set is initialized; each call takes a signal of it, if there is one.
    while unsafe { libc::sigtimedwait(&raw const all, ptr::null_mut(), &raw const at_once) } > 0 {}
}

/// Kills this process if it still runs after a time. Its program can neither use nor stop the timer
/// by accident.
///
/// # Errors
/// If the system has no more timers.
pub(crate) fn end_after(time: Duration) -> io::Result<()> {
    let seconds = libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX);
    let nanoseconds = time.subsec_nanos().max(u32::from(seconds == 0));
    let value = libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
    let once =
        libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    let mut timer = MaybeUninit::uninit();
    // SAFETY: events and timers of zeros are valid; the first call fills the number of the timer
    // for the second one.
    unsafe {
        let mut event: libc::sigevent = MaybeUninit::zeroed().assume_init();
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        checked(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()))?;
        checked(libc::timer_settime(timer.assume_init(), 0, &raw const once, ptr::null_mut()))?;
    }
    Ok(())
}

/// Blocks all signals in the calling thread for the rest of its life: it runs no handlers, and its
/// writes to a pipe without readers are errors and nothing else.
pub fn block_in_thread() {
    std::mem::forget(Blocked::all());
}

/// Keeps signals of the calling thread blocked until it is dropped.
#[derive(Debug)]
pub(crate) struct Blocked {
    before: libc::sigset_t,
}

impl Blocked {
    /// Blocks all signals.
    pub(crate) fn all() -> Self {
        Self::add(&full())
    }

    /// Blocks all signals but that for [samples](crate::crash) of the stack.
    pub(crate) fn all_but_samples() -> Self {
        let mut set = full();
        // SAFETY: the set is initialized.
        unsafe { libc::sigdelset(&raw mut set, libc::SIGURG) };
        Self::add(&set)
    }

    /// Blocks the signals that a terminal sends.
    pub(crate) fn from_terminal() -> Self {
        Self::add(&from_terminal())
    }

    fn add(set: &libc::sigset_t) -> Self {
        let mut before = MaybeUninit::uninit();
        // SAFETY: the set is initialized; the call does not fail for a valid request, so it fills
        // the other one.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, set, before.as_mut_ptr());
            Self { before: before.assume_init() }
        }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set was filled by the call that blocked the signals.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

/// Sets the action of each signal up to `last` to the one that `choose` returns for the present
/// action, and discards pending signals of the terminal unless a handler takes them.
fn set_actions(last: c_int, choose: impl Fn(c_int, libc::sighandler_t) -> libc::sighandler_t) {
    for signal in 1..=last {
        // SAFETY: an action of zeros is valid.
        let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the structure is ours.
        if unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } != 0 {
            // The C library reserves it.
            continue;
        }
        let before = action.sa_sigaction;
        let after = choose(signal, before);
        if FROM_TERMINAL.contains(&signal) && matches!(after, libc::SIG_DFL | libc::SIG_IGN) {
            // The kernel discards a pending signal when it is ignored.
            set_action(signal, &mut action, libc::SIG_IGN);
            set_action(signal, &mut action, after);
        } else if after != before {
            set_action(signal, &mut action, after);
        }
    }
}

/// Ignores the signal or gives it its default action. Fails for SIGKILL and SIGSTOP, which nobody
/// can change.
fn set_action(signal: c_int, action: &mut libc::sigaction, to: libc::sighandler_t) {
    action.sa_sigaction = to;
    // SAFETY: the structure is ours; `choose` returns the default, ignoring, or the present
    // handler.
    unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
}

fn block_only(set: &libc::sigset_t) {
    // SAFETY: the set is initialized.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, ptr::null_mut()) };
}

fn from_terminal() -> libc::sigset_t {
    let mut set = empty();
    for signal in FROM_TERMINAL {
        // SAFETY: the set is initialized and the signal valid.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

fn full() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call fills the set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

fn empty() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call fills the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}
