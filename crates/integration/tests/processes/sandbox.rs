//! Workers whose initializer has closed files and system calls.

use std::collections::HashMap;
use std::time::Instant;

use brigade::{Pool, PoolBuilder, SharedBuf, TaskErrorKind};
use brigade_integration::builder;
use brigade_testkit::{BOUND, Sandbox, outcome};
use rustix::process::{Resource, Rlimit, setrlimit};

/// Everything that can be closed.
fn strict() -> Sandbox {
    Sandbox::default().files().calls()
}

fn sandboxed(workers: usize, sandbox: Sandbox) -> PoolBuilder {
    builder(workers).try_initializer(Sandbox::enter, sandbox)
}

/// Makes two buffers.
fn made(value: u8) -> Vec<SharedBuf> {
    let buffer = |_| {
        let mut buffer = brigade::worker::alloc(100_000).unwrap();
        buffer.fill(value);
        buffer.freeze()
    };
    (0..2).map(buffer).collect()
}

/// Returns the first byte of each buffer.
fn firsts(buffers: Vec<SharedBuf>) -> Vec<u8> {
    buffers.iter().map(|buffer| buffer[0]).collect()
}

/// Passes buffers of many workers on to another one, which ends after its first task.
fn pass_buffers_on(pool: &Pool) {
    let maker = |value| outcome(pool.submit(made, value).unwrap()).unwrap();
    let buffers: Vec<_> = (0..10).map(maker).collect();
    for order in [[0, 1], [1, 0]] {
        // More workers than one keeps the arenas of, in turn.
        let arguments = order.map(|which| buffers.iter().map(move |both| both[which].clone()));
        let arguments: Vec<_> = arguments.into_iter().flatten().collect();
        let expected: Vec<_> = (0..10).chain(0..10).collect();
        let task = pool.submit(firsts, arguments).unwrap();
        assert_eq!(outcome(task).unwrap(), expected);
    }
    let items = buffers.iter().chain(&buffers).cloned();
    let mapped: Vec<_> = pool.map(firsts, items).map(|item| item.unwrap()).collect();
    assert!(mapped.iter().map(|bytes| bytes[0]).eq((0..10).chain(0..10)));
}

#[test]
fn buffers_of_other_workers_reach_a_sandbox() {
    for sandbox in [Sandbox::default(), Sandbox::default().files(), strict()] {
        let pool = sandboxed(1, sandbox).max_tasks_per_worker(1).build().unwrap();
        pass_buffers_on(&pool);
    }
}

fn takes_no_descriptors((): ()) {
    let limit = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn without_descriptors_workers_get_the_bytes_of_buffers() {
    let pool = builder(1).initializer(takes_no_descriptors, ()).max_tasks_per_worker(1);
    pass_buffers_on(&pool.build().unwrap());
}

fn grown(mebibytes: usize) -> Option<u32> {
    std::mem::forget(std::hint::black_box(vec![1_u8; mebibytes << 20]));
    brigade::worker::generation()
}

#[test]
fn a_limit_of_memory_holds_in_a_sandbox() {
    let pool = sandboxed(1, strict()).max_worker_rss(100 << 20).build().unwrap();
    let grow = || outcome(pool.submit(grown, 60).unwrap()).unwrap();
    let generations: Vec<_> = (0..5).map(|_| grow()).collect();
    assert!(generations[4] >= Some(3), "{generations:?}");
}

fn ordinary(number: u64) -> (u64, bool) {
    let begun = Instant::now();
    let map: HashMap<_, _> = (0..number).map(|key| (key, begun)).collect();
    (map.len() as u64, brigade::worker::cancelled())
}

#[test]
fn tasks_need_no_system_call_that_a_sandbox_forbids() {
    let pool = sandboxed(2, strict()).build().unwrap();
    let task = pool.task(ordinary).soft_deadline(BOUND).deadline(2 * BOUND).submit(3);
    assert_eq!(outcome(task.unwrap()).unwrap(), (3, false));
    let mapped: Vec<_> = pool.map(ordinary, 0..1_000).map(|item| item.unwrap().0).collect();
    assert!(mapped.into_iter().eq(0..1_000));
    let dead = pool.snapshot().deaths;
    assert_eq!(dead, 0, "no worker was ended by its filter");
}

/// It has a frame of its own, because that of an inlined function has only a part of its name.
#[inline(never)]
fn panics(number: u64) -> u64 {
    assert_ne!(number, 7, "seven");
    number
}

#[test]
fn panics_have_backtraces_in_a_sandbox() {
    let sandboxes = [Sandbox::default(), Sandbox::default().files(), Sandbox::default().calls()];
    for sandbox in sandboxes.into_iter().chain([strict()]) {
        let pool = sandboxed(1, sandbox.clone()).build().unwrap();
        let error = outcome(pool.submit(panics, 7).unwrap()).unwrap_err();
        let TaskErrorKind::Panicked { message, backtrace, .. } = error.kind() else {
            panic!("{error:?}")
        };
        assert!(message.contains("seven"), "{message}");
        assert!(backtrace.contains("sandbox::panics"), "{sandbox:?}: {backtrace}");
        assert_eq!(outcome(pool.submit(panics, 8).unwrap()).unwrap(), 8);
    }
}
