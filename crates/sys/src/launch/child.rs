//! Runs in the child until it executes another program. It only makes system calls, because it runs
//! in its parent's memory.

use std::ffi::{c_char, c_int, c_void};

use super::failure::LaunchStage;
use super::{Confinement, LaunchSettings};
use crate::affinity;
use crate::guardian::GroupSlot;
use crate::resource_limit::{set_open_files, set_own};
use crate::signals;

/// Data that parent and child share while the parent is suspended.
pub(super) struct ChildData<'a> {
    pub(super) candidates: *const *const c_char,
    pub(super) arguments: *const *const c_char,
    pub(super) environment: *const *const c_char,
    pub(super) folder: *const c_char,
    pub(super) streams: [c_int; 3],
    pub(super) slot: Option<&'a GroupSlot>,
    pub(super) settings: LaunchSettings<'a>,
    pub(super) parent: libc::pid_t,
    /// The stage at which the child failed, and the error.
    pub(super) failed: Option<(LaunchStage, c_int)>,
}

/// The exit code of a shell's child whose program cannot be executed. Nobody sees it: the parent
/// reads `failed`.
const NOT_EXECUTED: c_int = 127;

/// The child's main function; `shared` is a [`ChildData`].
pub(super) extern "C" fn run(shared: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `ChildData` to which nobody else has access until this process
    // executes or ends.
    let child = unsafe { &mut *shared.cast::<ChildData<'_>>() };
    if let Err(stage) = prepare(child) {
        child.failed = Some((stage, errno()));
    }
    // SAFETY: ends the child without running any code of its parent's.
    unsafe { libc::_exit(NOT_EXECUTED) }
}

/// Returns only on failure.
fn prepare(child: &ChildData<'_>) -> Result<(), LaunchStage> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::setpgid(0, 0) }, LaunchStage::Process)?;
    let LaunchSettings { affinity, nice, open_files, confinement, is_worker, .. } = child.settings;
    if !is_worker {
        // SAFETY: no memory is involved.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), LaunchStage::Process)?;
            // The kernel sends nothing for a parent that is already dead.
            if libc::getppid() != child.parent {
                return Err(LaunchStage::Process);
            }
        }
    }
    if let Some(slot) = child.slot {
        // SAFETY: reads this process's id.
        slot.announce(unsafe { libc::getpid() });
    }
    if let Some(mask) = affinity.filter(|mask| !mask.is_empty()) {
        let set = affinity::set_current(mask);
        set.map_err(|error| failed(LaunchStage::Affinity, error.raw_os_error()))?;
    }
    if let Some(more) = nice.filter(|more| *more != 0) {
        // SAFETY: no memory is involved.
        unsafe {
            let now = libc::getpriority(libc::PRIO_PROCESS, 0);
            let priority = now.saturating_add(more);
            check(libc::setpriority(libc::PRIO_PROCESS, 0, priority), LaunchStage::Nice)?;
        }
    }
    if let Some(soft) = open_files {
        set_open_files(soft).map_err(|it| failed(LaunchStage::Limits, it.raw_os_error()))?;
    }
    // Before the streams move, whose places these files may have.
    enter_groups(&confinement)?;
    if !child.folder.is_null() {
        // SAFETY: a string of the parent, which is suspended.
        check(unsafe { libc::chdir(child.folder) }, LaunchStage::Folder)?;
    }
    for (stream, target) in child.streams.iter().zip(0..) {
        if *stream != target {
            // SAFETY: the descriptor is 3 or above, so it was not overwritten; `dup2` clears
            // close-on-exec.
            check(unsafe { libc::dup2(*stream, target) }, LaunchStage::Streams)?;
        }
    }
    signals::reset_for_program(is_worker);
    if let Some(sandbox) = confinement.sandbox {
        let entered = sandbox.apply();
        entered.map_err(|(_, error)| failed(LaunchStage::Sandbox, error.raw_os_error()))?;
    }
    execute(child);
    Err(LaunchStage::Program)
}

/// Enters the control groups and sets the limits. Nothing here allocates.
fn enter_groups(confinement: &Confinement<'_>) -> Result<(), LaunchStage> {
    for door in confinement.doors {
        let entered = rustix::io::write(door, b"0");
        entered.map_err(|error| failed(LaunchStage::Limits, Some(error.raw_os_error())))?;
    }
    for limit in confinement.limits {
        set_own(*limit).map_err(|it| failed(LaunchStage::Limits, it.raw_os_error()))?;
    }
    Ok(())
}

/// Returns the stage, and keeps the error for the parent.
fn failed(stage: LaunchStage, error: Option<c_int>) -> LaunchStage {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = error.unwrap_or(libc::EIO) };
    stage
}

/// Tries one path after the other, as `execvp` does. Returns only if none could be executed, with
/// the error set.
fn execute(child: &ChildData<'_>) {
    let mut candidate = child.candidates;
    let mut denied = false;
    // SAFETY: the list ends with a null pointer, as do the two that are passed on; the parent that
    // owns them is suspended.
    unsafe {
        while !(*candidate).is_null() {
            libc::execve(*candidate, child.arguments, child.environment);
            match errno() {
                // A later path may be executable; if none is, this is the error to report.
                libc::EACCES => denied = true,
                libc::ENOENT | libc::ENOTDIR => {}
                _ => return,
            }
            candidate = candidate.add(1);
        }
        if denied {
            *libc::__errno_location() = libc::EACCES;
        }
    }
}

fn check(result: c_int, stage: LaunchStage) -> Result<(), LaunchStage> {
    if result == -1 { Err(stage) } else { Ok(()) }
}

fn errno() -> c_int {
    // SAFETY: the location belongs to this thread, whose storage the child shares with its
    // suspended parent.
    unsafe { *libc::__errno_location() }
}
