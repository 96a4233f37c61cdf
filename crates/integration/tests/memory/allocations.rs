//! The memory that the host allocates for a task.

use brigade::{Handle, Link, Pool};
use brigade_integration::builder;
use brigade_testkit::faults::spins;
use brigade_testkit::{BOUND, Gate, pass, wait_until};
use brigade_testkit_sys::allocations::Allocations;

use crate::ALLOCATOR;

const TASKS: u32 = 20_000;

/// Number of tasks that are awaited one by one.
const ONE_BY_ONE: u32 = 1_000;

/// Number of tasks before them that are not counted.
const LEARNING: u32 = 300;

/// Run time of these tasks: a caller sleeps before that, on any machine.
const LONG: u64 = 200;

fn next(number: u64) -> u64 {
    number + 1
}

fn length(bytes: Vec<u8>) -> usize {
    bytes.len()
}

fn per_task(allocations: Allocations) -> (f64, f64) {
    per(TASKS, allocations)
}

fn per(tasks: u32, Allocations { count, bytes }: Allocations) -> (f64, f64) {
    let per = |number: u64| f64::from(u32::try_from(number).unwrap()) / f64::from(tasks);
    (per(count), per(bytes))
}

/// Counts while no task ends, so that all tasks are queued at once, however fast the workers are.
fn while_workers_wait(pool: &Pool, submit: impl FnOnce()) -> Allocations {
    let gate = Gate::new();
    let waiting = [0, 1].map(|number| pool.submit(pass, gate.pass(number)).unwrap());
    gate.wait_for_arrivals(2);
    let allocations = ALLOCATOR.count(submit);
    gate.open();
    for handle in waiting {
        handle.wait().unwrap();
    }
    allocations
}

/// Submits numbers, and takes the values once all have arrived. Returns what that allocates for
/// each task.
fn backlog(pool: &Pool, handles: &mut Vec<Handle<u64>>) -> [(f64, f64); 2] {
    let submitted = while_workers_wait(pool, || {
        handles.extend((0..TASKS).map(|number| pool.submit(next, number.into()).unwrap()));
    });
    // No caller waits, because one that sleeps allocates, and a busy machine decides how often.
    let waited = ALLOCATOR.count(|| {
        let mut ended = 0;
        wait_until("all values", BOUND, || {
            ended += handles[ended..].iter().take_while(|handle| handle.is_done()).count();
            ended == handles.len()
        });
        for (number, handle) in (1..).zip(handles.drain(..)) {
            assert_eq!(handle.wait().unwrap(), number);
        }
    });
    [submitted, waited].map(per_task)
}

/// A single test, because each counts what all threads allocate. Over rings, whatever
/// `BRIGADE_LINK` says.
#[test]
fn a_task_takes_one_allocation_and_a_longer_argument_two() {
    let pool = builder(2).link(Link::Ring).build().unwrap();
    pool.warm_up().unwrap();
    submits_numbers(&pool);
    submits_bytes(&pool);
}

fn submits_numbers(pool: &Pool) {
    let mut handles = Vec::with_capacity(TASKS as usize);

    let [(count, bytes), _] = backlog(pool, &mut handles);
    assert!(count < 1.1 && bytes < 220.0, "first backlog: {count} allocations of {bytes} bytes");

    let [(count, bytes), (late, _)] = backlog(pool, &mut handles);
    assert!(count < 1.1 && bytes < 130.0, "second backlog: {count} allocations of {bytes} bytes");
    assert!(late < 0.2, "waiting: {late} allocations");

    // A caller that sleeps leaves word how to wake it.
    let one_by_one = |tasks| {
        ALLOCATOR.count(|| {
            for _ in 0..tasks {
                pool.submit(spins, LONG).unwrap().wait().unwrap();
            }
        })
    };
    // The pool learns that these tasks are longer than the ones before.
    one_by_one(LEARNING);
    let (count, bytes) = per(ONE_BY_ONE, one_by_one(ONE_BY_ONE));
    assert!(count < 3.1 && bytes < 260.0, "one by one: {count} allocations of {bytes} bytes");
}

fn submits_bytes(pool: &Pool) {
    let mut handles = Vec::with_capacity(TASKS as usize);
    for lap in 0..2 {
        let arguments: Vec<_> = (0..TASKS).map(|_| vec![7; 99]).collect();
        let submitted = while_workers_wait(pool, || {
            handles.extend(arguments.into_iter().map(|it| pool.submit(length, it).unwrap()));
        });
        for handle in handles.drain(..) {
            assert_eq!(handle.wait().unwrap(), 99);
        }
        let (count, bytes) = per_task(submitted);
        assert!(count < 2.1 && bytes < 230.0, "lap {lap}: {count} allocations of {bytes} bytes");
    }
}
