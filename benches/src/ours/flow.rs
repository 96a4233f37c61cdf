//! Measures streams whose producer, consumer or workers differ in speed, as a share of the ideal.
//! Waiting is part of the load.

use std::thread;
use std::time::Duration;

use brigade::Link;
use brigade_testkit::pause;

use super::BenchPool;
use super::pump::pump;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    let count = load.flow_items;
    let unequal = 4.0 - 1.0 + SHORT.as_secs_f64() / LONG.as_secs_f64();
    report.attempt("slow_consumer_percent", || slow_consumer(link, count));
    report.attempt("slow_producer_percent", || slow_producer(link, count));
    report.attempt("slow_workers_percent", || slow_workers(link, count, work, 4.0));
    report.attempt("one_slow_of_4_workers_percent", || {
        slow_workers(link, count, uneven_work, unequal)
    });
}

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(20);

/// Returns the ideal time as a percentage of the measured one.
fn share(count: usize, workers: f64, time: Duration) -> f64 {
    100.0 * number(count) * SHORT.as_secs_f64() / workers / time.as_secs_f64()
}

fn slow_consumer(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 2)?;
    let stream = pool.stream(nothing).start()?;
    let (time, ()) = timed(|| {
        pump(&stream, std::iter::repeat_n((), count), |item| {
            item.result?;
            pause(SHORT);
            Ok(())
        })
    })?;
    Ok(share(count, 1.0, time))
}

fn slow_producer(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 2)?;
    let stream = pool.stream(nothing).start()?;
    let (time, received) = timed(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..count {
                    pause(SHORT);
                    if stream.put(()).is_err() {
                        break;
                    }
                }
                stream.finish();
            });
            Ok(std::iter::from_fn(|| stream.recv()).filter(|item| item.result.is_ok()).count())
        })
    })?;
    if received != count {
        return Err(format!("{received} of {count} items were received").into());
    }
    Ok(share(count, 1.0, time))
}

/// Measures tasks that together are as fast as `workers` workers that take [`SHORT`] for each.
fn slow_workers(
    link: Link,
    count: usize,
    work: impl Fn(()) + Copy + Send + 'static,
    workers: f64,
) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 4)?;
    let stream = pool.stream(work).start()?;
    let (time, ()) =
        timed(|| pump(&stream, std::iter::repeat_n((), count), |item| Ok(item.result?)))?;
    Ok(share(count, workers, time))
}

fn nothing((): ()) {}

fn work((): ()) {
    pause(SHORT);
}

fn uneven_work((): ()) {
    pause(if brigade::worker::slot() == Some(0) { LONG } else { SHORT });
}
