//! Limits on what tasks take: each has an outcome of its own, and the next task runs.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use brigade::{
    Hold, Layer, Limit, Limits, Link, Pool, PoolBuilder, Sandbox, TaskError, TaskErrorKind,
};
use brigade_integration::{builder, square};
use brigade_testkit::{BOUND, LeakCheck, outcome, processes, repetitions, wait_until};
use brigade_testkit_sys::misdeeds;

const MEBIBYTE: u64 = 1 << 20;

/// Takes memory until there is none.
fn takes_memory(mebibytes: usize) -> usize {
    let blocks: Vec<_> = (0..mebibytes).map(|_| black_box(vec![1_u8; 1 << 20])).collect();
    blocks.len()
}

/// Takes memory that is shared, which is not private memory of the process.
fn takes_shared_memory(mebibytes: usize) -> usize {
    let file = misdeeds::memory_file().unwrap();
    let mapped = misdeeds::map_shared(&file, mebibytes << 20).unwrap();
    for offset in (0..mebibytes << 20).step_by(4096) {
        misdeeds::write(mapped + offset as u64);
    }
    mebibytes
}

/// Computes until it has had this much processor time.
fn computes(millis: u64) -> u64 {
    let cpu = || brigade_sys::clock::cpu_time_of(std::process::id()).unwrap();
    let begin = cpu();
    while cpu().saturating_sub(begin) < Duration::from_millis(millis) {
        for number in 0..10_000_u64 {
            black_box(number);
        }
    }
    millis
}

fn sleeps(millis: u64) -> u64 {
    brigade_testkit::pause(Duration::from_millis(millis));
    millis
}

fn writes_a_file(bytes: usize) -> usize {
    let mut file = tempfile_in_tmp();
    file.write_all(&vec![0; bytes]).unwrap();
    bytes
}

fn tempfile_in_tmp() -> File {
    tempfile::tempfile().unwrap()
}

#[expect(unconditional_recursion, reason = "it is to overflow the stack")]
fn recurses(depth: u64) -> u64 {
    let frame = black_box([depth; 512]);
    black_box(recurses(depth + 1)) + frame[0]
}

fn opens_files(count: usize) -> usize {
    let files: Result<Vec<_>, _> = (0..count).map(|_| File::open("/dev/null")).collect();
    files.map_or(0, |files| files.len())
}

fn starts_threads(count: usize) -> usize {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Arc::new(std::sync::Mutex::new(gate));
    let started = (0..count)
        .map_while(|_| {
            let gate = std::sync::Arc::clone(&gate);
            let wait = move || gate.lock().unwrap().recv().unwrap_or(());
            std::thread::Builder::new().stack_size(64 << 10).spawn(wait).ok()
        })
        .count();
    drop(open);
    started
}

fn exceeded(error: &TaskError) -> (Limit, Option<Limit>) {
    assert!(error.is_limit(), "{error}");
    match *error.kind() {
        TaskErrorKind::LimitExceeded { limit, used } => (limit, used),
        _ => unreachable!("{error}"),
    }
}

/// Returns the number of control groups that this process has made and that still exist.
fn groups_of_this_process() -> usize {
    fn below(folder: &Path, prefix: &str) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()));
        folders
            .map(|entry| {
                let is_ours = entry.file_name().to_string_lossy().starts_with(prefix);
                usize::from(is_ours) + below(&entry.path(), prefix)
            })
            .sum()
    }
    below(Path::new("/sys/fs/cgroup"), &format!("brigade-{}-", std::process::id()))
}

fn links() -> [Link; 2] {
    [Link::Ring, Link::Ipc]
}

fn works(pool: &Pool) {
    assert_eq!(outcome(pool.submit(square, 7).unwrap()).unwrap(), 49);
}

#[test]
fn a_task_that_takes_too_much_memory_is_named() {
    for link in links() {
        for is_shared in [false, true] {
            let run = |pool: &Pool, mebibytes| {
                outcome(if is_shared {
                    pool.submit(takes_shared_memory, mebibytes).unwrap()
                } else {
                    pool.submit(takes_memory, mebibytes).unwrap()
                })
            };
            let limits = Limits::new().memory(64 * MEBIBYTE);
            let pool = builder(1).link(link).limits(limits).build().unwrap();
            assert_eq!(run(&pool, 20).unwrap(), 20);
            let error = run(&pool, 10 << 10).unwrap_err();
            let (limit, used) = exceeded(&error);
            assert_eq!(limit, Limit::Memory(64 * MEBIBYTE), "{error}");
            if let Some(Limit::Memory(used)) = used {
                assert!((60 * MEBIBYTE..200 * MEBIBYTE).contains(&used), "{error}");
            }
            works(&pool);
        }
    }
}

#[test]
fn an_allocation_beyond_the_limit_is_named_whoever_refuses_it() {
    fn reserves(bytes: usize) -> usize {
        black_box(Vec::<u8>::with_capacity(bytes)).capacity()
    }
    let limits = Limits::new().memory(64 * MEBIBYTE);
    let pool = builder(1).limits(limits).build().unwrap();
    // The machine refuses it even if a control group would not.
    let error = outcome(pool.submit(reserves, 1 << 46).unwrap()).unwrap_err();
    assert_eq!(exceeded(&error).0, Limit::Memory(64 * MEBIBYTE), "{error}");
    works(&pool);
}

#[test]
fn a_limit_on_memory_says_by_which_means_it_holds() {
    let pool = builder(1).limits(Limits::new().memory(64 * MEBIBYTE)).build().unwrap();
    let report = pool.sandbox_report();
    assert!(
        matches!(report.get(Layer::Memory), Some(Hold::Enforced(_) | Hold::Partly(_))),
        "{report}"
    );
    assert_eq!(report.get(Layer::Files), None);
}

#[test]
fn a_memory_limit_of_a_task_is_not_that_of_others() {
    for pool_limit in [None, Some(256 * MEBIBYTE)] {
        let limits = pool_limit.map_or(Limits::new(), |bytes| Limits::new().memory(bytes));
        let pool = builder(1).limits(limits).build().unwrap();
        let small = pool.task(takes_memory).memory(32 * MEBIBYTE);
        for _ in 0..2 {
            assert_eq!(outcome(small.submit(8).unwrap()).unwrap(), 8);
            assert_eq!(outcome(pool.submit(takes_memory, 100).unwrap()).unwrap(), 100);
            let error = outcome(small.submit(100).unwrap()).unwrap_err();
            assert_eq!(exceeded(&error).0, Limit::Memory(32 * MEBIBYTE), "{error}");
        }
    }
}

#[test]
fn a_task_that_computes_too_long_ends_and_one_that_waits_not() {
    for link in links() {
        let limits = Limits::new().cpu_time(Duration::from_millis(300));
        let pool = builder(1).link(link).limits(limits).build().unwrap();
        assert_eq!(outcome(pool.submit(sleeps, 800).unwrap()).unwrap(), 800);
        assert_eq!(outcome(pool.submit(computes, 200).unwrap()).unwrap(), 200);
        let error = outcome(pool.submit(computes, 60_000).unwrap()).unwrap_err();
        let (limit, used) = exceeded(&error);
        assert_eq!(limit, Limit::CpuTime(Duration::from_millis(300)));
        let Some(Limit::CpuTime(used)) = used else { panic!("{error}") };
        assert!(used >= Duration::from_millis(300), "{error}");
        works(&pool);
        let own = pool.task(computes).cpu_time(Duration::from_secs(60));
        assert_eq!(outcome(own.submit(500).unwrap()).unwrap(), 500);
    }
}

fn leaves_a_thread_that_computes((): ()) {
    std::thread::spawn(|| {
        loop {
            black_box(0);
        }
    });
}

fn uses_threads_of_its_own(count: usize) -> usize {
    std::thread::scope(|scope| {
        (0..count).for_each(|_| drop(scope.spawn(|| black_box(0))));
    });
    count
}

#[test]
fn a_thread_that_is_left_is_not_charged_to_the_next_task() {
    for link in links() {
        for sandbox in [None, Some(Sandbox::strict())] {
            let limits = Limits::new().cpu_time(Duration::from_millis(200));
            let pool = builder(1).link(link).limits(limits);
            let pool = sandbox.into_iter().fold(pool, PoolBuilder::sandbox).build().unwrap();
            pool.warm_up().unwrap();
            assert_eq!(outcome(pool.submit(uses_threads_of_its_own, 4).unwrap()).unwrap(), 4);
            works(&pool);
            let first = pool.worker_pids()[0];
            outcome(pool.submit(leaves_a_thread_that_computes, ()).unwrap()).unwrap();
            assert_eq!(outcome(pool.submit(sleeps, 600).unwrap()).unwrap(), 600);
            wait_until("the worker with the thread is gone", BOUND, || !processes::is_alive(first));
        }
    }
}

#[test]
fn what_was_used_of_a_limit_is_what_the_task_used() {
    let pool = builder(1).limits(Limits::new().memory(512 * MEBIBYTE)).build().unwrap();
    let large = pool.task(takes_memory).memory(256 * MEBIBYTE);
    assert_eq!(outcome(large.submit(150).unwrap()).unwrap(), 150);
    let error = outcome(pool.task(takes_memory).memory(32 * MEBIBYTE).submit(150).unwrap());
    let (limit, used) = exceeded(&error.unwrap_err());
    assert_eq!(limit, Limit::Memory(32 * MEBIBYTE));
    if let Some(Limit::Memory(used)) = used {
        assert!(used <= 32 * MEBIBYTE, "{used}");
    }
}

#[test]
fn each_item_of_a_map_has_the_processor_time_of_a_task() {
    let limits = Limits::new().cpu_time(Duration::from_millis(200));
    let pool = builder(1).limits(limits).build().unwrap();
    let items = [1, 60, 60, 60, 60, 60_000, 1, 60];
    let results: Vec<_> = pool.map(computes, items).collect();
    for (item, result) in items.iter().zip(&results) {
        match result {
            Ok(value) => assert_eq!(value, item),
            Err(error) => assert!(error.is_limit() && *item == 60_000, "{item}: {error}"),
        }
    }
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
}

#[test]
fn a_retry_gets_the_limit_again_and_is_not_quarantined() {
    let limits = Limits::new().cpu_time(Duration::from_millis(50));
    let pool = builder(1).limits(limits).quarantine_after(2).build().unwrap();
    let error = outcome(pool.task(computes).retries(3).submit(60_000).unwrap()).unwrap_err();
    assert_eq!(error.attempt(), 4, "{error}");
    assert!(error.is_limit() && !error.is_quarantined(), "{error}");
}

#[test]
fn files_and_stacks_that_grow_too_large_are_named() {
    let limits = Limits::new().file_size(MEBIBYTE).stack(MEBIBYTE).core_size(0);
    let pool = builder(1).limits(limits).build().unwrap();
    assert_eq!(outcome(pool.submit(writes_a_file, 1000).unwrap()).unwrap(), 1000);
    let error = outcome(pool.submit(writes_a_file, 2 << 20).unwrap()).unwrap_err();
    assert_eq!(exceeded(&error).0, Limit::FileSize(MEBIBYTE), "{error}");
    let error = outcome(pool.submit(recurses, 1).unwrap()).unwrap_err();
    assert_eq!(exceeded(&error).0, Limit::Stack(MEBIBYTE), "{error:#}");
    works(&pool);
}

#[test]
fn more_descriptors_than_allowed_are_an_error_of_the_code() {
    let pool = builder(1).limits(Limits::new().open_files(40)).build().unwrap();
    assert_eq!(outcome(pool.submit(opens_files, 10).unwrap()).unwrap(), 10);
    assert_eq!(outcome(pool.submit(opens_files, 100).unwrap()).unwrap(), 0);
    works(&pool);
}

#[test]
fn the_fewest_descriptors_are_enough_for_a_sandbox() {
    for _ in 0..20 {
        let pool = builder(1).limits(Limits::new().open_files(8)).sandbox(Sandbox::strict());
        let pool = pool.restart_budget(1, Duration::from_secs(60)).build().unwrap();
        works(&pool);
    }
}

#[test]
fn a_bomb_of_threads_is_held_by_the_limit_on_processes() {
    let pool = match builder(1).limits(Limits::new().processes(10)).build() {
        Ok(pool) => pool,
        // Nothing is pretended.
        Err(error) => {
            assert!(error.to_string().contains("`processes` cannot be enforced"), "{error}");
            return;
        }
    };
    assert_eq!(outcome(pool.submit(starts_threads, 1000).unwrap()).unwrap(), 9);
    works(&pool);
}

#[test]
fn a_hundred_bombs_in_a_row_leave_nothing_behind() {
    let check = LeakCheck::new();
    let begin = Instant::now();
    let pool = builder(1).limits(Limits::new().memory(16 * MEBIBYTE)).build().unwrap();
    for _ in 0..repetitions(100) {
        let error = outcome(pool.submit(takes_memory, 10 << 10).unwrap()).unwrap_err();
        assert!(error.is_limit(), "{error}");
    }
    works(&pool);
    drop(pool);
    check.assert_none(Duration::from_secs(10).max(begin.elapsed()));
    assert_eq!(groups_of_this_process(), 0);
}

#[test]
fn limits_with_which_nothing_runs_are_refused() {
    for (limits, name) in [
        (Limits::new().memory(1), "memory"),
        (Limits::new().cpu_time(Duration::ZERO), "cpu_time"),
        (Limits::new().open_files(0), "open_files"),
    ] {
        let error = builder(1).limits(limits).build().unwrap_err().to_string();
        assert!(error.starts_with("limits: ") && error.contains(name), "{error}");
    }
}
