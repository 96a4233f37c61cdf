//! Large payloads lie in shared memory: they arrive whole, survive their worker, and their memory
//! is reused.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::fs;
use std::time::Duration;

use brigade::Pool;
use brigade_integration::{builder, pool};
use brigade_testkit::{BOUND, outcome, wait_until};

const LARGE: usize = 3 << 20;

fn pattern(seed: u64) -> Vec<u8> {
    (seed..).flat_map(|number| (number * 0x9e37_79b9).to_le_bytes()).take(LARGE).collect()
}

fn crash(_: u32) {
    std::process::abort();
}

fn text(length: usize) -> String {
    "é".repeat(length)
}

#[test]
fn large_values_wait_to_be_taken_and_outlive_their_worker() {
    let pool = pool(2);
    let handles: Vec<_> = (0..8).map(|seed| pool.submit(pattern, seed).unwrap()).collect();
    for handle in &handles {
        wait_until("a result", Duration::from_secs(30), || handle.is_done());
    }
    for number in 0..4 {
        assert!(outcome(pool.submit(crash, number).unwrap()).is_err());
    }
    for (seed, handle) in (0..).zip(handles) {
        assert!(outcome(handle).unwrap() == pattern(seed), "result {seed} has changed");
    }
}

#[test]
fn a_retried_task_gets_its_large_argument_again() {
    fn dies_at_first(argument: Vec<u8>) -> usize {
        if brigade_integration::attempt() < 3 {
            std::process::abort();
        }
        usize::from(argument == pattern(7)) * argument.len()
    }
    let pool = pool(1);
    let handle = pool.task(dies_at_first).retries(2).submit(pattern(7)).unwrap();
    assert_eq!(outcome(handle).unwrap(), LARGE);
    let items = (0..3).map(|_| pattern(7));
    let lengths: Vec<usize> = pool.map(dies_at_first, items).retries(2).flatten().collect();
    assert_eq!(lengths, [LARGE; 3]);
}

#[test]
fn large_and_small_items_of_a_map_arrive_in_order() {
    let pool = pool(2);
    for chunk in [1, 5] {
        let lengths = (0..40).map(|number| if number % 3 == 0 { 40_000 } else { number });
        let results = pool.map(text, lengths.clone()).chunk(chunk);
        for (result, length) in results.zip(lengths.clone()) {
            assert!(result.unwrap() == text(length));
        }
        let back = pool.map(|text: String| text.len(), lengths.clone().map(text)).chunk(chunk);
        assert!(back.map(Result::unwrap).eq(lengths.map(|length| 2 * length)));
    }
}

#[test]
fn values_other_than_bytes_use_arenas_too() {
    let pool = pool(1);
    let numbers: Vec<(u64, f64)> =
        (0..100_000_u32).map(|n| (u64::from(n), 1.0 / f64::from(n))).collect();
    let back = outcome(pool.submit(|numbers: Vec<(u64, f64)>| numbers, numbers.clone()).unwrap());
    assert!(back.unwrap() == numbers);
}

/// Returns the used shared memory of this process and its workers, in KiB.
fn shared_memory(pool: &Pool) -> u64 {
    let mut pids = pool.worker_pids();
    pids.push(std::process::id());
    pids.iter()
        .map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
            let line = status.lines().find(|line| line.starts_with("RssShmem")).expect("a line");
            line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("KiB")
        })
        .sum()
}

#[test]
fn memory_is_reused_and_the_surplus_returned() {
    let pool = builder(1).buffer_budget(128 << 20).build().unwrap();
    let echo = |bytes: Vec<u8>| bytes;
    let round = || {
        // 100 at a time are 300 MiB each way, which is more than the arenas keep.
        let handles: Vec<_> =
            (0..100).map(|seed| pool.submit(echo, vec![seed; LARGE]).unwrap()).collect();
        for (seed, handle) in (0..).zip(handles) {
            assert!(outcome(handle).unwrap() == vec![seed; LARGE]);
        }
    };
    // Two arenas of 64 MiB are kept, each counted in both processes, plus some memory for the
    // rings.
    let bound = 300 << 10;
    // A thread of the pool frees large memory a moment after the outcome is there.
    let goes_back =
        || wait_until("memory beyond the bound to go back", BOUND, || shared_memory(&pool) < bound);
    round();
    goes_back();
    round();
    round();
    goes_back();
}
