//! A flood of output, and the memory of the whole process meanwhile.

use std::io::{Write, stdout};
use std::time::{Duration, Instant};

use brigade::Stdio;
use brigade_integration::builder;
use brigade_testkit::{BOUND, Watchdog, outcome};

/// Prints 100 MB in lines of 10 kB. Returns the longest time that one line took.
fn floods((): ()) -> Duration {
    let line = [&[b'x'; 9_999][..], b"\n"].concat();
    let mut out = stdout().lock();
    let mut longest = Duration::ZERO;
    for _ in 0..10_000 {
        let begin = Instant::now();
        out.write_all(&line).unwrap();
        longest = longest.max(begin.elapsed());
    }
    longest
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn a_flood_of_output_delays_no_worker_and_fills_no_memory() {
    let _watchdog = Watchdog::new("floods of 100 MB", 3 * BOUND);
    for stdio in [Stdio::Capture, Stdio::Null] {
        let pool = builder(1).name("flood").stdio(stdio).build().unwrap();
        let before = resident_bytes();
        let longest = outcome(pool.submit(floods, ()).unwrap()).unwrap();
        assert!(longest < BOUND / 4, "{stdio:?}: a line took {longest:?}");
        let more = resident_bytes().saturating_sub(before);
        assert!(more < 64 << 20, "{stdio:?}: {more} bytes more at the peak");
    }
}
