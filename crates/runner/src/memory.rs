//! The memory that the machine can spare, and that this process has had.

use std::fs;

use brigade_sys::memory::peak;
use brigade_sys::memory_limit;

/// Returns the number of bytes that the kernel estimates can be used without swapping and that the
/// limits of control groups leave, or `u64::MAX` if it does not say.
pub(crate) fn available() -> u64 {
    let machine = bytes("/proc/meminfo", "MemAvailable:");
    let group = memory_limit::control_groups_leave();
    machine.unwrap_or(u64::MAX).min(group.unwrap_or(u64::MAX))
}

/// The largest resident memory that this process has had.
///
/// The kernel's count goes on over `exec`: a program that a large process has started by `vfork`
/// begins with the size of that.
#[derive(Debug)]
pub(crate) struct OwnPeak {
    /// The count at first, if it is another process's.
    inherited: u64,
}

impl OwnPeak {
    pub(crate) fn new() -> Self {
        let counted = peak();
        let is_own = high_water().is_none_or(|own| own >= counted);
        Self { inherited: if is_own { 0 } else { counted } }
    }

    /// Returns the bytes up to now.
    pub(crate) fn bytes(&self) -> u64 {
        let counted = peak();
        // Most processes count their own, which takes one short system call.
        if counted > self.inherited { counted } else { high_water().unwrap_or(counted) }
    }
}

/// Returns the largest resident memory since this process's last `exec`.
fn high_water() -> Option<u64> {
    bytes("/proc/self/status", "VmHWM:")
}

/// Returns the bytes in a line of a file of `/proc`; `None` if there is no such line.
fn bytes(path: &str, name: &str) -> Option<u64> {
    parse(&fs::read_to_string(path).ok()?, name)
}

fn parse(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_the_kernels_table() {
        let text = "MemTotal:  100 kB\nMemAvailable:      23 kB\n";
        assert_eq!(parse(text, "MemAvailable:"), Some(23 * 1024));
        assert_eq!(parse("", "MemAvailable:"), None);
    }
}
