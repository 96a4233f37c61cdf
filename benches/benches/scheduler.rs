//! The decisions of the scheduler, measured through the public API.
//!
//! The only worker is busy, so a task that is submitted and cancelled causes two decisions but
//! never runs: this measures the queue, bookkeeping and locks, without another process.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "there is nothing to measure without the value")]

use std::time::Duration;

use brigade::{Pool, Shutdown};
use brigade_testkit::faults::hangs;
use criterion::{BatchSize, Criterion};

fn main() {
    brigade::init();
    let mut criterion = Criterion::default().configure_from_args();
    let pool = Pool::builder().workers(1).build().expect("a pool");
    let busy = pool.submit(hangs, ()).expect("room");
    // More tasks than a worker prefetches, so that the measured tasks stay in the queue.
    let prefetched: Vec<_> = (0..1_000).map(|_| pool.submit(noop, ()).expect("room")).collect();
    criterion.bench_function("scheduler/submit and cancel", |bencher| {
        bencher.iter(|| pool.submit(noop, ()).expect("room").cancel());
    });
    criterion.bench_function("scheduler/submit 1000 and cancel them", |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                let handles: Vec<_> =
                    (0..1_000).map(|_| pool.submit(noop, ()).expect("room")).collect();
                handles.iter().filter(|handle| handle.cancel()).count()
            },
            BatchSize::PerIteration,
        );
    });
    criterion.final_summary();
    drop((busy, prefetched));
    pool.shutdown_with(Shutdown::Kill, Duration::from_secs(1)).expect("a shutdown in time");
}

fn noop((): ()) {}
