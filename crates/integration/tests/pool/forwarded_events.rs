//! Events that tasks emit, forwarded to the subscriber of the host.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;

use brigade::{Pool, PoolBuilder};
use brigade_integration::{Emitted, Spans, builder};
use brigade_testkit::{BOUND, Gate, Pass, outcome, pass, processes, wait_until};
use brigade_wire::worker_event::{FieldValue, WorkerEvent};
use tracing::{Level, debug, error, info, trace, warn};

const TARGET: &str = "app::db";

/// Builds a pool with its own name, so that its events differ from those of other tests.
fn forwarding(name: &str) -> PoolBuilder {
    // Before any event, so that none is missed.
    Spans::get();
    builder(1).name(name).forward_events(Level::INFO)
}

#[track_caller]
fn wait_for_events(pool: &str, count: usize) -> Vec<Emitted> {
    let events = || Spans::get().events(pool, TARGET);
    wait_until(&format!("{count} events"), BOUND, || events().len() >= count);
    events()
}

fn emits(number: u64) -> bool {
    info!(
        target: TARGET, number, negative = -3, ratio = 0.5, ok = true, name = "x", id = ?Some(1),
        worker = "a field that the host has, too", "asked {number} times"
    );
    debug!(target: TARGET, "too detailed");
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

#[test]
fn an_event_arrives_with_its_fields_and_its_origin() {
    let pool = forwarding("fields").build().unwrap();
    let handle = pool.submit(emits, 7).unwrap();
    let task = handle.id().get().to_string();
    assert!(!outcome(handle).unwrap(), "a level that is not forwarded is not enabled");
    let [event] = <[Emitted; 1]>::try_from(wait_for_events("fields", 1)).unwrap();
    assert_eq!((event.level, event.thread.as_str()), (Level::INFO, "brigade-output"));
    let pid = pool.worker_pids()[0].to_string();
    for (field, value) in [
        ("message", "asked 7 times"),
        ("number", "7"),
        ("negative", "-3"),
        ("ratio", "0.5"),
        ("ok", "true"),
        ("name", "x"),
        ("id", "Some(1)"),
        ("event.worker", "a field that the host has, too"),
        ("worker", "worker 0.1"),
        ("pid", &pid),
        ("task", &task),
        ("attempt", "1"),
    ] {
        assert_eq!(event.field(field), value, "{field}");
    }
}

#[test]
fn events_before_a_crash_arrive_before_the_outcome() {
    fn dies(count: u64) {
        (0..count).for_each(|number| warn!(target: TARGET, number, "still well"));
        std::process::abort();
    }
    let pool = forwarding("crash").build().unwrap();
    outcome(pool.submit(dies, 100).unwrap()).unwrap_err();
    let events = Spans::get().events("crash", TARGET);
    let numbers = events.iter().map(|event| event.field("number").parse::<u64>().unwrap());
    assert!(numbers.eq(0..100), "{events:#?}");
}

#[test]
fn a_task_that_was_killed_behind_a_crash_does_not_run() {
    fn crashes(gate: Pass) {
        pass(gate);
        warn!(target: TARGET, "the report of the death waits for this");
        std::process::abort();
    }
    let pool = forwarding("behind").build().unwrap();
    // So brief that the next task is sent ahead.
    (0..40).for_each(|number| assert!(!outcome(pool.submit(emits, number).unwrap()).unwrap()));
    let pid = pool.worker_pids()[0];
    let gate = Gate::new();
    let crashing = pool.submit(crashes, gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    let behind = pool.submit(emits, 0).unwrap();
    Spans::get().hold(Some("behind"));
    gate.open();
    wait_until("the end of the worker", BOUND, || !processes::is_alive(pid));
    let is_killed = behind.kill();
    Spans::get().hold(None);
    assert!(outcome(crashing).unwrap_err().is_worker_death());
    assert_eq!(outcome(behind).is_err(), is_killed);
}

#[test]
fn initializers_and_items_of_maps_emit_events_too() {
    fn prepares((): ()) {
        error!(target: TARGET, "prepared");
    }
    let pool = forwarding("map").initializer(prepares, ()).build().unwrap();
    assert!(pool.map(emits, 0..50).all(|item| item.is_ok()));
    let events = wait_for_events("map", 51);
    assert_eq!((events[0].level, events[0].field("task")), (Level::ERROR, ""));
    let first: u64 = events[1].field("task").parse().unwrap();
    let tasks = events[1..].iter().map(|event| event.field("task").parse::<u64>().unwrap());
    assert!(tasks.eq(first..first + 50), "each item has its own number");
}

#[test]
fn events_that_are_too_long_are_cut() {
    fn babbles(bytes: usize) {
        let long = "ä".repeat(bytes);
        info!(target: TARGET, long, second = ?long, number = 1, "{long}");
    }
    let pool = forwarding("long").build().unwrap();
    outcome(pool.submit(babbles, 1 << 20).unwrap()).unwrap();
    let event = wait_for_events("long", 1).remove(0);
    let length: usize = event.fields.values().map(String::len).sum();
    assert!((3_000..5_000).contains(&length), "{event:?}");
}

#[test]
fn events_that_a_slow_subscriber_loses_are_counted() {
    const EVENTS: u64 = 20_000;
    fn floods(count: u64) {
        (0..count).for_each(|number| info!(target: TARGET, number, "again"));
    }
    let pool = forwarding("flood").build().unwrap();
    pool.warm_up().unwrap();
    Spans::get().hold(Some("flood"));
    outcome(pool.submit(floods, EVENTS).unwrap()).unwrap();
    Spans::get().hold(None);
    // The pipe was full at the end. The next task reports what was lost.
    let complete = || {
        outcome(pool.submit(floods, 0).unwrap()).unwrap();
        let reports = Spans::get().events("flood", REPORTS);
        let lost: u64 =
            reports.iter().filter_map(|event| event.field("events").parse::<u64>().ok()).sum();
        let arrived = Spans::get().events("flood", TARGET).len() as u64;
        assert!(arrived + lost <= EVENTS, "{arrived} arrived, {lost} lost");
        lost > 0 && arrived + lost == EVENTS
    };
    wait_until("all events to have arrived or to be counted", BOUND, complete);
}

/// The target of the host's own events about what workers send.
const REPORTS: &str = "brigade_supervisor::workers::output::forwarded";

/// Writes to the pipe through which this worker forwards events.
fn writes(bytes: Vec<u8>) -> usize {
    let mut found = 0;
    for entry in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let number: u32 = entry.file_name().to_str().unwrap().parse().unwrap();
        let Ok(kind) = fs::metadata(entry.path()) else { continue };
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or("0");
        let is_written = u32::from_str_radix(flags.trim(), 8).unwrap() & 3 == 1;
        if number > 2 && kind.file_type().is_fifo() && is_written {
            File::options().write(true).open(entry.path()).unwrap().write_all(&bytes).unwrap();
            found += 1;
        }
    }
    found
}

#[track_caller]
fn wait_for_report(pool: &str, words: &str) -> usize {
    let reports = || {
        let mut events = Spans::get().events(pool, REPORTS);
        events.retain(|event| event.field("message").contains(words));
        events.len()
    };
    wait_until(words, BOUND, || reports() > 0);
    reports()
}

fn writes_once(pool: &Pool, bytes: Vec<u8>) {
    assert_eq!(outcome(pool.submit(writes, bytes).unwrap()).unwrap(), 1);
}

#[test]
fn garbage_costs_only_the_events_of_its_worker() {
    let pool = forwarding("garbage").workers(2).build().unwrap();
    for garbage in [vec![0xff; 1 << 16], b"\x03\x00abc".to_vec(), vec![0; 3]] {
        writes_once(&pool, garbage);
        wait_for_report("garbage", "malformed");
        pool.quiesce().unwrap();
        let before = Spans::get().events("garbage", TARGET).len();
        outcome(pool.submit(emits, 1).unwrap()).unwrap();
        wait_for_events("garbage", before + 1);
    }
    assert_eq!(wait_for_report("garbage", "malformed"), 3);
}

#[test]
fn a_worker_cannot_add_any_number_of_callsites() {
    let pool = forwarding("many").build().unwrap();
    for target in 0..1_100 {
        let target = format!("target-{target}");
        let fields = vec![("message", FieldValue::Text("x"))];
        let level = Level::INFO.into();
        let event = WorkerEvent { target: &target, level, fields, ..WorkerEvent::lost(0) };
        writes_once(&pool, event.encode().unwrap());
    }
    wait_for_report("many", "too many different ones");
    assert_eq!(Spans::get().events("many", "target-1023").len(), 1);
    assert_eq!(Spans::get().events("many", "target-1024").len(), 0);
    outcome(pool.submit(emits, 1).unwrap()).unwrap();
}

#[test]
fn without_the_setting_nothing_is_forwarded() {
    fn asks((): ()) -> bool {
        trace!(target: TARGET, "nobody listens");
        tracing::enabled!(target: TARGET, Level::ERROR)
    }
    Spans::get();
    let pool = builder(1).name("silent").build().unwrap();
    assert!(!outcome(pool.submit(asks, ()).unwrap()).unwrap());
    assert_eq!(outcome(pool.submit(writes, vec![0]).unwrap()).unwrap(), 0);
}
