//! Checks counted resources: who runs, who waits, and what a task learns of its share.

use std::path::PathBuf;
use std::time::Duration;

use brigade::{
    Pool, PoolBuilder, PoolError, Resource, Retry, SubmitErrorKind, TaskErrorKind, TaskState,
    worker,
};
use brigade_testkit::{BOUND, Gate, Pass, pass, wait_until};

fn pool() -> Pool {
    let builder = Pool::builder().workers(3).resource("gpu", Resource::Indexed(2));
    builder.resource("memory", Resource::Sum(8 << 30)).build().unwrap()
}

fn share((): ()) -> (Option<Vec<u32>>, Option<u64>) {
    (worker::indices("gpu"), worker::amount("memory"))
}

fn waits_with_gpu(ticket: Pass) -> Vec<u32> {
    pass(ticket);
    worker::indices("gpu").unwrap_or_default()
}

#[test]
fn a_task_learns_what_it_has() {
    let pool = pool();
    let of = |gpus, bytes| pool.task(share).needs("gpu", gpus).needs("memory", bytes);
    assert_eq!(
        of(2, 1 << 30).submit(()).unwrap().wait().unwrap(),
        (Some(vec![0, 1]), Some(1 << 30))
    );
    assert_eq!(of(0, 5).submit(()).unwrap().wait().unwrap(), (None, Some(5)));
    assert_eq!(pool.submit(share, ()).unwrap().wait().unwrap(), (None, None));
    assert_eq!(share(()), (None, None));
}

#[test]
fn tasks_that_run_at_a_time_have_different_pieces() {
    let (pool, gate) = (pool(), Gate::new());
    let task = pool.task(waits_with_gpu).needs("gpu", 1);
    let handles: Vec<_> = (0..3).map(|n| task.submit(gate.pass(n)).unwrap()).collect();
    gate.wait_for_arrivals(2);
    // A third worker is free, and this task runs there past the one that waits for a GPU.
    pool.submit(share, ()).unwrap().wait().unwrap();
    assert_eq!(gate.arrivals(), 2);
    assert_eq!(handles[2].state(), TaskState::Queued);
    gate.open();
    let mut gpus: Vec<_> = handles.into_iter().map(|handle| handle.wait().unwrap()).collect();
    gpus.pop();
    gpus.sort();
    assert_eq!(gpus, [[0], [1]]);
}

#[test]
fn what_a_dead_worker_had_is_free_again() {
    let pool = pool();
    let task = pool.task(|()| -> () { std::process::abort() }).needs("gpu", 2);
    let died = task.submit(()).unwrap().wait().unwrap_err();
    assert!(died.is_worker_death(), "{died}");
    let late = pool.task(|()| std::thread::park_timeout(BOUND)).needs("gpu", 2);
    let late = late.deadline(Duration::from_millis(20)).submit(()).unwrap().wait().unwrap_err();
    assert!(matches!(late.kind(), TaskErrorKind::DeadlineExceeded { .. }), "{late}");
    let all = pool.task(share).needs("gpu", 2).submit(()).unwrap().wait().unwrap();
    assert_eq!(all.0, Some(vec![0, 1]));
}

/// Writes the number of its process, which ends with memory that takes long to be cleaned up.
fn ends_with_memory((file, way): (PathBuf, String)) {
    std::fs::write(file, std::process::id().to_string()).unwrap();
    let memory = std::hint::black_box(vec![1_u8; MEMORY]);
    match &way[..] {
        "abort" => std::process::abort(),
        "return" => std::mem::forget(memory),
        _ => std::thread::park_timeout(BOUND),
    }
}

const MEMORY: usize = 256 << 20;

#[test]
fn nobody_shares_a_piece_with_a_process_that_is_ending() {
    let folder = tempfile::tempdir().unwrap();
    let plain = || Pool::builder().workers(1);
    let fresh = || plain().fresh_process_per_task();
    let counted = |it: PoolBuilder| it.resource("gpu", Resource::Indexed(1)).build().unwrap();
    let by_slot =
        |it: PoolBuilder| it.env_per_slot(|slot| [("GPU", slot.to_string())]).build().unwrap();
    let exists = |file: PathBuf| {
        let pid = std::fs::read_to_string(file).unwrap();
        std::path::Path::new("/proc").join(pid).exists()
    };
    let ways = ["deadline", "kill", "abort", "return"];
    for (number, (pool, gpus, ways)) in [
        (counted(plain()), 1, &ways[..3]),
        (by_slot(plain()), 0, &ways[..3]),
        (counted(fresh()), 1, &ways[..]),
        (by_slot(fresh()), 0, &ways[..]),
    ]
    .into_iter()
    .enumerate()
    {
        for &way in ways {
            let file = folder.path().join(format!("{number} {way}"));
            let limit = Duration::from_millis(if way == "deadline" { 500 } else { 60_000 });
            let ends = pool.task(ends_with_memory).deadline(limit);
            let ends = if gpus > 0 { ends.needs("gpu", gpus) } else { ends };
            let ends = ends.submit((file.clone(), way.to_owned())).unwrap();
            let next = pool.task(exists);
            let next = if gpus > 0 { next.needs("gpu", gpus) } else { next };
            let next = next.submit(file.clone()).unwrap();
            if way == "kill" {
                let pid = || std::fs::read_to_string(&file).unwrap_or_default();
                let has_memory = || pid().parse().is_ok_and(|pid| resident_of(pid) > MEMORY);
                wait_until("a lot of memory", BOUND, has_memory);
                assert!(ends.kill());
            }
            assert_eq!(ends.wait().is_ok(), way == "return", "{number}, {way}");
            assert!(!next.wait().unwrap(), "{number}, {way}: the process still exists");
        }
    }
}

/// Returns the resident memory of a process in bytes.
fn resident_of(pid: u32) -> usize {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
}

#[test]
fn a_map_takes_its_share_for_each_chunk() {
    let pool = pool();
    let gpus = |_: u32| worker::indices("gpu").unwrap();
    for result in pool.map(gpus, 0..100).chunk(5).needs("gpu", 1) {
        assert!(matches!(result.unwrap()[..], [0 | 1]));
    }
    let stream = pool.stream(gpus).needs("gpu", 2).start().unwrap();
    stream.put(0).unwrap();
    stream.finish();
    assert_eq!(stream.recv().unwrap().result.unwrap(), [0, 1]);
}

#[test]
fn needs_that_can_never_be_met_are_errors() {
    let pool = pool();
    let error = pool.task(share).needs("tpu", 1).submit(()).unwrap_err();
    assert!(matches!(error.kind(), SubmitErrorKind::Needs { .. }));
    let text = "the task can never run: there is no resource \"tpu\": declared are gpu, memory";
    assert_eq!(error.to_string(), text);
    let mut results = pool.map(|x: u32| x, 0..9).needs("gpu", 3);
    let error = results.next().unwrap().unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::Needs { .. }), "{error}");
    let text = "can never run: 3 of the resource \"gpu\" are needed, and there are only 2";
    assert!(error.to_string().contains(text), "{error}");
    assert!(results.by_ref().all(|result| result.is_err()));
    let stream = pool.stream(|x: u32| x).needs("gpu", 3).start().unwrap_err();
    assert!(matches!(stream, PoolError::Configuration { field: "needs", .. }));
    let twice = Pool::builder().resource("a", Resource::Sum(1)).resource("a", Resource::Sum(1));
    let twice = twice.build().unwrap_err().to_string();
    assert!(twice.contains("resource") && twice.contains("declared twice"), "{twice}");
}

#[test]
fn a_task_that_waits_for_its_next_attempt_has_nothing() {
    let pool = pool();
    let fails = |()| -> Result<(), ()> { Err(()) };
    let retry = Retry::new().attempts(2).delay(2 * BOUND);
    let paused = pool.task(fails).retry(retry).retry_errors().needs("gpu", 2).submit(()).unwrap();
    pool.task(share).needs("gpu", 2).submit(()).unwrap().wait().unwrap();
    wait_until("the pause is over", BOUND, || paused.state() == TaskState::Queued);
    paused.cancel();
    assert!(matches!(paused.wait().unwrap_err().kind(), TaskErrorKind::Cancelled));
}
