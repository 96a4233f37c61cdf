//! Measures single operations, of the pool and of the machine. They are the parameters of the model
//! of `simulate`.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::pools::{WarmPool, noop};
use super::section::Report;
use crate::figures::{Cost, Measured, Outcome};
use crate::rate::Budget;

/// Measures all costs.
pub(super) fn measure(seconds: f64, report: Report<'_>) -> Outcome<()> {
    let mut budget = Budget::new(seconds, 13);
    let mut record = |name: &str, of: u32, nanoseconds: f64| {
        report(Measured::Cost(Cost { name: name.to_owned(), of, nanoseconds }))
    };
    for threads in [1, 2, 4, 8] {
        record("submit", threads, submit(threads, budget.take(2))?)?;
    }
    for workers in [1, 16, 64, 256] {
        record("look", workers, look(workers, budget.take(1))?)?;
    }
    let [wakes, sleeps] = wake_ups(budget.take(1));
    record("wake another thread", 1, wakes)?;
    record("until it runs", 1, sleeps)
}

/// Returns the time per submit of all threads together, while the only worker is busy.
fn submit(threads: u32, time: Duration) -> Outcome<f64> {
    let mut best = f64::MAX;
    let end = Instant::now() + time;
    loop {
        let pool = WarmPool::new(1)?;
        let blocked = pool.0.submit(block, ())?;
        let start = Barrier::new(usize::try_from(threads)? + 1);
        let took = thread::scope(|scope| {
            let work = || -> Result<_, String> {
                let mut handles = Vec::with_capacity(SUBMITS as usize);
                start.wait();
                for _ in 0..SUBMITS {
                    handles.push(pool.0.submit(noop, ()).map_err(|error| error.to_string())?);
                }
                Ok(handles)
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            start.wait();
            let begin = Instant::now();
            let mut kept = Vec::new();
            for thread in threads {
                kept.push(thread.join().map_err(|_| "a submitting thread has panicked")??);
            }
            Ok::<_, Box<dyn std::error::Error>>(begin.elapsed())
        })?;
        best = best.min(nanoseconds(took) / f64::from(SUBMITS * threads));
        blocked.kill();
        if Instant::now() >= end {
            return Ok(best);
        }
    }
}

/// Submits of a thread.
const SUBMITS: u32 = 100_000;

/// Never ends by itself.
fn block((): ()) {
    loop {
        thread::park();
    }
}

/// Returns the time of a look at the rings of that many idle workers, one of which runs a task.
fn look(workers: u32, time: Duration) -> Outcome<f64> {
    let pool = WarmPool::new(workers)?;
    let mut handle = pool.0.submit(block, ())?;
    let per_look = repeat(time, || {
        black_box(handle.try_get());
    });
    handle.kill();
    Ok(per_look)
}

fn spin_until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

/// Returns the time that waking a sleeping thread takes its waker, and the time until that thread
/// runs. Medians.
fn wake_ups(time: Duration) -> [f64; 2] {
    let begin = Instant::now();
    let (woken, slept) = (AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let mut times = [Vec::new(), Vec::new()];
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while !stop.load(Ordering::Acquire) {
                slept.fetch_add(1, Ordering::Release);
                thread::park();
                woken.store(since(begin), Ordering::Release);
            }
        });
        let mut round = 0;
        while begin.elapsed() < time {
            round += 1;
            woken.store(0, Ordering::Release);
            // It sleeps a moment after it has said so.
            spin_until(|| slept.load(Ordering::Acquire) >= round);
            let ready = Instant::now();
            spin_until(|| ready.elapsed() > SETTLED);
            let from = since(begin);
            sleeper.thread().unpark();
            let done = since(begin);
            spin_until(|| woken.load(Ordering::Acquire) > 0);
            let ran = woken.load(Ordering::Acquire);
            let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
            times[0].push(nanoseconds(between(from, done)));
            times[1].push(nanoseconds(between(from, ran)));
        }
        stop.store(true, Ordering::Release);
        sleeper.thread().unpark();
    });
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or_default()
    })
}

/// Time after which a thread that was about to sleep does.
const SETTLED: Duration = Duration::from_micros(100);

/// Returns the time of a call in the fastest part of the whole: other programs only make it slower.
fn repeat(time: Duration, mut call: impl FnMut()) -> f64 {
    const CALLS: u32 = 1_000;
    let (begin, mut best) = (Instant::now(), Duration::MAX);
    while best == Duration::MAX || begin.elapsed() < time {
        let part = Instant::now();
        (0..CALLS).for_each(|_| call());
        best = best.min(part.elapsed());
    }
    nanoseconds(best) / f64::from(CALLS)
}

fn since(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
