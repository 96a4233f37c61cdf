//! Finds processes and sends signals to them.
//!
//! Processes are found through `/proc`, which describes a process until it is reaped. Signals to
//! children are sent by pidfd after a check of the process, so that a recycled pid hits nobody.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

pub use rustix::process::Signal;
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, pidfd_send_signal, setrlimit,
};

/// Forbids this process to open descriptors with numbers from `limit` on. Open ones stay open.
///
/// # Panics
/// Panics if the hard limit is lower.
pub fn forbid_descriptors_from(limit: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).expect("a limit");
}

/// Returns the children of this process, including those that are dead but not reaped.
pub fn children() -> Vec<u32> {
    children_of(std::process::id())
}

/// Returns the children of a process, including those that are dead but not reaped.
pub fn children_of(parent: u32) -> Vec<u32> {
    all().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Returns the parent of a process, if the process exists.
pub fn parent_of(pid: u32) -> Option<u32> {
    status_field(pid, 1)?.parse().ok()
}

/// Returns the process group of a process, if the process exists.
pub fn group_of(pid: u32) -> Option<u32> {
    status_field(pid, 2)?.parse().ok()
}

/// Returns `true` if the process exists and is not dead.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// Returns `true` if the process is stopped by a signal.
pub fn is_stopped(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// Returns `true` if the main thread of a process waits for something.
pub fn sleeps(pid: u32) -> bool {
    state(pid) == Some('S')
}

/// Returns `true` if a thread of this process sleeps, that is, waits for something.
pub fn thread_sleeps(thread: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    field(&text, 0).is_some_and(|state| state == "S")
}

/// Returns `true` if these processes and all their descendants sleep: until somebody else wakes one
/// of them, or a time passes, nothing happens there.
pub fn are_at_rest(roots: &[u32]) -> bool {
    // Two equal looks mean that all slept at the moment between them.
    let threads = threads(roots);
    threads.iter().all(|(_, state, _)| state == "S") && self::threads(roots) == threads
}

/// Returns the threads of processes and of all their descendants, each with its state and the
/// number of times that it gave up or lost its processor.
fn threads(roots: &[u32]) -> Vec<(PathBuf, String, String)> {
    let parents: Vec<_> = all().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut family = roots.to_vec();
    let mut next = 0;
    while let Some(&parent) = family.get(next) {
        family.extend(parents.iter().filter(|(_, other)| *other == parent).map(|(pid, _)| pid));
        next += 1;
    }
    let tasks = family.iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok());
    tasks.flatten().flatten().map(|entry| thread(entry.path())).collect()
}

fn thread(folder: PathBuf) -> (PathBuf, String, String) {
    let read = |name| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let state = field(&read("stat"), 0).unwrap_or_default().to_owned();
    let status = read("status");
    let switches = status.find("voluntary_ctxt").map_or("", |start| &status[start..]);
    (folder, state, switches.to_owned())
}

/// Returns the resident memory of this process in bytes.
///
/// # Panics
/// Panics if `/proc` does not report it.
pub fn resident_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a process may look at itself");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("its memory");
    let kibibytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    kibibytes.expect("a number of KiB") << 10
}

/// Returns the kernel's id of the calling thread.
pub fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Limits the address space of this process and of processes it starts later; `None` lifts the
/// limit to the hard one.
///
/// # Panics
/// Panics if `bytes` exceeds the hard limit.
pub fn limit_address_space(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::As).maximum;
    let current = bytes.or(maximum);
    setrlimit(Resource::As, Rlimit { current, maximum }).expect("a limit");
}

/// Limits this process, and processes it starts later, to `more` descriptors beyond those it has.
///
/// # Panics
/// Panics if it cannot open even one now.
pub fn limit_descriptors(more: u64) {
    // The free ones need not follow each other: each is the lowest that is free.
    let free = (0..=more).map(|_| fs::File::open("/dev/null").expect("a descriptor"));
    let free: Vec<_> = free.collect();
    let last = free.last().expect("at least one").as_raw_fd();
    let limit = u64::try_from(last).expect("not negative");
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).expect("a limit");
}

/// Sends a signal to a child of this process. Returns `false` if there is no such child (any more).
pub fn hit_child(pid: u32, signal: Signal) -> bool {
    let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let Ok(descriptor) = pidfd_open(target, PidfdFlags::empty()) else { return false };
    // The descriptor was opened before this check: if the check finds our child, the descriptor is
    // our child's.
    let ours = parent_of(pid) == Some(std::process::id()) && is_alive(pid);
    ours && pidfd_send_signal(descriptor, signal).is_ok()
}

/// Sends a signal to any process; for helper processes that are known to exist.
pub fn hit(pid: u32, signal: Signal) {
    if let Some(target) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // A process that has already ended is fine.
        let _ = rustix::process::kill_process(target, signal);
    }
}

/// Sends a signal to a process group whose leader has not been reaped yet, as a terminal does to
/// its foreground group.
pub fn hit_group(leader: u32, signal: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        // A group that has already ended is fine.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Returns the ids of all processes, including those that are dead but not reaped.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok())
}

fn state(pid: u32) -> Option<char> {
    status_field(pid, 0)?.chars().next()
}

fn status_field(pid: u32, index: usize) -> Option<String> {
    field(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, index).map(str::to_owned)
}

/// Returns a field of a `stat` file, counted from the state.
fn field(text: &str, index: usize) -> Option<&str> {
    // The name stands in parentheses before it and may contain anything, including parentheses.
    text.rsplit_once(')')?.1.split_whitespace().nth(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_a_descendant_keeps_busy_is_not_at_rest() {
        let mut shell = Command::new("sh");
        let mut shell = shell.args(["-c", "(while :; do :; done) & wait"]).spawn().unwrap();
        crate::wait_until("a busy child", crate::BOUND, || !children_of(shell.id()).is_empty());
        let busy = children_of(shell.id())[0];
        assert!((0..100).all(|_| !are_at_rest(&[shell.id()])));
        hit(busy, Signal::STOP);
        crate::wait_until("the stop", crate::BOUND, || is_stopped(busy));
        assert!(!are_at_rest(&[shell.id()]), "one that is stopped may go on");
        hit(busy, Signal::KILL);
        shell.wait().unwrap();
        let mut asleep = Command::new("sleep").arg("600").spawn().unwrap();
        crate::wait_until("rest", crate::BOUND, || are_at_rest(&[asleep.id()]));
        asleep.kill().unwrap();
        asleep.wait().unwrap();
    }

    #[test]
    fn a_child_is_found_by_its_parent_until_it_is_reaped() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children().contains(&child.id()));
        assert!(hit_child(child.id(), Signal::KILL));
        crate::wait_until("the child's death", crate::BOUND, || !is_alive(child.id()));
        assert!(children().contains(&child.id()), "a dead child counts until it is reaped");
        assert!(!hit_child(child.id(), Signal::KILL));
        child.wait().unwrap();
        assert!(!children().contains(&child.id()));
    }
}
