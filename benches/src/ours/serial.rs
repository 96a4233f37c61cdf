//! Measures long tasks after many short ones, in a pool that has started only one worker by then.

use std::time::Duration;

use brigade::Link;
use brigade_testkit::pause;

use super::{BenchPool, noop};
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

const WORKERS: usize = 4;
const SHORT_TASKS: usize = 200;
const LONG_TASKS: usize = 24;
const LONG: Duration = Duration::from_millis(100);

type Way = fn(&BenchPool) -> Outcome<()>;

const WAYS: [(&str, Way); 4] = [
    ("submit_excess_percent", |pool| {
        let handles =
            (0..LONG_TASKS).map(|_| pool.submit(pause, LONG)).collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait()?;
        }
        Ok(())
    }),
    ("map_excess_percent", |pool| all(pool.map(pause, [LONG; LONG_TASKS]))),
    ("map_single_excess_percent", |pool| all(pool.map(pause, [LONG; LONG_TASKS]).chunk(1))),
    ("map_unordered_excess_percent", |pool| all(pool.map_unordered(pause, [LONG; LONG_TASKS]))),
];

pub(super) fn measure(link: Link, report: &mut Report) {
    for (name, way) in WAYS {
        report.attempt(name, || excess(link, way));
    }
}

/// Returns the percentage by which the long tasks exceed the ideal time.
fn excess(link: Link, way: Way) -> Outcome<f64> {
    let pool = BenchPool::cold(link, WORKERS)?;
    for _ in 0..SHORT_TASKS {
        pool.submit(noop, ())?.wait()?;
    }
    let (time, ()) = timed(|| way(&pool))?;
    let ideal = LONG.as_secs_f64() * number(LONG_TASKS) / number(WORKERS);
    Ok(100.0 * (time.as_secs_f64() / ideal - 1.0))
}

fn all(results: impl Iterator<Item = Result<(), brigade::TaskError>>) -> Outcome<()> {
    for result in results {
        result?;
    }
    Ok(())
}
