//! A report takes little memory, whatever a worker has written.

use brigade_crash::{CrashReport, Files, MAX_FRAMES};
use brigade_sys::crash::Snapshot;
use brigade_testkit_core::Random;
use brigade_testkit_sys::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// Bytes that all allocations for a report may take together, those of its text included.
const MAX: u64 = 1 << 20;

/// Returns a record of the largest size with random content, among it addresses that lead on:
/// chains of frames, and mappings without a file.
fn record(random: &mut Random) -> Snapshot {
    let stack_start = random.number() & !7;
    let address = |random: &mut Random| match random.within(0..4) {
        0 => random.number(),
        1 => stack_start.wrapping_add(random.within(0..1 << 16)),
        2 => 0x1000 + random.within(0..0x1000),
        _ => random.within(0..1 << 20),
    };
    let words = (0..8192).flat_map(|_| address(random).to_le_bytes()).collect();
    let mut maps = Vec::new();
    while maps.len() < 15 << 10 {
        let start = address(random);
        let end = start.wrapping_add(random.within(0..1 << 16));
        let path = ["", "[vdso]", "/dev/zero", "/nowhere", "/proc/self/maps"];
        let path = random.choose(&path);
        maps.extend(format!("{start:x}-{end:x} r-xp 0 00:00 {} {path}\n", start % 9).bytes());
    }
    let signal = *random.choose(&[4, 5, 6, 7, 8, 11, 31]);
    Snapshot {
        signal,
        last_signal: signal,
        code: i32::try_from(random.within(0..130)).unwrap_or(0),
        address: address(random),
        thread_name: "\u{1b}".repeat(16),
        message: "\n".repeat(1024),
        registers: (0..34).map(|_| address(random)).collect(),
        stack_start,
        stack: words,
        maps,
        is_complete: true,
        ..Snapshot::default()
    }
}

#[test]
fn a_report_of_anything_takes_less_than_a_megabyte() {
    let mut random = Random::new(7);
    // Reads the mappings of this process once.
    let _ =
        CrashReport::new(record(&mut random), Files::OfWorker).map(|report| format!("{report:#}"));
    for round in 0..500 {
        let record = record(&mut random);
        let mut frames = 0;
        let taken = ALLOCATOR.count(|| {
            let report = CrashReport::new(record, Files::OfWorker).expect("a signal of a crash");
            let text = format!("{report:#}");
            assert!(text.lines().count() <= MAX_FRAMES + 8);
            frames = report.stack().map_or(0, |stack| stack.frames().len());
        });
        assert!(taken.bytes <= MAX && frames <= MAX_FRAMES, "{round}: {taken:?}, {frames} frames");
    }
}
