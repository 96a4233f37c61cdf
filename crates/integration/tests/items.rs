//! Items of a map obey the rules of single tasks: their queue deadline, and the number of workers
//! they may kill.

use std::time::{Duration, Instant};

use brigade_integration::{attempt, builder};
use brigade_testkit::{Gate, outcome, pass};

brigade::init_for_tests!();

/// Item 3 kills every worker; item 5 kills its first two.
fn kills_workers(number: u64) -> u64 {
    if number == 3 || number == 5 && attempt() < 3 {
        std::process::abort();
    }
    number
}

#[test]
fn an_item_that_keeps_killing_workers_is_quarantined() {
    for chunk in [None, Some(4)] {
        let pool = builder(1).quarantine_after(3).build().unwrap();
        let mut results = pool.map(kills_workers, 0..8).retries(100);
        if let Some(chunk) = chunk {
            results = results.chunk(chunk);
        }
        for (number, result) in (0..).zip(results) {
            match result {
                Ok(result) => assert_eq!(result, number),
                Err(error) => {
                    assert_eq!(number, 3, "{error}");
                    assert!(error.is_quarantined() && error.is_worker_death(), "{error:?}");
                    assert_eq!(error.attempt(), 3);
                    assert!(error.to_string().contains("quarantined"), "{error}");
                }
            }
        }
        // Three deaths under item 3, two under item 5.
        assert_eq!(pool.worker_restarts(), 5, "chunks of {chunk:?}");
    }
}

#[test]
fn an_item_without_retries_is_not_reported_as_quarantined() {
    let pool = builder(1).quarantine_after(1).build().unwrap();
    let error = pool.map(kills_workers, [3]).next().unwrap().unwrap_err();
    assert!(error.is_worker_death() && !error.is_quarantined(), "{error:?}");
}

#[test]
fn items_past_their_queue_deadline_fail_together_unretried() {
    const LIMIT: Duration = Duration::from_millis(300);
    let pool = builder(1).queue_deadline(LIMIT).build().unwrap();
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    let begin = Instant::now();
    let items = pool.map(|number: u64| number, 0..15).chunk(15).retries(2);
    let errors: Vec<_> = items.map(Result::unwrap_err).collect();
    assert_eq!(errors.len(), 15);
    for error in errors {
        assert!(error.is_queue_deadline(), "{error}");
        assert_eq!(error.attempt(), 1);
    }
    // One after the other, the items of a chunk would wait fifteen times as long.
    assert!(begin.elapsed() < 8 * LIMIT, "{:?}", begin.elapsed());
    gate.open();
    outcome(held).unwrap();
}
