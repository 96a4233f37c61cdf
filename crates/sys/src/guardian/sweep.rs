//! Ends processes that have left their group, by a mark in the environment that they were started
//! with.
//!
//! It runs in a forked copy of a process that may have had several threads: no allocation, no lock,
//! no code that panics.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, RawDir, Timespec, open, openat, readlinkat_raw};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};
use rustix::thread::nanosleep;

use crate::process::{environment, has_our_numbers};

/// Maximum length of a mark, its final zero byte included.
pub(super) const MAX_MARK: usize = 64;

/// A process may fork while it is searched for; each pass finds processes that the one before has
/// missed.
const PASSES: usize = 16;

/// Number of successive passes without a find that end the search. One is too few: it misses the
/// child of a process that ended meanwhile if the child's number was reached before.
const ENOUGH: usize = 2;

/// Bytes of an environment that are read at once.
const CHUNK: usize = 8 * 1024;

/// Kills every process with this entry in its environment. `mark` ends with a zero byte, as entries
/// do.
pub(super) fn kill_marked(mark: &[u8]) {
    if mark.is_empty() || !has_our_numbers() {
        return;
    }
    let (mut finds, mut pauses, mut in_vain) = (0, 0, 0);
    while finds < PASSES && pauses < environment::PAUSES && in_vain < ENOUGH {
        let Pass { has_killed, is_unsure } = Pass::run(mark);
        in_vain = if has_killed || is_unsure { 0 } else { in_vain + 1 };
        finds += usize::from(has_killed);
        if is_unsure {
            let tv_nsec = environment::PAUSE(pauses).subsec_nanos().into();
            let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec });
            pauses += 1;
        }
    }
}

#[derive(Default)]
struct Pass {
    has_killed: bool,
    /// `true` if a process was executing a program. It has no environment until the kernel has
    /// mapped the program, and nothing announces that.
    is_unsure: bool,
}

impl Pass {
    fn run(mark: &[u8]) -> Self {
        let mut result = Self::default();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = open(c"/proc", flags, Mode::empty()) else { return result };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut entries = RawDir::new(&folder, &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name();
            let Some(pid) = number(name).filter(|pid| *pid != getpid()) else { continue };
            // Opened before the environment is read, so that exactly this process is killed.
            let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
            match search(&folder, name, mark) {
                Found::Mark => {
                    result.has_killed |= pidfd_send_signal(&pidfd, Signal::KILL).is_ok();
                }
                Found::NoMark => {}
                Found::NoEnvironmentYet => result.is_unsure = true,
            }
        }
        result
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Mark,
    NoMark,
    NoEnvironmentYet,
}

/// Searches for the mark in the environment of a process.
fn search(folder: &OwnedFd, pid: &CStr, mark: &[u8]) -> Found {
    match environment(folder, pid, mark) {
        Some(found) => found,
        // Kernel threads and processes that have ended have no program.
        None if !has_program(folder, pid) => Found::NoMark,
        // The kernel sets the command line at the same time as the environment.
        None if is_empty(folder, pid, b"/cmdline") => Found::NoEnvironmentYet,
        // It is there by now, unless it is empty.
        None => environment(folder, pid, mark).unwrap_or(Found::NoMark),
    }
}

fn number(name: &CStr) -> Option<Pid> {
    let mut number: i32 = 0;
    for byte in name.to_bytes() {
        let digit = char::from(*byte).to_digit(10)?;
        number = number.checked_mul(10)?.checked_add(i32::try_from(digit).ok()?)?;
    }
    Pid::from_raw(number)
}

fn with_path<T>(pid: &CStr, file: &[u8], act: impl FnOnce(&CStr) -> Option<T>) -> Option<T> {
    let mut path = [0_u8; 32];
    for (target, byte) in path.iter_mut().zip(pid.to_bytes().iter().chain(file)) {
        *target = *byte;
    }
    act(CStr::from_bytes_until_nul(&path).ok()?)
}

fn open_file(folder: &OwnedFd, pid: &CStr, file: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    with_path(pid, file, |path| openat(folder, path, flags, Mode::empty()).ok())
}

fn has_program(folder: &OwnedFd, pid: &CStr) -> bool {
    let mut target = [0_u8; 1];
    with_path(pid, b"/exe", |path| readlinkat_raw(folder, path, &mut target).ok()).is_some()
}

fn is_empty(folder: &OwnedFd, pid: &CStr, file: &[u8]) -> bool {
    open_file(folder, pid, file).is_some_and(|file| rustix::io::read(file, &mut [0_u8; 1]) == Ok(0))
}

/// Returns `None` if the environment is empty, and that there is no mark if it cannot be read.
fn environment(folder: &OwnedFd, pid: &CStr, mark: &[u8]) -> Option<Found> {
    let Some(file) = open_file(folder, pid, b"/environ") else { return Some(Found::NoMark) };
    let mut chunk = [0_u8; CHUNK + MAX_MARK];
    // The end of the last chunk, in which a mark may have begun.
    let mut kept = 0;
    let mut is_first = true;
    while let Some(room) = chunk.get_mut(kept..) {
        match rustix::io::read(&file, room) {
            Ok(0) if is_first => return None,
            Ok(count @ 1..) => {
                let filled = kept + count;
                let text = chunk.get(..filled)?;
                if text.windows(mark.len()).any(|window| window == mark) {
                    return Some(Found::Mark);
                }
                kept = filled.min(mark.len().saturating_sub(1));
                chunk.copy_within(filled - kept..filled, 0);
                is_first = false;
            }
            Ok(_) | Err(_) => break,
        }
    }
    Some(Found::NoMark)
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::{Path, PathBuf};
    use std::process::{Child, Command};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;

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

    /// An executable that loops forever and takes the kernel long to map: it has as many segments
    /// as are allowed, and the kernel zeroes the second half of each.
    fn slow_executable() -> Vec<u8> {
        const SEGMENTS: u16 = 1_170;
        const PAGE: u64 = 1 << 16;
        const BASE: u64 = 1 << 28;
        let (machine, code): (u16, &[u8]) = if cfg!(target_arch = "x86_64") {
            (62, &[0xeb, 0xfe])
        } else {
            (183, &[0, 0, 0, 0x14])
        };
        let code_at = 64 + 56 * u64::from(SEGMENTS);
        let length = code_at + code.len() as u64;
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        file.extend([2_u16, machine].iter().flat_map(|it| it.to_le_bytes()));
        file.extend(1_u32.to_le_bytes());
        file.extend([BASE + code_at, 64, 0].iter().flat_map(|it| it.to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        file.extend([64, 56, SEGMENTS, 0, 0, 0].iter().flat_map(|it| it.to_le_bytes()));
        for segment in 0..u64::from(SEGMENTS) {
            // The first one is readable and executable, the others are readable and writable.
            let (flags, in_file) = if segment == 0 { (5_u32, length) } else { (6, 1) };
            let address = BASE + segment * 4 * PAGE;
            file.extend([1, flags].iter().flat_map(|it| it.to_le_bytes()));
            let in_memory = if segment == 0 { length } else { 2 * PAGE };
            file.extend(
                [0, address, address, in_file, in_memory, PAGE]
                    .iter()
                    .flat_map(|it: &u64| it.to_le_bytes()),
            );
        }
        file.extend(code);
        file
    }

    fn slow_program(folder: &Path) -> PathBuf {
        let path = folder.join("slow");
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o755).open(&path).expect("new");
        file.write_all(&slow_executable()).expect("room");
        path
    }

    /// Waits up to ten seconds for the end of a process, and leaves it to be reaped.
    fn await_end(child: &Child) {
        let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("ours");
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        let bound = Timespec { tv_sec: 10, tv_nsec: 0 };
        assert_eq!(poll(&mut fds, Some(&bound)), Ok(1), "it has not ended");
    }

    struct Killed(Child);

    impl Killed {
        /// Returns once the kernel begins to map the program; `None` if it allows only segments
        /// whose descriptions fit in a page, as Linux 6.12 does.
        #[expect(clippy::print_stderr, reason = "a test says what it leaves out")]
        fn start(command: &mut Command) -> Option<Self> {
            // Children of other tests have the descriptor with which the file was written, until
            // they execute their programs.
            let spawned = (0..10_000).find_map(|_| match command.spawn() {
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 });
                    None
                }
                spawned => Some(spawned),
            });
            match spawned.expect("a program that nobody writes") {
                Ok(child) => Some(Self(child)),
                Err(error) if error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error()) => {
                    eprintln!("left out: the kernel refuses a program with 1,170 segments");
                    None
                }
                Err(error) => panic!("a program: {error}"),
            }
        }
    }

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_process_that_is_just_executing_a_program_is_killed_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = slow_program(folder.path());
        let value = format!("executing-{}", getpid().as_raw_nonzero());
        for _ in 0..20 {
            let mut command = Command::new(&path);
            let Some(mut process) = Killed::start(command.env("SWEEP_TEST", &value)) else {
                return;
            };
            kill_marked(format!("SWEEP_TEST={value}\0").as_bytes());
            await_end(&process.0);
            let status = process.0.try_wait().expect("ours");
            assert!(status.is_some_and(|status| status.code().is_none()), "it is still there");
        }
    }

    #[test]
    fn the_environment_of_an_executing_process_is_awaited() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = slow_program(folder.path());
        for _ in 0..20 {
            let mut command = Command::new(&path);
            let Some(process) = Killed::start(command.env("ENVIRONMENT_TEST", "1")) else { return };
            let environment = crate::process::environment_of(process.0.id());
            assert!(environment.windows(19).any(|it| it == b"ENVIRONMENT_TEST=1\0"));
        }
    }

    #[test]
    fn dead_processes_and_those_without_environment_are_skipped() {
        let folder = open(c"/proc", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let folder = folder.expect("a mounted /proc");
        let found = |child: &Child| {
            let pid = std::ffi::CString::new(child.id().to_string()).expect("digits");
            search(&folder, &pid, b"SWEEP_TEST=1\0")
        };
        let mut sleeper = Command::new("sleep");
        let sleeper = Killed(sleeper.arg("60").env_clear().spawn().expect("sleep"));
        let mut ended = Command::new("true").spawn().expect("true");
        let is_known = |child: &Child| {
            (0..10_000).any(|_| {
                let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 });
                found(child) == Found::NoMark
            })
        };
        assert!(is_known(&sleeper.0), "it has a command line");
        await_end(&ended);
        assert_eq!(found(&ended), Found::NoMark, "it has no program any more");
        ended.wait().expect("ours");
    }
}
