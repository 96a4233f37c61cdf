//! Messages that are cut off by the death of a worker, in either direction and at any place, are the business of its running
//! task only.

use std::thread;

use brigade::{Exit, Pool};
use brigade_integration::{pool, worker_died};
use brigade_testkit::faults::stops_itself;
use brigade_testkit::processes::{Signal, hit, hit_child, is_stopped};
use brigade_testkit::{BOUND, Random, Watchdog, outcome, wait_until};

brigade::init_for_tests!();

/// What can be checked wherever it was cut; quick, even unoptimised.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    // 251 is prime: the period does not fall into step with words, pieces and pages.
    let period: Vec<u8> = (0..251).cycle().skip(seed % 251).take(251).collect();
    let mut bytes = period.repeat(length.div_ceil(251));
    bytes.truncate(length);
    bytes
}

fn is_pattern((seed, bytes): (usize, Vec<u8>)) -> usize {
    assert!(bytes == pattern(seed, bytes.len()), "an argument was garbled");
    bytes.len()
}

/// So many short tasks that the pool believes in short ones and hands them out in advance.
fn believes_in_short_tasks(pool: &Pool) {
    assert_eq!(pool.map(|number: u64| number, 0..500).flatten().count(), 500);
}

#[test]
fn arguments_that_filled_the_way_to_a_worker_that_is_killed_arrive_at_the_next() {
    let pool = pool(1);
    for step in 0..16 {
        // The worker reads nothing while it is stopped, so that the way is full: 256 KiB over rings, less over ipc. Each
        // length leaves off at another place.
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
fn results_of_a_worker_that_is_killed_while_it_sends_them_arrive_whole_or_not_at_all() {
    /// Returns a pattern of so many bytes; the first of a round has a thread kill the process after a while.
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
        // In one piece, and in many; beyond 16 KiB rings carry the place of a result and not its bytes.
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
        // The kill may still come; nobody shall wait for it who does not expect it.
        let quiet = pool.task(|(): ()| ()).retries(3);
        outcome(quiet.submit(()).unwrap()).unwrap();
        pool.quiesce().unwrap();
    }
    assert!(cut > 0, "no kill hit a task; BRIGADE_TEST_SEED={seed}");
}
