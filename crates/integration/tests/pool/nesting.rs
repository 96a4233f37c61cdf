//! Pools built by tasks: the maximum depth, and the cleanup when a level ends in the middle.

use std::collections::BTreeSet;

use brigade::{PoolError, worker};
use brigade_integration::{builder, worker_died};
use brigade_testkit::{BOUND, Gate, Pass, Random, outcome, pass, processes, wait_until};
use serde::{Deserialize, Serialize};

/// The variable that marks all processes of a nest.
const COOKIE: &str = "BRIGADE_TEST_NEST";

/// Maximum depth of nested pools.
const LIMIT: u32 = 10;

/// Builds pools inside tasks as deep as possible. Returns the depth of the lowest worker, and the
/// reason why it has none below it.
fn descend((): ()) -> (u32, String) {
    match builder(1).build() {
        Ok(pool) => outcome(pool.submit(descend, ()).unwrap()).unwrap(),
        Err(error) => {
            assert!(matches!(error, PoolError::NestedTooDeep { depth: LIMIT, limit: LIMIT }));
            (worker::depth().unwrap(), error.to_string())
        }
    }
}

#[test]
fn pools_nest_to_the_limit_and_then_explain_it() {
    let pool = builder(1).build().unwrap();
    let (depth, error) = outcome(pool.submit(descend, ()).unwrap()).unwrap();
    assert_eq!(depth, LIMIT);
    for part in ["10 levels deep", "limit", "use one pool"] {
        assert!(error.contains(part), "{part:?} is missing in {error:?}");
    }
    assert_eq!(worker::depth(), None, "this is the host");
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Nest {
    below: u32,
    cookie: String,
    pass: Pass,
}

/// Nests pools to a given depth, whose lowest task waits at a gate. Returns all pids from the top
/// down.
fn nest(nest: Nest) -> Vec<u32> {
    let mut pids = vec![std::process::id()];
    if nest.below == 0 {
        pass(nest.pass);
    } else {
        let pool = builder(1).build().unwrap();
        let below = Nest { below: nest.below - 1, ..nest };
        pids.extend(pool.submit(self::nest, below).unwrap().wait().unwrap());
    }
    pids
}

#[test]
fn killing_a_middle_level_ends_all_levels_below_it() {
    let cookie = Random::fresh_seed().to_string();
    let pool = builder(1).env(COOKIE, &cookie).build().unwrap();
    let gate = Gate::new();
    let argument = Nest { below: LIMIT - 1, cookie: cookie.clone(), pass: gate.pass(1) };
    let handle = pool.submit(nest, argument).unwrap();
    gate.wait_for_arrivals(1);
    let alive =
        || -> BTreeSet<u32> { processes::with_variable(COOKIE, &cookie).into_iter().collect() };
    let before = alive();
    assert_eq!(before.len(), usize::try_from(LIMIT).unwrap(), "{before:?}");
    // From the top down, each the child of the one before.
    let mut chain = pool.worker_pids();
    while let Some(child) =
        before.iter().find(|pid| processes::parent_of(**pid) == chain.last().copied())
    {
        chain.push(*child);
    }
    assert_eq!(chain.len(), before.len());
    processes::hit(chain[4], processes::Signal::KILL);
    // The task above panics, as its own task has lost its worker; so does the one above that, and
    // so on.
    let error = outcome(handle).unwrap_err();
    assert!(error.is_panic() && error.to_string().contains("lost its worker"), "{error}");
    wait_until("the end of all below", BOUND, || {
        alive().is_disjoint(&chain[4..].iter().copied().collect())
    });
    wait_until("the end of the pools in between", BOUND, || alive().len() <= 1);
    drop(pool);
    wait_until("the end of all", BOUND, || alive().is_empty());
}

#[test]
fn killing_the_top_level_leaves_nothing() {
    let cookie = Random::fresh_seed().to_string();
    let pool = builder(1).env(COOKIE, &cookie).build().unwrap();
    let gate = Gate::new();
    let argument = Nest { below: 3, cookie: cookie.clone(), pass: gate.pass(1) };
    let handle = pool.submit(nest, argument).unwrap();
    gate.wait_for_arrivals(1);
    let top = pool.worker_pids()[0];
    assert_eq!(processes::with_variable(COOKIE, &cookie).len(), 4);
    assert!(processes::hit_child(top, processes::Signal::KILL));
    worker_died(outcome(handle));
    drop(pool);
    wait_until("the end of all", BOUND, || processes::with_variable(COOKIE, &cookie).is_empty());
}
