//! Finding processes, and hitting them.
//!
//! All of it reads `/proc`, which tells about a process as long as it is not reaped. Signals are sent by pidfd after
//! a look at the process, so that a number that the system has given to another process hits nobody.

use std::fs;
use std::os::fd::AsRawFd;

pub use rustix::process::Signal;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
};

/// Forbids this process descriptors from this number on; those that it has stay open.
///
/// # Panics
/// When the hard limit is lower.
pub fn forbid_descriptors_from(limit: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).expect("a limit");
}

/// Living processes that were started with the variable `name` set to `value`: their pids.
///
/// The environment is the one at the start of the process, whatever it did to it since.
pub fn with_variable(name: &str, value: &str) -> Vec<u32> {
    let wanted = format!("{name}={value}").into_bytes();
    all()
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
        })
        .filter(|pid| is_alive(*pid))
        .collect()
}

/// The children of this process, those that are dead and not reaped included.
pub fn children() -> Vec<u32> {
    children_of(std::process::id())
}

/// The children of a process, those that are dead and not reaped included.
pub fn children_of(parent: u32) -> Vec<u32> {
    all().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// The parent of a process, if there is such a process.
pub fn parent_of(pid: u32) -> Option<u32> {
    status_field(pid, 1)?.parse().ok()
}

/// The process group of a process, if there is such a process.
pub fn group_of(pid: u32) -> Option<u32> {
    status_field(pid, 2)?.parse().ok()
}

/// Whether the process exists and is not dead.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// Whether the process is stopped by a signal.
pub fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// Whether a thread of this process sleeps, that is, waits for something.
pub fn thread_sleeps(thread: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    field(&text, 0).is_some_and(|state| state == "S")
}

/// Bytes of memory that this process has resident.
///
/// # Panics
/// When the system does not tell.
pub fn resident_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process may look at itself");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    let kibibytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kibibytes.expect("a number of KiB") << 10
}

/// The kernel's number for the thread that calls.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Limits the address space of this process and of what it starts later; `None` is the most that it may have.
///
/// # Panics
/// When it may not have so much.
pub fn limit_address_space(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::As).maximum;
    let current = bytes.or(maximum);
    setrlimit(Resource::As, Rlimit { current, maximum }).expect("a limit");
}

/// Leaves this process, and what it starts later, so many descriptors more than it has.
///
/// # Panics
/// When none is left before.
pub fn limit_descriptors(more: u64) {
    let free = fs::File::open("/dev/null").expect("a descriptor").as_raw_fd();
    let limit = u64::try_from(free).expect("not negative") + more;
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).expect("a limit");
}

/// Sends a signal to a child of this process; false when there is no such child (any more).
pub fn hit_child(pid: u32, signal: Signal) -> bool {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(descriptor) = pidfd_open(target, PidfdFlags::empty()) else { return false };
    // The descriptor was opened before this look: if the look finds our child, the descriptor is our child's.
    let ours = parent_of(pid) == Some(std::process::id()) && is_alive(pid);
    ours && pidfd_send_signal(descriptor, signal).is_ok()
}

/// Sends a signal to any process; for helpers of a test that are known to be there.
pub fn hit(pid: u32, signal: Signal) {
    if let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // Gone already is as good.
        let _ = rustix::process::kill_process(target, signal);
    }
}

/// Sends a signal to a process group whose leader was not reaped yet, as a terminal does to its foreground group.
pub fn hit_group(leader: u32, signal: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // Gone already is as good.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
}

fn state(pid: u32) -> Option<char> {
    status_field(pid, 0)?.chars().next()
}

fn status_field(pid: u32, index: usize) -> Option<String> {
    field(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, index).map(str::to_owned)
}

/// A field of a `stat` file, counted from the state.
fn field(text: &str, index: usize) -> Option<&str> {
    // The name stands in brackets before it and may contain anything, brackets too.
    text.rsplit_once(')')?.1.split_whitespace().nth(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_found_by_its_parent_and_by_its_environment() {
        let mut child =
            Command::new("sleep").arg("60").env("BRIGADE_TESTKIT_COOKIE", "found").spawn().unwrap();
        assert!(children().contains(&child.id()));
        crate::wait_until("the child in its own program", crate::BOUND, || {
            with_variable("BRIGADE_TESTKIT_COOKIE", "found") == [child.id()]
        });
        assert!(hit_child(child.id(), Signal::KILL));
        crate::wait_until("the child's death", crate::BOUND, || !is_alive(child.id()));
        assert!(children().contains(&child.id()), "a dead child counts until it is reaped");
        assert!(!hit_child(child.id(), Signal::KILL));
        child.wait().unwrap();
        assert!(!children().contains(&child.id()));
    }
}
