//! A task that forks may return in both processes: the original sends its outcome, and the copy
//! ends silently.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::time::Duration;

use brigade::Pool;
use brigade_integration::pool;
use brigade_testkit::{BOUND, Gate, Pass, Watchdog, outcome, pass, pause, processes, wait_until};
use brigade_testkit_sys::misdeeds;
use serde::{Deserialize, Serialize};

/// The action of the copy before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Copy {
    Returns,
    /// It returns a value that is too large for a message.
    ReturnsMuch,
    Panics,
    /// It opens a section that must end soon, and stays in it.
    OpensASection,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    number: u64,
    /// The copy's pid, in the value of the original.
    copy: Option<u32>,
    ballast: Vec<u8>,
}

/// Much longer than the limit of a section.
const WHILE: Duration = Duration::from_millis(100);

fn forks((number, what, late): (u64, Copy, Option<Pass>)) -> Answer {
    let copy = misdeeds::fork().expect("a copy");
    let mut ballast = vec![7; 100_000];
    if copy.is_none() {
        // Different from the original's, so that an outcome of the copy would be noticed.
        ballast = if what == Copy::ReturnsMuch { vec![8; 100_000] } else { Vec::new() };
        let section = (what == Copy::OpensASection).then(|| brigade::worker::expires(WHILE / 10));
        late.map(pass);
        assert_ne!(what, Copy::Panics, "the copy panics");
        drop(section);
    } else if what == Copy::OpensASection {
        pause(WHILE);
    }
    Answer { number, copy, ballast }
}

fn square(number: u64) -> u64 {
    number * number
}

fn check(answer: &Answer, number: u64) {
    assert_eq!(answer.number, number);
    assert!(answer.copy.is_some(), "the copy sent an outcome");
    assert!(answer.ballast.len() == 100_000 && answer.ballast.iter().all(|byte| *byte == 7));
}

/// Runs a forking task among ordinary ones, which must not be affected, and checks that its worker
/// goes on.
fn among_others(pool: &Pool, what: Copy, gate: Option<&Gate>) -> Answer {
    let submit = |numbers: std::ops::Range<u64>| -> Vec<_> {
        numbers.map(|number| (number, pool.submit(square, number).unwrap())).collect()
    };
    let mut innocent = submit(0..30);
    let late = gate.map(|gate| gate.pass(1));
    let forks = pool.submit(forks, (9, what, late)).unwrap();
    innocent.extend(submit(30..60));
    let answer = outcome(forks).unwrap();
    check(&answer, 9);
    for (number, handle) in innocent {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
    answer
}

/// Builds a pool that prefetches tasks.
fn warm(workers: usize) -> Pool {
    let pool = pool(workers);
    pool.warm_up().unwrap();
    let handles: Vec<_> = (0..300).map(|number| pool.submit(square, number).unwrap()).collect();
    for handle in handles {
        outcome(handle).unwrap();
    }
    pool
}

#[test]
fn only_the_original_of_a_forking_task_sends_an_outcome() {
    let _watchdog = Watchdog::new("tasks that fork", 3 * BOUND);
    for what in [Copy::Returns, Copy::ReturnsMuch, Copy::Panics] {
        let pool = warm(2);
        let workers = pool.worker_pids();
        for _ in 0..20 {
            among_others(&pool, what, None);
        }
        assert_eq!(pool.worker_pids(), workers, "a worker was replaced");
        pool.shutdown().unwrap();
        assert_eq!(processes::children(), [0; 0]);
    }
}

#[test]
fn a_late_copy_sends_no_outcome_for_a_later_task() {
    let _watchdog = Watchdog::new("copies that return late", 3 * BOUND);
    for what in [Copy::Returns, Copy::ReturnsMuch, Copy::Panics, Copy::OpensASection] {
        let pool = warm(1);
        let workers = pool.worker_pids();
        let gate = Gate::new();
        let copy = among_others(&pool, what, Some(&gate)).copy.unwrap();
        gate.wait_for_arrivals(1);
        gate.open();
        wait_until("the end of the copy", BOUND, || !processes::is_alive(copy));
        for number in 0..300 {
            assert_eq!(outcome(pool.submit(square, number).unwrap()).unwrap(), number * number);
        }
        assert_eq!(pool.worker_pids(), workers, "a worker was replaced");
    }
}

#[test]
fn only_the_original_of_a_forking_item_sends_an_outcome() {
    let _watchdog = Watchdog::new("items that fork", 3 * BOUND);
    let pool = warm(2);
    let workers = pool.worker_pids();
    let inputs = (0..60).map(|number| (number, Copy::ReturnsMuch, None));
    for (number, answer) in (0..).zip(pool.map(forks, inputs)) {
        check(&answer.unwrap(), number);
    }
    assert_eq!(pool.worker_pids(), workers, "a worker was replaced");
}

#[test]
fn a_forking_initializer_makes_only_one_worker() {
    let pool = brigade_integration::builder(2)
        .initializer(
            |(): ()| {
                misdeeds::fork().expect("a copy");
            },
            (),
        )
        .build()
        .unwrap();
    pool.warm_up().unwrap();
    for _ in 0..10 {
        among_others(&pool, Copy::Returns, None);
    }
}
