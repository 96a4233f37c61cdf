//! The executor's decisions, as near as the public face comes to them: the machine is private.
//!
//! The only worker is busy, so that a task which is submitted and taken back again is decided about
//! twice and runs never: queue, bookkeeping and locks, without any answer from another process.

#![forbid(unsafe_code)]

use std::time::Duration;

use brigade::{Pool, Shutdown};
use brigade_testkit::faults::hangs;
use criterion::{BatchSize, Criterion};

fn main() {
    brigade::init();
    let mut criterion = Criterion::default().configure_from_args();
    let pool = Pool::builder().workers(1).build().expect("a pool");
    let busy = pool.submit(hangs, ()).expect("a pool that takes tasks");
    // More than are sent ahead to a worker, so that those which are measured stay in the queue.
    let ahead: Vec<_> = (0..1_000).map(|_| pool.submit(noop, ()).expect("room")).collect();
    criterion.bench_function("machine/submit and cancel", |bencher| {
        bencher.iter(|| pool.submit(noop, ()).expect("room").cancel());
    });
    criterion.bench_function("machine/submit 1000 and cancel them", |bencher| {
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
    drop((busy, ahead));
    pool.shutdown_with(Shutdown::Kill, Duration::from_secs(1)).expect("an end");
}

fn noop((): ()) {}
