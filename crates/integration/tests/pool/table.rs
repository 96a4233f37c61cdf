//! Tables in the arguments of initializers and of `preload`, which all workers read in place.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::fs;

use brigade::{Pool, SharedBuf, Start, worker};
use brigade_integration::builder;
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, outcome, wait_for};
use serde::{Deserialize, Serialize};

const LARGE: usize = 8 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Tables {
    name: String,
    first: SharedBuf,
    /// A part of it.
    part: SharedBuf,
    second: SharedBuf,
}

fn tables() -> Tables {
    let first = SharedBuf::from((0..LARGE).map(byte_at).collect::<Vec<u8>>());
    let part = first.slice(1000..2000);
    Tables { name: "tables".to_owned(), first, part, second: SharedBuf::copy_of(b"second") }
}

fn byte_at(position: usize) -> u8 {
    (position % 251).to_le_bytes()[0]
}

fn keep(tables: Tables) -> Tables {
    tables
}

/// Answer of a worker: the file of its table, and how many KiB of it are copies.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    pid: u32,
    file: String,
    own: u64,
}

fn look((): ()) -> Seen {
    let tables = worker::state::<Tables>().expect("the initializer has run");
    check(tables)
}

fn look_at_preloaded((): ()) -> Seen {
    check(worker::preloaded::<Tables>().expect("`preload` has run"))
}

fn check(tables: &Tables) -> Seen {
    assert_eq!(tables.name, "tables");
    assert!((0..LARGE).step_by(97).all(|position| tables.first[position] == byte_at(position)));
    assert_eq!(tables.part.as_ptr(), tables.first[1000..].as_ptr());
    assert_eq!((tables.part.len(), &tables.second[..]), (1000, &b"second"[..]));
    let (file, own) = mapping_of(&tables.first);
    Seen { pid: std::process::id(), file, own }
}

/// Returns the file that holds a buffer, and how many KiB are copies of its pages.
fn mapping_of(buffer: &SharedBuf) -> (String, u64) {
    let address = buffer.as_ptr().addr();
    let maps = fs::read_to_string("/proc/self/smaps").expect("a list");
    let mut lines = maps.lines().skip_while(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16);
        let range = range.and_then(|(from, to)| Some(number(from).ok()?..number(to).ok()?));
        !range.is_some_and(|range| range.contains(&address))
    });
    let mapping: Vec<_> = lines.next().expect("a mapping").split_whitespace().collect();
    assert!(mapping[5].contains("brigade-initializer"), "{mapping:?}");
    let own = lines.find_map(|line| line.strip_prefix("Anonymous:")).expect("a size");
    let own = own.trim().trim_end_matches(" kB").parse().expect("a number");
    (format!("{} {}", mapping[3], mapping[4]), own)
}

/// Checks that all workers of a pool, and one that replaces another, have the same memory.
macro_rules! assert_one_memory {
    ($pool:expr, $look:path) => {
        let pool: Pool = $pool;
        let ask = || -> Vec<Seen> {
            let answers = pool.broadcast($look, ()).expect("tasks");
            answers.into_iter().filter_map(|answer| outcome(answer).ok()).collect()
        };
        let before = ask();
        assert!(before.len() >= 3, "spare workers answer, too: {before:?}");
        outcome(pool.submit(aborts, ()).expect("a task")).expect_err("the worker aborts");
        let is_new = |seen: &Seen| before.iter().all(|it| it.pid != seen.pid);
        let after =
            wait_for("a new worker", BOUND, || Some(ask()).filter(|it| it.iter().any(is_new)));
        for seen in before.iter().chain(&after) {
            assert_eq!(seen.file, before[0].file);
            assert_eq!(seen.own, 0, "no page of it is a copy: {seen:?}");
        }
    };
}

#[test]
fn all_workers_read_one_table_of_the_initializer() {
    for start in [Start::Auto, Start::Exec] {
        let pool = builder(3).start(start).spare_workers(1).initializer(keep, tables());
        assert_one_memory!(pool.build().expect("a pool"), look);
    }
}

#[test]
fn all_workers_read_one_table_of_preload() {
    for start in [Start::Auto, Start::Exec] {
        let pool = builder(3).start(start).preload(keep, tables()).build();
        assert_one_memory!(pool.expect("a pool"), look_at_preloaded);
    }
}

#[test]
fn tasks_return_parts_of_a_table_and_all_of_it() {
    let pool = builder(1).initializer(keep, tables()).build().expect("a pool");
    let part = |(from, to): (usize, usize)| {
        worker::state::<Tables>().map(|tables| tables.first.slice(from..to))
    };
    for (from, to) in [(0, LARGE), (1000, 1010), (LARGE, LARGE)] {
        let handle = pool.submit(part, (from, to)).expect("a task");
        let part = outcome(handle).expect("a value").expect("the initializer has run");
        assert!(
            part.len() == to - from && part.iter().zip(from..).all(|(it, at)| *it == byte_at(at))
        );
    }
}

#[test]
fn a_table_ends_with_its_last_owner() {
    /// Returns the number of mappings of the memory.
    fn mappings((): ()) -> usize {
        let maps = fs::read_to_string("/proc/self/maps").expect("a list");
        maps.lines().filter(|line| line.contains("memfd:brigade-initializer")).count()
    }
    let kept = builder(1).initializer(keep, tables()).build().expect("a pool");
    assert_eq!(outcome(kept.submit(mappings, ()).expect("a task")).expect("a number"), 1);
    let dropped = builder(1).initializer(|tables: Tables| tables.name, tables()).build();
    let dropped = dropped.expect("a pool");
    assert_eq!(outcome(dropped.submit(mappings, ()).expect("a task")).expect("a number"), 0);
}

#[test]
fn a_table_may_be_larger_than_a_message() {
    let pool = builder(1).message_limit(1000).initializer(keep, tables()).build().expect("a pool");
    outcome(pool.submit(look, ()).expect("a task")).expect("a value");
}
