//! The memory that the machine can spare.

use std::fs;

use brigade_sys::memory_limit;

/// Returns the number of bytes that the kernel estimates can be used without swapping and that the
/// limits of control groups leave, or `u64::MAX` if it does not say.
pub(crate) fn available() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse(&text));
    let group = memory_limit::control_groups_leave();
    machine.unwrap_or(u64::MAX).min(group.unwrap_or(u64::MAX))
}

fn parse(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read_from_the_kernels_table() {
        let text = "MemTotal:  100 kB\nMemAvailable:      23 kB\n";
        assert_eq!(parse(text), Some(23 * 1024));
        assert_eq!(parse(""), None);
    }
}
