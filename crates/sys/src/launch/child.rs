//! What the child does before it is another program.
//!
//! It runs in its parent's memory, at the same time as its parent, and with its parent's thread-local storage. So it makes
//! raw system calls only, reads what was prepared for it, and writes two words: its place for the guardian, and why it
//! gave up.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "registers carry numbers of every kind; the kernel's errors and process numbers fit into an int"
)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::failure::LaunchStage;
use super::program::Program;
use super::raw::call;
use crate::guardian::GroupSlot;

/// What a child is given. It must stay where it is until the child executes another program or has ended.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) candidates: Vec<*const c_char>,
    pub(super) arguments: Vec<*const c_char>,
    pub(super) environment: Vec<*const c_char>,
    pub(super) folder: Option<CString>,
    pub(super) streams: [c_int; 3],
    pub(super) affinity: Vec<u64>,
    pub(super) nice: c_int,
    pub(super) slot: Option<GroupSlot>,
    pub(super) parent: libc::pid_t,
    /// Where the child gave up and the error, as [`Failure::pack`] has it; zero if it did not.
    pub(super) failed: AtomicU64,
    /// On which it runs meanwhile.
    pub(super) stack: Vec<MaybeUninit<u128>>,
    /// What the pointers point to.
    pub(super) _owned: (Arc<Program>, Vec<CString>, Vec<Arc<CStr>>),
}

/// Why a child gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) stage: LaunchStage,
    pub(super) errno: c_int,
}

/// What a shell's child exits with when its program cannot be executed. Nobody sees it: `failed` is what counts.
const NOT_EXECUTED: usize = 127;

/// The highest signal of Linux.
const LAST_SIGNAL: usize = 64;

/// How many bytes the kernel's set of signals has.
const SET_BYTES: usize = 8;

/// The kernel's own `struct sigaction`: handler, flags, restorer, mask. All zero is the default action.
type Action = [usize; 4];

impl Failure {
    fn pack(self) -> u64 {
        (self.stage as u64 + 1) << 32 | u64::from(self.errno.unsigned_abs())
    }

    pub(super) fn unpack(packed: u64) -> Option<Self> {
        let stage = LaunchStage::from_number(packed >> 32)?;
        Some(Self { stage, errno: c_int::try_from(packed & 0xffff_ffff).unwrap_or(0) })
    }
}

/// The child's main function; `shared` is a [`Child`].
pub(super) extern "C" fn run(shared: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Child` that stays until this process executes or ends; both only read it, but for its
    // atomic word.
    let child = unsafe { &*shared.cast::<Child>() };
    let failure = prepare(child);
    child.failed.store(failure.pack(), Ordering::SeqCst);
    // SAFETY: ends the child without running anything of its parent's.
    unsafe { call(libc::SYS_exit_group, [NOT_EXECUTED, 0, 0, 0]) };
    // The kernel does not come back from that.
    0
}

/// Returns only when something has failed.
fn prepare(child: &Child) -> Failure {
    match set_up(child) {
        Err(failure) => failure,
        Ok(()) => Failure { stage: LaunchStage::Program, errno: execute(child) },
    }
}

fn set_up(child: &Child) -> Result<(), Failure> {
    let death_signal = [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0];
    // SAFETY: no memory is involved in these.
    let (parent, own) = unsafe {
        check(call(libc::SYS_setpgid, [0; 4]), LaunchStage::Process)?;
        check(call(libc::SYS_prctl, death_signal), LaunchStage::Process)?;
        (call(libc::SYS_getppid, [0; 4]), call(libc::SYS_getpid, [0; 4]))
    };
    // The kernel sends nothing for a parent that was dead already.
    if parent != child.parent as isize {
        return Err(Failure { stage: LaunchStage::Process, errno: libc::ESRCH });
    }
    if let Some(slot) = &child.slot {
        slot.announce(own as c_int);
    }
    if !child.affinity.is_empty() {
        let mask = [0, size_of_val(child.affinity.as_slice()), child.affinity.as_ptr() as usize, 0];
        // SAFETY: the mask is as long as is said; thread zero is this one.
        check(unsafe { call(libc::SYS_sched_setaffinity, mask) }, LaunchStage::Affinity)?;
    }
    if child.nice != 0 {
        // SAFETY: no memory is involved. The call answers 20 less the priority, to be never negative.
        unsafe {
            let now = 20 - call(libc::SYS_getpriority, [libc::PRIO_PROCESS as usize, 0, 0, 0]);
            let priority = (now + child.nice as isize) as usize;
            let set = call(libc::SYS_setpriority, [libc::PRIO_PROCESS as usize, 0, priority, 0]);
            check(set, LaunchStage::Nice)?;
        }
    }
    if let Some(folder) = &child.folder {
        // SAFETY: a string that the parent keeps.
        let changed = unsafe { call(libc::SYS_chdir, [folder.as_ptr() as usize, 0, 0, 0]) };
        check(changed, LaunchStage::Folder)?;
    }
    for (target, stream) in child.streams.iter().enumerate() {
        // SAFETY: the descriptors are 3 or above, so none is overwritten and they differ; the new ones are inherited.
        let copied = unsafe { call(libc::SYS_dup3, [*stream as usize, target, 0, 0]) };
        check(copied, LaunchStage::Streams)?;
    }
    default_signals();
    Ok(())
}

/// No handler of the parent may run once signals are let through again; what it ignores for its own sake (SIGPIPE in
/// every Rust program) is not the child's to ignore.
fn default_signals() {
    let default: Action = [0; 4];
    for signal in 1..=LAST_SIGNAL {
        let mut action: Action = [0; 4];
        let query = [signal, 0, &raw mut action as usize, SET_BYTES];
        // SAFETY: the structures are ours, and dispositions are the child's own, as CLONE_SIGHAND was not asked for.
        unsafe {
            let is_known = call(libc::SYS_rt_sigaction, query) == 0;
            let is_ours = action[0] != libc::SIG_DFL
                && (action[0] != libc::SIG_IGN || signal == libc::SIGPIPE as usize);
            if is_known && is_ours {
                let change = [signal, &raw const default as usize, 0, SET_BYTES];
                call(libc::SYS_rt_sigaction, change);
            }
        }
    }
    let none = 0_u64;
    let set = [libc::SIG_SETMASK as usize, &raw const none as usize, 0, SET_BYTES];
    // SAFETY: the set is ours and as long as is said.
    unsafe { call(libc::SYS_rt_sigprocmask, set) };
}

/// Tries one place after the other, as `execvp` does. Returns only if none could be executed, with the error.
fn execute(child: &Child) -> c_int {
    let (arguments, environment) = (child.arguments.as_ptr(), child.environment.as_ptr());
    let mut errno = libc::ENOENT;
    // The last is the null pointer that ends the list.
    for candidate in child.candidates.iter().filter(|candidate| !candidate.is_null()) {
        let execute = [*candidate as usize, arguments as usize, environment as usize, 0];
        // SAFETY: strings, and lists of them that end with null, which the parent keeps.
        let error = -unsafe { call(libc::SYS_execve, execute) } as c_int;
        match error {
            // Elsewhere on the path there may be one that may be executed; if not, this is what to say.
            libc::EACCES => errno = libc::EACCES,
            libc::ENOENT | libc::ENOTDIR => {}
            _ => return error,
        }
    }
    errno
}

fn check(result: isize, stage: LaunchStage) -> Result<(), Failure> {
    if result < 0 { Err(Failure { stage, errno: -result as c_int }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_fits_into_a_word() {
        for number in 1..=6 {
            let stage = LaunchStage::from_number(number).expect("a stage");
            let failure = Failure { stage, errno: libc::ENOENT };
            assert_eq!(Failure::unpack(failure.pack()), Some(failure));
        }
        assert_eq!(Failure::unpack(0), None);
    }
}
