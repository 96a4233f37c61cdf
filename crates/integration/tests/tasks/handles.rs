//! The information that a handle gives about its task, and the resources that the pool keeps for
//! it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use brigade::TaskState;
use brigade_integration::pool;
use brigade_testkit::{BOUND, Gate, outcome, pass, wait_until};
use serde::{Deserialize, Serialize};

fn square(number: u64) -> u64 {
    number * number
}

#[test]
fn the_debug_text_shows_task_state_and_type() {
    let pool = pool(1);
    let gate = Gate::new();
    let named = pool.task(pass).label("tea").submit(gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let queued = pool.submit(square, 1).unwrap();
    assert_eq!((named.label(), queued.label()), (Some("tea"), None));
    let shown = format!("{named:?} {queued:?}");
    for part in [r#"TaskId(1), label: Some("tea"), state: Running, result: "u64""#, "state: Queued"]
    {
        assert!(shown.contains(part), "{shown}");
    }
    gate.open();
    outcome(named).unwrap();
    wait_until("the other", BOUND, || queued.is_done());
    assert!(format!("{queued:?}").contains("state: Done"));
}

#[test]
fn running_for_counts_from_the_start_of_the_task() {
    let pool = pool(1);
    let begin = Instant::now();
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    let second = pool.submit(pass, gate.pass(2)).unwrap();
    gate.wait_for_arrivals(1);
    let arrived = Instant::now();
    assert_eq!((first.state(), second.state()), (TaskState::Running, TaskState::Queued));
    assert_eq!(second.running_for(), None);
    let earlier = first.running_for().unwrap();
    let later = first.running_for().unwrap();
    let (most, least) = (begin.elapsed(), arrived.elapsed());
    assert!(earlier <= later && later <= most, "{earlier:?}, {later:?}, at most {most:?}");
    // Neither from when it was sent nor from when it was asked for: it had begun when it arrived at
    // the gate.
    assert!(first.running_for().unwrap() >= least);
    gate.open();
    wait_until("both to be done", BOUND, || first.is_done() && second.is_done());
    assert_eq!((first.running_for(), second.running_for()), (None, None));
}

#[test]
fn a_wait_with_a_zero_timeout_leaves_the_task_alone() {
    let pool = pool(1);
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    assert!(handle.wait_timeout(Duration::ZERO).is_none());
    assert!(handle.try_get().is_none());
    assert_eq!(handle.state(), TaskState::Running);
    gate.open();
    assert_eq!(handle.wait_timeout(BOUND).unwrap().unwrap(), 1);
}

#[test]
fn an_error_without_a_message_is_still_an_error() {
    let pool = pool(1);
    let handle = pool.submit(|(): ()| panic!(""), ()).unwrap();
    assert!(outcome::<()>(handle).unwrap_err().is_panic());
}

/// Number of live `Counted` values in this process.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug, Serialize)]
struct Counted(u64);

impl Counted {
    fn new(number: u64) -> Self {
        COUNTED.fetch_add(1, Ordering::AcqRel);
        Self(number)
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: serde::Deserializer<'de>>(decoder: D) -> Result<Self, D::Error> {
        u64::deserialize(decoder).map(Self::new)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        COUNTED.fetch_sub(1, Ordering::AcqRel);
    }
}

#[test]
fn neither_host_nor_worker_keeps_arguments_or_values() {
    let pool = pool(1);
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(1)).unwrap();
    let handle = pool.submit(|counted: Counted| Counted::new(counted.0), Counted::new(5)).unwrap();
    assert_eq!(COUNTED.load(Ordering::Acquire), 0, "the argument was encoded, and goes");
    gate.open();
    outcome(held).unwrap();
    let result = outcome(handle).unwrap();
    assert_eq!((result.0, COUNTED.load(Ordering::Acquire)), (5, 1), "the caller has the only one");
    drop(result);
    let in_the_worker = pool.submit(|(): ()| COUNTED.load(Ordering::Acquire), ()).unwrap();
    assert_eq!(outcome(in_the_worker).unwrap(), 0);
}
