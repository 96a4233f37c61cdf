//! A snapshot for tests of what shows metrics.

use serde_json::{Value, json};

/// Returns the snapshot of a pool that never existed, with this number of workers, in the form of
/// `PoolSnapshot`. Its numbers are consistent. Labels and error texts contain characters that
/// exporters must escape.
pub fn example_snapshot(workers: u32) -> Value {
    let workers: Vec<Value> = (0..workers).map(worker).collect();
    let running = workers.iter().filter(|worker| !worker["running"].is_null()).count();
    let deaths: u64 = workers.iter().filter_map(|worker| worker["restarts"].as_u64()).sum();
    json!({
        "pool": 1,
        "name": "thumbnails",
        "age": 754.0,
        "state": "open",
        "enqueued": 12_345 + running,
        "finished": 12_000,
        "cancelled": 45,
        "pending": 300 + running,
        "queued": 300,
        "running": running,
        "max_queue_depth": 4096,
        "succeeded": 11_994,
        "failures": { "panicked": 2, "worker_died": 3, "deadline": 1 },
        "recent_failures": (0..6).map(failure).collect::<Vec<_>>(),
        "attempts": 12_003,
        "bytes_in": 3_456_789_012_u64,
        "bytes_out": 98_765_432,
        "queue_time": times(12_000, 40),
        "start_time": times(2 + deaths, 2_400),
        "run_time": times(12_000, 900),
        "delivery_time": times(12_000, 3),
        "labels": [
            label("decode", 9_000, 2),
            label("<img src=x> \"filter\" \\ line\nbreak", 2_900, 4),
            label("(other)", 100, 0),
        ],
        "slowest": (0..5).map(slow).collect::<Vec<_>>(),
        "restarts": deaths,
        "executed": 2,
        "forked": deaths,
        "fork_server": 39_999,
        "deaths": deaths,
        "history": (0..600).rev().filter(|ago| ago % 97 > 5).map(second).collect::<Vec<_>>(),
        "workers": workers,
    })
}

fn worker(slot: u32) -> Value {
    let state = ["busy", "busy", "busy", "idle", "busy", "starting", "stopping", "vacant"]
        [slot as usize % 8];
    let running = json!({
        "task": 12_046 + slot,
        "attempt": 1 + slot % 3 / 2,
        "label": "decode",
        "items": 1,
        "elapsed": f64::from(slot * 37 % 1_000) / 1e3,
    });
    json!({
        "slot": slot,
        "generation": 1 + slot % 4,
        "pid": (state != "vacant").then_some(40_000 + slot),
        "state": state,
        "running": (state == "busy").then_some(running),
        "tasks": 6_000 / (slot + 1),
        "failures": slot % 3,
        "restarts": slot % 4,
        "bytes_in": 1_728_394_506 / (slot + 1),
        "bytes_out": 49_382_716 / (slot + 1),
        "shares": { "start": 0.02, "initialize": 0.03, "wait": 0.15, "run": 0.79, "exit": 0.01 },
        "slowest": (0..5).map(slow).collect::<Vec<_>>(),
    })
}

/// Returns times whose median has this number of microseconds.
fn times(count: u64, median: u32) -> Value {
    let part = |percent: u32| f64::from(percent * median) / 1e8;
    json!({
        "count": count,
        "min": part(20),
        "mean": part(130),
        "p50": part(100),
        "p90": part(210),
        "p95": part(340),
        "p99": part(900),
        "max": part(5_200),
    })
}

fn label(label: &str, finished: u64, failed: u64) -> Value {
    json!({
        "label": label,
        "finished": finished,
        "failed": failed,
        "run_time": times(finished, 900),
        "queue_time": times(finished, 40),
    })
}

fn slow(rank: u32) -> Value {
    json!({
        "task": 1_000 + rank * 7,
        "label": if rank == 1 { "" } else { "decode" },
        "worker": format!("{}.1", rank % 2),
        "run_time": f64::from(4_680 / (rank + 1)) / 1e3,
        "ago": f64::from(61 * rank),
    })
}

fn failure(number: u32) -> Value {
    let (kind, text) = match number % 3 {
        0 => ("worker_died", "lost its worker (pid 40001): killed by SIGSEGV"),
        1 => ("panicked", "panicked at src/main.rs:12:5: <b>not</b> a picture"),
        _ => ("deadline", "exceeded its deadline of 2s (ended after 2.001s)"),
    };
    json!({
        "task": 11_999 - number * 13,
        "label": "decode",
        "kind": kind,
        "text": text,
        "worker": "1.2",
        "ago": f64::from(9 * number),
    })
}

fn second(ago: u32) -> Value {
    json!({
        "ago": f64::from(ago),
        "finished": 20 + ago * 7 % 31,
        "failed": u32::from(ago.is_multiple_of(120)),
        "max_queued": 300 + ago * 11 % 700,
        "busy": 1 + ago % 2,
    })
}
