//! Messages cut off by the death of a worker, in either direction and at any point, affect only its
//! running task.

use std::thread;

use brigade::{Exit, Pool};
use brigade_integration::{pool, worker_died};
use brigade_testkit::faults::stops_itself;
use brigade_testkit::processes::{Signal, hit, hit_child, is_stopped};
use brigade_testkit::{BOUND, Random, Watchdog, outcome, wait_until};

/// Returns bytes that can be checked wherever they were cut; quick, even unoptimized.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    // 251 is prime: the period never aligns with words, fragments or pages.
    let period: Vec<u8> = (0..251).cycle().skip(seed % 251).take(251).collect();
    let mut bytes = period.repeat(length.div_ceil(251));
    bytes.truncate(length);
    bytes
}

fn is_pattern((seed, bytes): (usize, Vec<u8>)) -> usize {
    assert!(bytes == pattern(seed, bytes.len()), "an argument was garbled");
    bytes.len()
}

/// Runs enough short tasks for the pool to expect short ones and to prefetch.
fn believes_in_short_tasks(pool: &Pool) {
    assert_eq!(pool.map(|number: u64| number, 0..500).flatten().count(), 500);
}

#[test]
fn arguments_sent_to_a_killed_worker_reach_its_replacement() {
    let pool = pool(1);
    for step in 0..16 {
        // The worker reads nothing while it is stopped, so that the link fills up: 256 KiB over
        // rings, less over ipc. Each length stops at a different point.
        let length = 700 + 65 * step;
        let _watchdog = Watchdog::new(format!("arguments of {length} bytes"), BOUND);
        believes_in_short_tasks(&pool);
        let pid = pool.worker_pids()[0];
        let stopped = pool.submit(stops_itself, ()).unwrap();
        let behind: Vec<_> = (0..450)
            .map(|seed| pool.submit(is_pattern, (seed, pattern(seed, length))).unwrap())
            .collect();
        wait_until("a stopped worker", BOUND, || is_stopped(pid));
        assert!(hit_child(pid, Signal::KILL));
        assert_eq!(worker_died(outcome(stopped)), (pid, Exit::Signal(9)));
        for handle in behind {
            assert_eq!(outcome(handle).unwrap(), length);
        }
    }
}

#[test]
fn values_of_a_killed_worker_arrive_whole_or_not_at_all() {
    /// Returns a pattern of `length` bytes. The first task of a round has a thread that kills the
    /// process after a while.
    fn answers((seed, length, fuse): (usize, usize, Option<u64>)) -> Vec<u8> {
        if let Some(fuse) = fuse {
            thread::spawn(move || {
                brigade_testkit::faults::spins(fuse);
                hit(std::process::id(), Signal::KILL);
            });
        }
        pattern(seed, length)
    }
    let pool = pool(1);
    let seed = Random::seed_from("BRIGADE_TEST_SEED");
    let mut random = Random::new(seed);
    let mut cut = 0;
    for round in 0..30 {
        believes_in_short_tasks(&pool);
        // In one message and in many fragments. Beyond 16 KiB rings carry the location of a value
        // and not its bytes.
        let most = *random.choose(&[1_000, 16_000, 150_000]);
        let length = usize::try_from(random.within(1..most)).unwrap();
        let fuse = random.within(0..2_000);
        let what = format!("round {round}: {length} bytes, {fuse} µs; BRIGADE_TEST_SEED={seed}");
        let _watchdog = Watchdog::new(&what, BOUND);
        let handles: Vec<_> = (0..100)
            .map(|seed| pool.submit(answers, (seed, length, (seed == 0).then_some(fuse))).unwrap())
            .collect();
        let mut lost = 0;
        for (seed, handle) in handles.into_iter().enumerate() {
            match outcome(handle) {
                Ok(bytes) => assert!(bytes == pattern(seed, length), "{what}: {seed} is garbled"),
                Err(error) => {
                    assert_eq!(worker_died(Err::<(), _>(error)).1, Exit::Signal(9), "{what}");
                    lost += 1;
                }
            }
        }
        assert!(lost <= 1, "{what}: one kill cost {lost} tasks");
        cut += lost;
        // The kill may still come, and must not hit a task that does not expect it.
        let quiet = pool.task(|(): ()| ()).retries(3);
        outcome(quiet.submit(()).unwrap()).unwrap();
        pool.quiesce().unwrap();
    }
    assert!(cut > 0, "no kill hit a task; BRIGADE_TEST_SEED={seed}");
}
