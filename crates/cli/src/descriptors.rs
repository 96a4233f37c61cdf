//! The number of descriptors that outputs waiting to be printed may use, and blocks of input.

use std::fs;

/// The divisor of the limit that gives the share of held outputs, and that of blocks. Running jobs
/// need the rest: each takes a few descriptors.
const PART: usize = 8;
/// Number of descriptors that do not belong to jobs, at most.
const OWN: usize = 24;
/// Holding more files than this makes nothing faster.
const MOST: usize = 256;
/// The limit to assume if the system does not report one.
const USUAL: usize = 1024;

/// Returns the number of files that may be held open.
pub(crate) fn most_held() -> usize {
    most_blocks().min(MOST)
}

/// Returns the number of blocks that may exist, those of running jobs included.
pub(crate) fn most_blocks() -> usize {
    (limit() / PART).max(1)
}

/// Returns the number of jobs that can run at once if each has a pipe for its input and two blocks.
pub(crate) fn most_streams() -> usize {
    (limit().saturating_sub(OWN) / PART).max(1)
}

fn limit() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    soft_limit(&limits).unwrap_or(USUAL)
}

fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_the_first_number() {
        let limits =
            "Limit   Soft Limit   Hard Limit   Units\nMax open files   64   4096   files\n";
        assert_eq!(soft_limit(limits), Some(64));
        assert_eq!(soft_limit(""), None);
    }
}
