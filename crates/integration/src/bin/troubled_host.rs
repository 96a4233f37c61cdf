//! A program with a pool in bad surroundings: a stderr that nobody reads, a subscriber that panics,
//! queries the pool or blocks, too few descriptors, lost privileges. Each mode prints `well` if the
//! pool keeps its promises nevertheless.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output the tests read")]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::io::Write;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brigade::{Handle, Pool, PoolError, Shutdown, TaskErrorKind};
use brigade_testkit::faults::{aborts, hangs, spins};
use brigade_testkit::{BOUND, Watchdog, outcome, processes};
use brigade_testkit_sys::misdeeds;
use tracing::{Event, Metadata, Subscriber, span};

fn main() {
    brigade::init();
    let mode = std::env::args().nth(1).expect("a mode");
    let _watchdog = Watchdog::new(mode.clone(), BOUND);
    match mode.as_str() {
        "stderr-not-read" => stderr_is_not_read(),
        "subscriber-panics" => subscriber(|_| panic!("a subscriber panics"), deaths_and_deadlines),
        "subscriber-asks" => subscriber(asks, deaths_and_deadlines),
        "subscriber-blocks" => subscriber(blocks, || {
            deaths_and_deadlines();
            assert!(BLOCKED.load(Ordering::Acquire), "the subscriber was not called");
        }),
        "subscriber-shuts-down" => subscriber(shuts_down, breaks),
        "few-descriptors" => few_descriptors(),
        "gives-up-rights" => gives_up_rights(),
        other => panic!("unknown mode: {other}"),
    }
    println!("well");
}

/// The pool that subscribers query.
static POOL: OnceLock<Pool> = OnceLock::new();

fn pool() -> &'static Pool {
    POOL.get_or_init(|| {
        Pool::builder().workers(2).stop_grace(Duration::from_millis(200)).build().expect("a pool")
    })
}

/// Checks the promises of every pool: it reports a death, keeps a deadline, runs tasks, and ends.
fn deaths_and_deadlines() {
    let pool = pool();
    for _ in 0..2 {
        let died = outcome(pool.submit(aborts, ()).expect("a task")).expect_err("a death");
        assert!(matches!(died.kind(), TaskErrorKind::WorkerDied { .. }), "{died}");
        let late = outcome(hanging(pool)).expect_err("late");
        assert!(matches!(late.kind(), TaskErrorKind::DeadlineExceeded { .. }), "{late}");
        for number in 0..20 {
            outcome(pool.submit(spins, number).expect("a task")).expect("a result");
        }
    }
    let killed = pool.submit(hangs, ()).expect("a task");
    let began = Instant::now();
    let report = pool.shutdown_with(Shutdown::Kill, Duration::from_millis(300)).expect("an end");
    assert!(began.elapsed() < BOUND / 2, "the shutdown took {:?}", began.elapsed());
    assert_eq!(report.killed + report.cancelled, 1, "{report:?}");
    outcome(killed).expect_err("it was killed");
}

/// Submits a task that is ended by its deadline.
fn hanging(pool: &Pool) -> Handle<()> {
    pool.task(hangs).deadline(Duration::from_millis(100)).submit(()).expect("a task")
}

/// Runs while the test that started this program holds the other end of stderr and does not read
/// it.
fn stderr_is_not_read() {
    fn prints((): ()) {
        // More than a pipe holds: the rest waits in the worker's own pipe.
        let _ = std::io::stderr().write_all(&vec![b'x'; 100 << 10]);
    }
    outcome(pool().submit(prints, ()).expect("a task")).expect("it does not wait for anybody");
    for handle in pool().broadcast(prints, ()).expect("tasks") {
        outcome_or_death(handle);
    }
    deaths_and_deadlines();
}

/// While the pipes are full, a task that prints waits until something ends it.
fn outcome_or_death(mut handle: Handle<()>) {
    if handle.wait_timeout(Duration::from_millis(200)).is_none() {
        handle.kill();
    }
}

/// Runs `run` while a subscriber calls `on_event` for each event.
fn subscriber(on_event: fn(&Event<'_>), run: impl FnOnce()) {
    tracing::subscriber::set_global_default(Trouble(on_event)).expect("no other subscriber");
    run();
}

/// Queries the pool from a subscriber, possibly while the pool holds its own lock.
fn asks(_: &Event<'_>) {
    if let Some(pool) = POOL.get() {
        assert!(pool.worker_restarts() < 1_000_000);
        assert!(format!("{pool:?}").contains("Pool"));
    }
}

static BLOCKED: AtomicBool = AtomicBool::new(false);

fn blocks(_: &Event<'_>) {
    BLOCKED.store(true, Ordering::Release);
    loop {
        std::thread::park();
    }
}

static SHUT_DOWN: AtomicBool = AtomicBool::new(false);

fn shuts_down(event: &Event<'_>) {
    if *event.metadata().level() == tracing::Level::ERROR
        && let Some(pool) = POOL.get()
    {
        // This does not block on the thread that emits events.
        let _ = pool.shutdown_with(Shutdown::Kill, Duration::ZERO);
        SHUT_DOWN.store(true, Ordering::Release);
    }
}

/// Runs a pool whose workers cannot start, which breaks and reports that.
fn breaks() {
    let pool = POOL.get_or_init(|| {
        Pool::builder().workers(2).worker_command(&Command::new("true")).build().expect("a pool")
    });
    let broken = outcome(pool.submit(spins, 1).expect("a task")).expect_err("no worker");
    assert!(matches!(broken.kind(), TaskErrorKind::PoolBroken { .. }), "{broken}");
    pool.shutdown().expect_err("the pool is broken");
    assert!(SHUT_DOWN.load(Ordering::Acquire), "the subscriber was not called");
}

/// Forbids this program to open more files once its workers have started.
fn few_descriptors() {
    for limit in [6, 0] {
        let pool = Pool::builder().workers(4).build().expect("a pool");
        pool.warm_up().expect("all workers");
        processes::forbid_descriptors_from(limit);
        let died = outcome(pool.submit(aborts, ()).expect("a task")).expect_err("a death");
        assert!(matches!(died.kind(), TaskErrorKind::WorkerDied { .. }), "{died}");
        let late = outcome(hanging(&pool)).expect_err("late");
        assert!(matches!(late.kind(), TaskErrorKind::DeadlineExceeded { .. }), "{late}");
        for number in 0..20 {
            outcome(pool.submit(spins, number).expect("a task")).expect("a result");
        }
        let _running = pool.submit(hangs, ()).expect("a task");
        // The pool may be broken, because no worker can be replaced.
        let _ = pool.shutdown_with(Shutdown::Kill, Duration::from_millis(300));
        drop(pool);
        processes::forbid_descriptors_from(1024);
    }
}

/// Gives up the program's privileges once its workers have started, so that it may not kill them
/// any more.
fn gives_up_rights() {
    let pool = Pool::builder().workers(2).build().expect("a pool");
    pool.warm_up().expect("all workers");
    let workers = pool.worker_pids();
    let may_not_kill = misdeeds::drop_privileges();
    let task = pool.task(hangs).deadline(Duration::from_millis(100));
    let late = outcome(task.submit(()).expect("a task")).expect_err("late");
    assert!(matches!(late.kind(), TaskErrorKind::DeadlineExceeded { .. }), "{late}");
    let began = Instant::now();
    let ended = pool.shutdown_with(Shutdown::Kill, Duration::from_millis(300));
    assert!(began.elapsed() < BOUND / 2, "the shutdown took {:?}", began.elapsed());
    if may_not_kill {
        let Err(PoolError::LeftBehind { pids }) = ended else { panic!("{ended:?}") };
        assert!(!pids.is_empty() && pids.iter().all(|pid| workers.contains(pid)), "{pids:?}");
    } else {
        ended.expect("an end");
    }
}

struct Trouble(fn(&Event<'_>));

impl Subscriber for Trouble {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("brigade")
    }

    fn event(&self, event: &Event<'_>) {
        (self.0)(event);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}
