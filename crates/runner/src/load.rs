//! The load of the machine.

use std::fs;

/// Returns the number of threads that run or wait for a processor, without the one that asks, or 0
/// if the kernel does not say.
///
/// Averages follow too slowly: by the time they show a job, many more have started.
pub(crate) fn runnable() -> u64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    parse(&text).unwrap_or(0).saturating_sub(1)
}

fn parse(text: &str) -> Option<u64> {
    let (runnable, _) = text.split_whitespace().nth(3)?.split_once('/')?;
    runnable.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runnable_threads_are_read_from_the_kernels_line() {
        assert_eq!(parse("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!(parse("0.20 0.18"), None);
    }
}
