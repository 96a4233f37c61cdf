//! Variables that each worker has by its slot.

use std::collections::BTreeMap;
use std::env;

use brigade::{Pool, PoolBuilder, Start, worker};
use brigade_integration::builder;
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, outcome, wait_until};

const NAME: &str = "BRIGADE_TEST_SLOT";

/// Returns the slot and generation of the worker, and its variable.
fn look((): ()) -> (u32, u32, Option<String>) {
    (worker::slot().unwrap(), worker::generation().unwrap(), env::var(NAME).ok())
}

fn by_slot(workers: usize, start: Start) -> PoolBuilder {
    let variables = |slot| [(NAME, format!("device {slot}")), ("BRIGADE_TEST_OTHER", "x".into())];
    builder(workers).start(start).env(NAME, "of the pool").env_per_slot(variables)
}

/// Looks into all workers and returns their generations by slot.
fn generations(pool: &Pool) -> BTreeMap<u32, u32> {
    let seen = pool.broadcast(look, ()).unwrap().into_iter().map(|handle| {
        let (slot, generation, value) = outcome(handle).unwrap();
        assert_eq!(value, Some(format!("device {slot}")));
        (slot, generation)
    });
    seen.collect()
}

#[test]
fn each_worker_has_the_variables_of_its_slot() {
    for start in [Start::Exec, Start::Fork, Start::Auto] {
        let pool = by_slot(4, start).build().unwrap();
        assert_eq!(generations(&pool), (0..4).map(|slot| (slot, 1)).collect());
        pool.resize(5).unwrap();
        assert_eq!(generations(&pool).len(), 5);
    }
}

#[test]
fn a_replacement_and_a_spare_worker_keep_their_slots() {
    for start in [Start::Exec, Start::Fork] {
        let pool = by_slot(1, start).spare_workers(1).build().unwrap();
        assert_eq!(generations(&pool), BTreeMap::from([(0, 1), (1, 1)]));
        assert!(outcome(pool.submit(aborts, ()).unwrap()).unwrap_err().is_worker_death());
        // The spare worker takes over.
        let (slot, _, value) = outcome(pool.submit(look, ()).unwrap()).unwrap();
        assert_eq!(value, Some(format!("device {slot}")));
        wait_until("the slot of the dead worker has another process", BOUND, || {
            generations(&pool).into_values().sum::<u32>() == 3
        });
    }
}

#[test]
fn a_process_of_its_own_has_the_variables_of_its_worker() {
    let pool = by_slot(2, Start::Auto).fresh_process_per_task().build().unwrap();
    for _ in 0..10 {
        let (slot, _, value) = outcome(pool.submit(look, ()).unwrap()).unwrap();
        assert_eq!(value, Some(format!("device {slot}")));
    }
}

#[test]
fn what_all_workers_share_has_no_variables_of_a_slot() {
    fn preloaded((): ()) -> Option<String> {
        worker::preloaded::<Option<String>>().cloned().flatten()
    }
    let pool = by_slot(2, Start::Fork).preload(|(): ()| env::var(NAME).ok(), ()).build().unwrap();
    let seen = outcome(pool.submit(preloaded, ()).unwrap()).unwrap();
    assert_eq!(seen.as_deref(), Some("of the pool"));
    generations(&pool);
}

#[test]
fn a_variable_that_is_invalid_is_named_by_the_error() {
    type Variables = fn(u32) -> [(&'static str, &'static str); 1];
    let cases: [(Variables, &str); 4] = [
        (|_| [("A=B", "x")], "\"A=B\""),
        (|_| [("NUL\0", "x")], "NUL\\0"),
        (|_| [("PORT", "80\080")], "the value of \"PORT\""),
        (|slot| panic!("no device for {slot}"), "panicked for slot 0: no device for 0"),
    ];
    for start in [Start::Exec, Start::Fork] {
        for (variables, expected) in cases {
            let pool = builder(1).start(start).env_per_slot(variables).build().unwrap();
            let error = outcome(pool.submit(look, ()).unwrap()).unwrap_err().to_string();
            assert!(error.contains("env_per_slot: ") && error.contains(expected), "{error}");
        }
    }
}
