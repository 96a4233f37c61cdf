//! Memory that a worker shares with its host, over any link.

use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use brigade_testkit::Random;

/// Bytes at the beginning of a mapping that are scribbled over: an arena is sparse, and its used
/// part lies there.
const REACH: u64 = 2 << 20;

/// Writes garbage at random locations.
pub(super) fn scribble_anywhere(random: &mut Random) {
    let places: Vec<_> = mappings("rw-s").collect();
    for _ in 0..random.within(1..100) {
        if places.is_empty() {
            return;
        }
        let place = random.choose(&places).clone();
        let reach = (place.end - place.start).min(*random.choose(&[256, 8192, REACH]));
        let at = place.start + random.within(0..reach) / 8 * 8;
        // Every other time a small number, which the host is more likely to believe.
        let word = if random.chance(50) { random.number() } else { random.within(0..100) };
        let _ = memory().write_all_at(&word.to_le_bytes(), at);
    }
}

/// Scribbles over the table of task states, which lies at the beginning of the segment, over any
/// link.
pub(super) fn scribble_over_the_states(random: &mut Random) {
    for place in mappings_named("rw-s", "/memfd:brigade ") {
        for at in place.step_by(8).take(512) {
            if random.chance(70) {
                let _ = memory().write_all_at(&random.number().to_le_bytes(), at);
            }
        }
    }
}

/// Tries to write to memory that the worker can only read.
///
/// # Panics
/// Panics if that succeeds.
pub(super) fn fail_to_scribble(random: &mut Random) {
    for place in mappings("r--s") {
        let reach = (place.end - place.start).min(REACH);
        let at = place.start + random.within(0..reach) / 8 * 8;
        let written = memory().write_all_at(&random.number().to_le_bytes(), at);
        assert!(written.is_err(), "{WRITABLE}");
    }
}

/// A message that no task must ever report.
pub(super) const WRITABLE: &str = "a worker can write to memory that all workers read";

fn memory() -> File {
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem");
    memory.expect("its own memory")
}

fn mappings(rights: &'static str) -> impl Iterator<Item = Range<u64>> {
    mappings_named(rights, "/memfd:brigade")
}

fn mappings_named(rights: &str, name: &str) -> impl Iterator<Item = Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let found: Vec<_> = maps
        .lines()
        .filter(|line| line.contains(rights) && line.contains(name))
        .filter_map(|line| {
            let (begin, end) = line.split_once(' ')?.0.split_once('-')?;
            let address = |text| u64::from_str_radix(text, 16).ok();
            Some(address(begin)?..address(end)?)
        })
        .collect();
    found.into_iter()
}
