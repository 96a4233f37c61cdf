//! Arguments and values of every size arrive whole, and one that is too large fails alone.

use std::time::Duration;

use brigade::{SubmitErrorKind, TaskErrorKind};
use brigade_integration::{builder, pool};
use brigade_testkit::faults::{echoes, returns_bytes};
use brigade_testkit::{PATIENCE, Watchdog, outcome};

/// Returns bytes that differ between positions, so that no part can be mistaken for another; quick,
/// even unoptimized.
fn bytes(size: usize) -> Vec<u8> {
    // 251 is prime: the pattern does not repeat at page and packet boundaries.
    let pattern: Vec<u8> = (0..251).collect();
    let mut bytes = Vec::with_capacity(size + pattern.len());
    while bytes.len() < size {
        bytes.extend_from_slice(&pattern);
    }
    bytes.truncate(size);
    bytes
}

fn assert_arrives(pool: &brigade::Pool, size: usize) {
    let _watchdog =
        Watchdog::new(format!("{size} bytes there and back"), Duration::from_secs(30 * PATIENCE));
    let sent = bytes(size);
    let received = outcome(pool.submit(echoes, sent.clone()).unwrap()).unwrap();
    // Not `assert_eq`, which would print megabytes.
    assert!(received == sent, "{} of {size} bytes came back, not all the same", received.len());
}

#[test]
fn every_size_arrives_in_both_directions() {
    let pool = pool(1);
    for size in [0, 1, 2, 127, 128, 16_383, 16_384] {
        assert_arrives(&pool, size);
    }
    for size in [1 << 20, (1 << 20) + 1, 3 << 20, 16 << 20, 64 << 20, 100_000_000] {
        assert_arrives(&pool, size);
    }
}

#[test]
fn sizes_around_a_packet_and_its_multiples_arrive() {
    let pool = pool(1);
    for packets in [1, 2, 3] {
        let border = packets * 64 * 1024;
        for size in (border - 100..border + 20).step_by(3) {
            assert_arrives(&pool, size);
        }
    }
}

#[test]
fn text_and_lists_arrive_too() {
    let pool = pool(1);
    let text: String = "Größe ✓ ".repeat(50_000);
    let list: Vec<(u32, Option<String>)> =
        (0..20_000).map(|n| (n, (n % 3 == 0).then(|| n.to_string()))).collect();
    let echo = |both: (String, Vec<(u32, Option<String>)>)| both;
    let received = outcome(pool.submit(echo, (text.clone(), list.clone())).unwrap()).unwrap();
    assert!(received == (text, list));
}

#[test]
fn many_large_arguments_may_be_in_flight_to_one_worker() {
    let pool = pool(1);
    let _watchdog = Watchdog::new("many large arguments", Duration::from_secs(30 * PATIENCE));
    // Enough short tasks for the pool to expect short ones and to prefetch.
    assert_eq!(pool.map(|number: u64| number, 0..500).flatten().count(), 500);
    let handles: Vec<_> = (0..40)
        .map(|_| pool.submit(|bytes: Vec<u8>| bytes.len(), bytes(1 << 20)).unwrap())
        .collect();
    for handle in handles {
        assert_eq!(outcome(handle).unwrap(), 1 << 20);
    }
}

#[test]
fn large_values_of_many_tasks_arrive() {
    let pool = pool(2);
    let expected = returns_bytes(1 << 20);
    for result in pool.map(returns_bytes, std::iter::repeat_n(1 << 20, 30)) {
        assert!(result.unwrap() == expected);
    }
}

const LIMIT: usize = 1 << 20;

/// The most bytes that fit into a message at the limit: the length of a list takes three bytes at
/// this size.
const FITS: usize = LIMIT - 3;

#[test]
fn an_argument_over_the_limit_is_returned() {
    let pool = builder(1).message_limit(LIMIT).build().unwrap();
    let fits = pool.submit(|bytes: Vec<u8>| bytes.len(), bytes(FITS)).unwrap();
    let error = pool.submit(|bytes: Vec<u8>| bytes.len(), bytes(FITS + 1)).unwrap_err();
    match error.kind() {
        SubmitErrorKind::Codec { message } => {
            assert!(message.contains(&LIMIT.to_string()), "{message}");
            assert!(message.contains("SharedBuf"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert!(error.into_argument() == bytes(FITS + 1));
    assert_eq!(outcome(fits).unwrap(), FITS);
}

#[test]
fn a_value_over_the_limit_fails_only_its_task() {
    let pool = builder(1).message_limit(LIMIT).build().unwrap();
    let sizes = [FITS, FITS + 1, 40 << 20, FITS];
    let handles = sizes.map(|size| pool.submit(returns_bytes, size).unwrap());
    for (size, handle) in sizes.into_iter().zip(handles) {
        match outcome(handle) {
            Ok(bytes) => assert!(size <= FITS && bytes.len() == size),
            Err(error) => {
                let TaskErrorKind::Codec { message } = error.kind() else { panic!("{error:?}") };
                assert!(size > FITS && message.contains(&LIMIT.to_string()), "{size}: {message}");
            }
        }
    }
    assert_eq!(pool.worker_restarts(), 0);
}

/// Returns more than two gigabytes of zeros, which have no pages until somebody reads them.
fn nothing(size: usize) -> Vec<u8> {
    vec![0; size]
}

#[test]
fn more_than_two_gigabytes_are_refused_before_the_copy() {
    const HUGE: usize = 2_200_000_000;
    let pool = pool(1);
    let resident = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let line = status.lines().find(|line| line.starts_with("VmHWM")).expect("a line");
        let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok());
        kib.expect("KiB") << 10
    };
    let error = pool.submit(|bytes: Vec<u8>| bytes.len(), nothing(HUGE)).unwrap_err();
    let SubmitErrorKind::Codec { message } = error.kind() else { panic!("{error:?}") };
    assert!(message.contains(&(1 << 30).to_string()), "{message}");
    assert_eq!(error.into_argument().len(), HUGE);
    let error = outcome(pool.submit(nothing, HUGE).unwrap()).unwrap_err();
    let TaskErrorKind::Codec { message } = error.kind() else { panic!("{error:?}") };
    assert!(message.contains(&(1 << 30).to_string()), "{message}");
    for pid in [std::process::id(), pool.worker_pids()[0]] {
        assert!(resident(pid) < HUGE / 4, "process {pid} had {} bytes", resident(pid));
    }
}
