//! Ends processes that have left their group, by a mark in the environment that they were started
//! with.
//!
//! It runs in a forked copy of a process that may have had several threads: no allocation, no lock,
//! no code that panics.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir, open, openat};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// Maximum length of a mark, its final zero byte included.
pub(super) const LONGEST_MARK: usize = 64;

/// A process may fork while it is searched for; each pass finds processes that the one before has
/// missed.
const PASSES: usize = 16;

/// Number of successive passes without a find that end the search. One is too few: while a process
/// executes a program, its environment is empty for a moment.
const ENOUGH: usize = 2;

/// Bytes of an environment that are read at once.
const CHUNK: usize = 8 * 1024;

/// Kills every process with this entry in its environment. `mark` ends with a zero byte, as entries
/// do.
pub(super) fn kill_marked(mark: &[u8]) {
    if mark.is_empty() {
        return;
    }
    let mut in_vain = 0;
    for _ in 0..PASSES {
        in_vain = if pass(mark) { 0 } else { in_vain + 1 };
        if in_vain == ENOUGH {
            return;
        }
    }
}

/// Returns `true` if anything was killed.
fn pass(mark: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = open(c"/proc", flags, Mode::empty()) else { return false };
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(&folder, &mut buffer);
    let mut has_killed = false;
    while let Some(Ok(entry)) = entries.next() {
        let Some(pid) = number(entry.file_name()).filter(|pid| *pid != getpid()) else { continue };
        // Opened before the environment is read, so that exactly this process is killed.
        let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        if environment(&folder, entry.file_name()).is_some_and(|file| contains(&file, mark)) {
            has_killed |= pidfd_send_signal(&pidfd, Signal::KILL).is_ok();
        }
    }
    has_killed
}

fn number(name: &CStr) -> Option<Pid> {
    let mut number: i32 = 0;
    for byte in name.to_bytes() {
        let digit = char::from(*byte).to_digit(10)?;
        number = number.checked_mul(10)?.checked_add(i32::try_from(digit).ok()?)?;
    }
    Pid::from_raw(number)
}

fn environment(folder: &OwnedFd, pid: &CStr) -> Option<OwnedFd> {
    let mut path = [0_u8; 32];
    let parts = pid.to_bytes().iter().chain(b"/environ");
    for (target, byte) in path.iter_mut().zip(parts) {
        *target = *byte;
    }
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    openat(folder, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
}

fn contains(file: &OwnedFd, mark: &[u8]) -> bool {
    let mut chunk = [0_u8; CHUNK + LONGEST_MARK];
    // The end of the last chunk, in which a mark may have begun.
    let mut kept = 0;
    while let Some(room) = chunk.get_mut(kept..) {
        let Ok(count @ 1..) = rustix::io::read(file, room) else { return false };
        let filled = kept + count;
        let Some(text) = chunk.get(..filled) else { return false };
        if text.windows(mark.len()).any(|window| window == mark) {
            return true;
        }
        kept = filled.min(mark.len().saturating_sub(1));
        chunk.copy_within(filled - kept..filled, 0);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_processes_with_the_mark_are_killed() {
        let value = format!("sweep-{}", getpid().as_raw_nonzero());
        let sleeper = |value: &str| {
            let mut command = Command::new("sleep");
            // The mark may lie anywhere in a large environment.
            command.arg("60").env("AAA", "x".repeat(3 * CHUNK)).env("SWEEP_TEST", value);
            command.spawn().expect("sleep")
        };
        let (mut marked, mut other) = (sleeper(&value), sleeper(&format!("{value}0")));
        kill_marked(format!("SWEEP_TEST={value}\0").as_bytes());
        assert_eq!(marked.wait().expect("ours").code(), None, "a signal has ended it");
        assert_eq!(other.try_wait().expect("ours"), None, "it has another mark");
        other.kill().expect("ours");
        other.wait().expect("ours");
    }
}
