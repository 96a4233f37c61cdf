//! The ring link between two threads of one process: the cost of a message without the process
//! boundary.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "there is nothing to measure without the value")]

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_wire::link::ring::{HostEnd, WorkerEnd, words};
use brigade_wire::link::{LinkReceiver, LinkSender};
use brigade_wire::ring::{self, Consumer, Doorbell, Producer, Region, RemoteDoorbell};
use criterion::{BenchmarkId, Criterion, Throughput};

const LIMIT: usize = 1 << 20;
const SLOTS: u16 = 8;

/// The last message.
const END: &[u8] = b"end";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for size in [16, 256, 4 << 10] {
        push_and_take(&mut criterion, size);
    }
    for size in [16, 4 << 10, 64 << 10] {
        there_and_back(&mut criterion, size);
    }
    criterion.final_summary();
}

/// Measures both ends on one thread: only the instructions.
fn push_and_take(criterion: &mut Criterion, size: usize) {
    let length = ring::words(1 << 13);
    let segment = Arc::new(Segment::create("bench", length).expect("memory"));
    let region = Region::new(&segment, 0, length);
    let (mut producer, mut consumer) =
        (Producer::new(region.clone()), Consumer::new(region, LIMIT));
    let message = vec![1; size];
    let mut group = criterion.benchmark_group("ring");
    group.throughput(Throughput::Bytes(size as u64));
    group.bench_function(BenchmarkId::new("push and take", size), |bencher| {
        bencher.iter(|| {
            producer.push(&message, &[], 0).expect("an intact ring");
            assert!(consumer.advance().expect("a whole message"), "it was just pushed");
        });
    });
}

/// Measures the whole link with a thread that sends messages back: two cores and their caches.
fn there_and_back(criterion: &mut Criterion, size: usize) {
    let segment = Arc::new(Segment::create("bench", words(SLOTS)).expect("memory"));
    let bell = Doorbell::new().expect("memory and descriptors");
    let page = bell.page().as_fd().try_clone_to_owned().expect("descriptors");
    bell.allow_spinning(true);
    let [thread, caller] = bell.for_worker().expect("descriptors").map(RemoteWaker::from_fd);
    let worker_bell = RemoteDoorbell::new(page, thread, caller).expect("the page");
    let mut worker = WorkerEnd::new(&segment, SLOTS, worker_bell, LIMIT);
    let mut host = HostEnd::new(&segment, SLOTS, LIMIT);
    let message = vec![1; size];
    thread::scope(|scope| {
        scope.spawn(move || {
            while let Ok(message) = worker.receiver.receive() {
                if message == END || worker.sender.send(message, &[]).is_err() {
                    break;
                }
            }
        });
        let mut group = criterion.benchmark_group("ring");
        group.throughput(Throughput::Bytes(2 * size as u64));
        group.bench_function(BenchmarkId::new("there and back", size), |bencher| {
            bencher.iter(|| {
                host.send(&message, &[]).expect("a running thread");
                while !host.consumer.advance().expect("a valid message") {
                    std::hint::spin_loop();
                }
                host.made_room();
                host.consumer.message().len()
            });
        });
        host.send(END, &[]).expect("a running thread");
    });
}
