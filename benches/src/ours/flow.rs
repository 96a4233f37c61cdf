//! Measures streams whose producer, consumer or workers differ in speed, as a share of the ideal:
//! the time in which the slow part was busy, over the whole time. Waiting is part of the load.

use std::thread;
use std::time::{Duration, Instant};

use brigade::stream::Emit;
use brigade::{Link, Pool, SharedBuf};
use brigade_testkit::pause;

use super::pump::pump;
use super::{BenchPool, resident_kibibytes};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    let count = load.flow_items;
    report.attempt("slow_consumer_percent", || slow_consumer(link, count));
    report.attempt("slow_producer_percent", || slow_producer(link, count));
    report.attempt("slow_workers_percent", || slow_workers(link, count, |()| work(SHORT)));
    report.attempt("one_slow_of_4_workers_percent", || {
        slow_workers(link, count, |()| {
            work(if brigade::worker::slot() == Some(0) { LONG } else { SHORT })
        })
    });
    report.attempt("noops_per_second", || stream_of_noops(link, load.most_submitted / 5));
    report.attempt("flat_items_per_second", || flat_items(link, load.most_submitted / 5));
    report.attempt("memory_of_budget_percent", || memory(link, count / 4));
}

const SHORT: Duration = Duration::from_millis(5);
const LONG: Duration = Duration::from_millis(20);

/// Waits, and returns the time that it took: on a busy machine, it is longer.
fn work(time: Duration) -> Duration {
    let begin = Instant::now();
    pause(time);
    begin.elapsed()
}

fn slow_consumer(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 2)?;
    let stream = pool.stream(nothing).start()?;
    let mut busy = Duration::ZERO;
    let (time, ()) = timed(|| {
        pump(&stream, std::iter::repeat_n((), count), |item| {
            item.result?;
            busy += work(SHORT);
            Ok(())
        })
    })?;
    Ok(percent(busy, time))
}

fn slow_producer(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 2)?;
    let stream = pool.stream(nothing).start()?;
    let mut busy = Duration::ZERO;
    let (time, received) = timed(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..count {
                    busy += work(SHORT);
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
    Ok(percent(busy, time))
}

/// Measures a fast producer and a fast consumer.
fn slow_workers(
    link: Link,
    count: usize,
    work: impl Fn(()) -> Duration + Copy + Send + 'static,
) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 4)?;
    let stream = pool.stream(work).start()?;
    let mut busy = Duration::ZERO;
    let (time, ()) = timed(|| {
        pump(&stream, std::iter::repeat_n((), count), |item| {
            busy += item.result?;
            Ok(())
        })
    })?;
    Ok(percent(busy / 4, time))
}

/// Returns the rate of items that do nothing, with the default bounds.
fn stream_of_noops(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 2)?;
    let stream = pool.stream(nothing).start()?;
    let run = || pump(&stream, std::iter::repeat_n((), count), |item| Ok(item.result?));
    Ok(number(count) / timed(run)?.0.as_secs_f64())
}

/// Returns the rate of items that two tasks emit.
fn flat_items(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool::warm(link, 2)?;
    let stream = pool.stream_flat(emit_numbers).start()?;
    let (time, received) = timed(|| {
        for _ in 0..2 {
            stream.put(count / 2).map_err(|error| error.to_string())?;
        }
        stream.finish();
        Ok(std::iter::from_fn(|| stream.recv()).filter(|item| item.result.is_ok()).count())
    })?;
    if received != count / 2 * 2 {
        return Err(format!("{received} of {count} items were received").into());
    }
    Ok(number(count) / time.as_secs_f64())
}

fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.as_secs_f64() / whole.as_secs_f64()
}

/// Returns the memory that a slow consumer lets grow, as a percentage of the budget.
fn memory(link: Link, count: usize) -> Outcome<f64> {
    let pool = BenchPool(Pool::builder().link(link).workers(2).buffer_budget(BUDGET).build()?);
    pool.warm_up()?;
    let stream = pool.stream(buffer).output(count).start()?;
    let before = resident_kibibytes()?;
    let mut most = before;
    pump(&stream, std::iter::repeat_n((), count), |item| {
        // Touch all pages, so that they count as resident.
        if item.result??.iter().any(|&byte| byte != 1) {
            return Err("the host has not received what the worker wrote".into());
        }
        pause(SHORT);
        most = most.max(resident_kibibytes()?);
        Ok(())
    })?;
    Ok(100.0 * number(most - before) / number(BUDGET >> 10))
}

/// Room for eleven buffers in each share.
const BUDGET: usize = 33 * BUFFER;
const BUFFER: usize = 4 << 20;

fn nothing((): ()) {}

fn emit_numbers(count: usize, emit: &mut Emit<'_, usize>) {
    for number in 0..count {
        if emit.emit(number).is_err() {
            return;
        }
    }
}

fn buffer((): ()) -> Result<SharedBuf, String> {
    let mut buffer = brigade::worker::alloc(BUFFER).map_err(|error| error.to_string())?;
    buffer.fill(1);
    Ok(buffer.freeze())
}
