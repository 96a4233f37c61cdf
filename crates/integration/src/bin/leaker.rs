//! Creates, uses and drops many pools, and fails if they leave anything behind: `leaker SCENARIO
//! COUNT`.
//!
//! A separate program, because it counts all resources of its process.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use brigade::{Link, Pool, SharedBuf, Shutdown, Stdio, Until, as_completed, wait};
use brigade_integration::scribble::{Scribble, Target, Then, scribbles};
use brigade_testkit::faults::{aborts, echoes, hangs, panics_with_str, prints_a_mebibyte, sleeps};
use brigade_testkit::{BOUND, LeakCheck, outcome, processes};

fn main() {
    brigade::init();
    let mut arguments = std::env::args().skip(1);
    let scenario = arguments.next().expect("a scenario");
    let count: u32 =
        arguments.next().and_then(|count| count.parse().ok()).expect("a number of pools");
    let scenario: fn() = match scenario.as_str() {
        "unused" => || drop(pool(2)),
        "used" => used,
        "crashed" => crashed,
        "killed" => killed,
        "cancelled" => cancelled,
        "broken" => broken,
        "large" => large,
        "scribbled" => scribbled,
        "set-up" => set_up,
        "ill-set-up" => ill_set_up,
        "called_back" => called_back,
        "buffers" => buffers,
        "streams" => streams,
        other => panic!("unknown scenario: {other}"),
    };
    let check = LeakCheck::new();
    // The first rounds fill caches that stay: those of the allocator and the runtime.
    (0..count.div_ceil(5)).for_each(|_| scenario());
    let resident = processes::resident_memory();
    (0..count).for_each(|_| scenario());
    check.assert_none(BOUND);
    let growth = processes::resident_memory().saturating_sub(resident);
    assert!(growth < 8 << 20, "{count} pools made the process {growth} bytes larger");
}

fn pool(workers: usize) -> Pool {
    Pool::builder().workers(workers).build().expect("a pool")
}

fn used() {
    let pool = pool(2);
    assert_eq!(pool.map(echoes, (0..20).map(|byte| vec![byte; 100])).flatten().count(), 20);
    // One handle outlives its pool; another is dropped before its task is done.
    let kept = pool.submit(sleeps, 0).expect("a task");
    drop(pool.submit(sleeps, 0).expect("a task"));
    drop(pool);
    outcome(kept).expect("a result");
}

fn streams() {
    let pool = pool(2);
    let [closed, dropped] = [(); 2].map(|()| pool.stream(echoes).start().expect("a stream"));
    let flat = pool.stream_flat(|bytes: Vec<u8>, emit| {
        for byte in bytes {
            if emit.emit(byte).is_err() {
                return;
            }
        }
    });
    let flat = flat.start().expect("a stream");
    for stream in [&closed, &dropped] {
        for byte in 0..4 {
            stream.put(vec![byte; 1000]).expect("a place");
        }
    }
    flat.put(vec![7; 50]).expect("a place");
    assert_eq!(flat.recv().expect("an item").result.expect("a byte"), 7);
    closed.close(BOUND).expect("an end");
    flat.close(BOUND).expect("an end");
    drop(dropped);
    outcome(pool.submit(sleeps, 0).expect("a task")).expect("a result");
}

fn crashed() {
    let pool = pool(1);
    outcome(pool.submit(aborts, ()).expect("a task")).expect_err("a death");
    outcome(pool.submit(panics_with_str, ()).expect("a task")).expect_err("a panic");
    outcome(pool.submit(sleeps, 0).expect("a task")).expect("a result");
}

fn killed() {
    let pool = pool(2);
    let handles = [(); 3].map(|()| pool.submit(hangs, ()).expect("a task"));
    pool.shutdown_with(Shutdown::Kill, BOUND).expect("an end");
    assert!(handles.iter().all(brigade::Handle::is_done));
}

fn cancelled() {
    let pool = pool(1);
    let handles = [1; 20].map(|time| pool.submit(sleeps, time).expect("a task"));
    assert!(handles.iter().rev().filter(|handle| handle.cancel()).count() > 0);
}

fn broken() {
    let pool = Pool::builder()
        .workers(1)
        .worker_command(&Command::new("/bin/false"))
        .build()
        .expect("a pool");
    outcome(pool.submit(sleeps, 0).expect("a task")).expect_err("no worker");
    pool.shutdown().expect_err("it is broken");
}

fn large() {
    let pool = pool(1);
    let handle = pool.submit(echoes, vec![1; 4 << 20]).expect("a task");
    // The worker may die in the middle of it.
    drop(pool.submit(echoes, vec![1; 4 << 20]).expect("a task"));
    outcome(handle).expect("a result");
    pool.shutdown_with(Shutdown::Kill, BOUND).expect("an end");
}

fn scribbled() {
    let pool = Pool::builder().workers(1).link(Link::Ring).build().expect("a pool");
    let journal = tempfile::NamedTempFile::new().expect("a journal");
    let scribble = |target| Scribble {
        target,
        then: Then::Returns,
        seed: 0,
        journal: journal.path().to_owned(),
    };
    for target in [Target::Positions, Target::SlotTable, Target::Messages] {
        // The host may have noticed in time.
        let _ = outcome(pool.submit(scribbles, scribble(target)).expect("a task"));
        let _ = outcome(pool.submit(sleeps, 0).expect("a task"));
    }
    let task = pool.task(sleeps).retries(2);
    outcome(task.submit(0).expect("a task")).expect("a result");
}

fn set_up() {
    let pool = Pool::builder()
        .workers(2)
        .stdio(Stdio::Capture)
        .initializer(|bytes: Vec<u8>| bytes, vec![1; 1 << 16])
        .finalizer(|| ())
        .build()
        .expect("a pool");
    outcome(pool.submit(prints_a_mebibyte, ()).expect("a task")).expect("a result");
    outcome(pool.submit(aborts, ()).expect("a task")).expect_err("a death");
    outcome(pool.submit(sleeps, 0).expect("a task")).expect("a result");
}

fn ill_set_up() {
    let pool = Pool::builder()
        .workers(2)
        .stdio(Stdio::Capture)
        .try_initializer(|why: String| -> Result<(), String> { Err(why) }, "no".to_owned())
        .build()
        .expect("a pool");
    outcome(pool.submit(sleeps, 0).expect("a task")).expect_err("no worker");
    pool.shutdown().expect_err("it is broken");
}

fn called_back() {
    let pool = pool(1);
    for time in [0, 1] {
        pool.submit(sleeps, time).expect("a task").on_done(|outcome| assert!(outcome.is_ok()));
    }
    let hanging = [(); 2].map(|()| pool.submit(hangs, ()).expect("a task"));
    // Some waits end before their task does.
    for until in [Until::First, Until::All, Until::FirstError] {
        assert_eq!(wait(&hanging, until, Duration::ZERO).pending.len(), 2);
    }
    let [hanging, dropped] = hanging;
    drop(as_completed([dropped]));
    pool.shutdown_with(Shutdown::Kill, BOUND).expect("an end");
    // The handle outlives its pool, and so may the thread that runs the callback.
    let (sender, receiver) = channel();
    hanging.on_done(move |outcome| sender.send(outcome.is_err()).expect("somebody waits"));
    assert!(receiver.recv_timeout(BOUND).expect("a call"));
}

fn buffers() {
    let pool = pool(2);
    // Small enough for the allocator to use its memory again.
    let large = SharedBuf::from(vec![1; 100 << 10]);
    let echo = |(buffer, then): (SharedBuf, u8)| match then {
        0 => buffer.slice(1..),
        1 => panic!("with a buffer"),
        2 => std::process::abort(),
        _ => buffer,
    };
    let submit = |then| pool.submit(echo, (large.clone(), then)).expect("a task");
    let kept = outcome(submit(0)).expect("a result");
    outcome(submit(1)).expect_err("a panic");
    outcome(submit(2)).expect_err("a death");
    // One is dropped before it is done, another without being decoded.
    drop(submit(0));
    let done = submit(0);
    wait(&[done], Until::All, BOUND);
    let mistyped = pool.submit(|buffer: SharedBuf| (buffer, 7_u8), large.clone());
    drop(mistyped.expect("a task"));
    let inputs = (0..20).map(|number| (large.slice(..50_000), number % 4));
    let mut results = pool.map(echo, inputs).chunk(6).retries(1);
    assert!(results.by_ref().take(12).flatten().count() > 0);
    drop(results);
    pool.shutdown_with(Shutdown::Kill, BOUND).expect("an end");
    assert_eq!(kept, large.slice(1..));
}
