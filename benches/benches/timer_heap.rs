//! Arming, cancelling and firing timers, and finding the next deadline, with 1,000 and with
//! 1,000,000 timers.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "there is nothing to measure without the value")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use brigade_base::{TimerHeap, TimerKey};
use brigade_testkit::Random;
use criterion::{BenchmarkId, Criterion, Throughput};

const SIZES: [usize; 2] = [1_000, 1_000_000];

/// Maximum time until a deadline: a minute, in nanoseconds.
const SPAN: u64 = 60_000_000_000;

/// Calls that are measured together; few enough not to change the size of the heap.
const BATCH: usize = 500;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for size in SIZES {
        each_call(&mut criterion, size);
        a_task(&mut criterion, size);
    }
    criterion.final_summary();
}

/// Arms and cancels timers all over the heap, the worst order for caches.
fn each_call(criterion: &mut Criterion, size: usize) {
    let mut random = Random::new(1);
    let (mut heap, mut keys) = filled(size, &mut random);
    let mut group = criterion.benchmark_group("timer heap");
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function(BenchmarkId::new("arm", size), |bencher| {
        bencher.iter_custom(|rounds| {
            (0..rounds).map(|_| replace_some(&mut heap, &mut keys, &mut random).arming).sum()
        });
    });
    group.bench_function(BenchmarkId::new("cancel", size), |bencher| {
        bencher.iter_custom(|rounds| {
            (0..rounds).map(|_| replace_some(&mut heap, &mut keys, &mut random).cancelling).sum()
        });
    });
    group.bench_function(BenchmarkId::new("expire and arm", size), |bencher| {
        bencher.iter(|| {
            for _ in 0..BATCH {
                let fired = heap.expire(u64::MAX).expect("timers");
                heap.arm(fired.deadline + SPAN, fired.value);
            }
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function(BenchmarkId::new("next deadline", size), |bencher| {
        bencher.iter(|| black_box(&heap).next_deadline());
    });
}

/// Arms and cancels timers as a pool does: the newest timer has the latest deadline, and is
/// cancelled soon.
fn a_task(criterion: &mut Criterion, size: usize) {
    let (mut heap, _) = filled(size, &mut Random::new(2));
    let mut now = SPAN;
    let mut group = criterion.benchmark_group("timer heap");
    group.throughput(Throughput::Elements(1));
    group.bench_function(BenchmarkId::new("arm the latest, cancel it", size), |bencher| {
        bencher.iter(|| {
            now += 1;
            let key = heap.arm(now, 0);
            heap.cancel(key)
        });
    });
}

fn filled(size: usize, random: &mut Random) -> (TimerHeap<u64, u64>, Vec<TimerKey>) {
    let mut heap = TimerHeap::new();
    let keys = (0..size).map(|_| heap.arm(random.within(0..SPAN), 0)).collect();
    (heap, keys)
}

/// Times for one batch.
struct Times {
    cancelling: Duration,
    arming: Duration,
}

/// Cancels a batch of random timers, and arms the same number.
fn replace_some(
    heap: &mut TimerHeap<u64, u64>,
    keys: &mut Vec<TimerKey>,
    random: &mut Random,
) -> Times {
    let cancelled: Vec<TimerKey> = (0..BATCH)
        .map(|_| {
            let index = random.within(0..keys.len() as u64);
            keys.swap_remove(usize::try_from(index).expect("an index"))
        })
        .collect();
    let deadlines: Vec<u64> = (0..BATCH).map(|_| random.within(0..SPAN)).collect();
    let start = Instant::now();
    for key in cancelled {
        heap.cancel(key).expect("an armed timer");
    }
    let cancelling = start.elapsed();
    let start = Instant::now();
    keys.extend(deadlines.into_iter().map(|deadline| heap.arm(deadline, 0)));
    Times { cancelling, arming: start.elapsed() }
}
