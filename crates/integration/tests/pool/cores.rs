//! Workers run on cores of their own, and only there, and so do their replacements.
//!
//! On a machine with a single core the tests of two workers show nothing.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::channel;

use brigade::cores::{CorePool, CoreRequest, CpuSet};
use brigade::{Link, Pool, PoolError, worker};
use brigade_integration::builder;
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, Watchdog, outcome, processes};

/// Returns the slot of this worker, its cores, and the CPU on which it runs at this moment.
fn whereabouts((): ()) -> (u32, Vec<u32>, u32) {
    let cpu = u32::try_from(rustix::thread::sched_getcpu()).expect("a small number");
    (worker::slot().unwrap(), worker::cores().unwrap_or_default().to_vec(), cpu)
}

fn machine_has(cores: usize) -> bool {
    CorePool::new().unwrap().cpus().len() >= cores
}

/// Runs `tasks` tasks and returns the cores of each slot on which they ran.
fn sample(pool: &Pool, tasks: usize) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut seen = BTreeMap::<u32, BTreeSet<u32>>::new();
    for result in pool.map(whereabouts, std::iter::repeat_n((), tasks)).chunk(1) {
        let (slot, cores, cpu) = result.unwrap();
        assert_eq!(cores, [cpu], "a worker runs on its assigned core");
        seen.entry(slot).or_default().insert(cpu);
    }
    for handle in pool.broadcast(whereabouts, ()).unwrap() {
        let (slot, _, cpu) = outcome(handle).unwrap();
        seen.entry(slot).or_default().insert(cpu);
    }
    seen
}

#[test]
fn each_worker_has_its_own_core_and_its_replacement_keeps_it() {
    if !machine_has(2) {
        return;
    }
    let cores = CorePool::new().unwrap();
    let pool = builder(2).cores(cores.clone()).cores_per_worker(1).build().unwrap();
    pool.warm_up().unwrap();
    let before = sample(&pool, 1_000);
    let of_both: Vec<u32> = before.values().flatten().copied().collect();
    assert_eq!(of_both.len(), 2, "one core for each worker: {before:?}");
    assert_ne!(of_both[0], of_both[1]);
    for _ in 0..3 {
        outcome(pool.submit(aborts, ()).unwrap()).unwrap_err();
    }
    pool.warm_up().unwrap();
    assert_eq!(sample(&pool, 1_000), before);
    let free = cores.free_cpus().len();
    let handle = pool.submit(whereabouts, ()).unwrap();
    pool.shutdown().unwrap();
    assert_eq!(cores.free_cpus().len(), free + 2, "cores come back at the pool's end");
    drop(handle);
}

#[test]
fn missing_cores_are_an_error_that_names_the_setting() {
    let cores = CorePool::builder().cpus(first_cpu()).build().unwrap();
    let error = builder(2).cores(cores.clone()).build().unwrap_err();
    let PoolError::Configuration { field: "cores_per_worker", problem } = &error else {
        panic!("{error:?}")
    };
    assert!(problem.contains("1 core(s) for each of 2 workers"), "{problem}");
    assert_eq!(cores.free_cpus().len(), 1, "nothing is kept of what failed");
    let taken = cores.reserve(CoreRequest::new(1)).unwrap();
    assert!(builder(1).cores(cores.clone()).build().is_err());
    drop(taken);
    let pool = builder(1).cores(cores.clone()).build().unwrap();
    assert!(matches!(pool.resize(2), Err(PoolError::Configuration { field: "resize", .. })));
    assert!(matches!(
        builder(1).cores_per_worker(0).build(),
        Err(PoolError::Configuration { field: "cores_per_worker", .. })
    ));
}

fn first_cpu() -> CpuSet {
    CpuSet::of_current_thread().unwrap().iter().take(1).collect()
}

#[test]
fn a_resized_pool_takes_and_returns_cores() {
    if !machine_has(2) {
        return;
    }
    let cores = CorePool::new().unwrap();
    let all = cores.free_cpus().len();
    let pool = builder(1).cores(cores.clone()).build().unwrap();
    pool.resize(2).unwrap();
    pool.warm_up().unwrap();
    assert_eq!(cores.free_cpus().len(), all - 2);
    pool.resize(1).unwrap();
    brigade_testkit::wait_until("the core to come back", BOUND, || {
        cores.free_cpus().len() == all - 1
    });
}

/// Says in the second worker that it has crashed, and goes on.
fn lies_in_the_second((): ()) {
    if worker::slot() == Some(1) {
        brigade_integration::scribble::claims_a_crash();
        loop {
            std::thread::park();
        }
    }
}

#[test]
fn a_core_comes_back_only_when_its_worker_is_gone() {
    if !machine_has(2) {
        return;
    }
    let cores = CorePool::new().unwrap();
    let all = cores.free_cpus().len();
    let pool = builder(2).link(Link::Ring).cores(cores.clone()).build().unwrap();
    pool.warm_up().unwrap();
    let liar = pool.worker_pids()[1];
    let ends = pool.broadcast(lies_in_the_second, ()).unwrap().into_iter().map(outcome);
    assert_eq!(ends.filter(Result::is_err).count(), 1);
    pool.resize(1).unwrap();
    brigade_testkit::wait_until("the end of the liar", BOUND, || {
        let free = cores.free_cpus().len();
        let is_alive = processes::is_alive(liar);
        assert!(!is_alive || free == all - 2, "{free} cores are free");
        !is_alive
    });
}

#[test]
fn the_default_number_of_workers_is_the_number_of_cores() {
    let cores = CorePool::builder().cpus(first_cpu()).build().unwrap();
    let pool = Pool::builder().cores(cores).build().unwrap();
    assert_eq!(pool.workers(), 1);
    assert_eq!(outcome(pool.submit(whereabouts, ()).unwrap()).unwrap().1.len(), 1);
}

fn threads_of_libraries((): ()) -> Vec<Option<String>> {
    ["OMP_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| std::env::var(name).ok()).to_vec()
}

#[test]
fn thread_count_variables_are_set_unless_the_user_set_them() {
    let cores = || CorePool::builder().cpus(first_cpu()).build().unwrap();
    let pool = builder(1).cores(cores()).env("MKL_NUM_THREADS", "7").build().unwrap();
    let values = outcome(pool.submit(threads_of_libraries, ()).unwrap()).unwrap();
    assert_eq!(values, [Some("1".to_owned()), Some("7".to_owned())]);
    let pool = builder(1).build().unwrap();
    assert_eq!(outcome(pool.submit(threads_of_libraries, ()).unwrap()).unwrap(), [None, None]);
    assert_eq!(outcome(pool.submit(whereabouts, ()).unwrap()).unwrap().1, [0_u32; 0]);
}

#[test]
fn a_process_limited_to_one_core_sees_one_core() {
    let own = CpuSet::of_current_thread().unwrap();
    let one = own.iter().last().unwrap();
    let counts = std::thread::spawn(move || {
        let _pinned = [one].into_iter().collect::<CpuSet>().pin_current_thread().unwrap();
        let pool = builder(1).cores(CorePool::new().unwrap()).build().unwrap();
        let workers = Pool::builder().build().unwrap().workers();
        let cpus = outcome(pool.submit(whereabouts, ()).unwrap()).unwrap().1;
        (CorePool::new().unwrap().cpus().len(), workers, cpus)
    });
    assert_eq!(counts.join().unwrap(), (1, 1, vec![one]));
}

#[test]
fn concurrent_resizes_leave_each_worker_on_its_own_cores() {
    if !machine_has(2) {
        return;
    }
    let cores = CorePool::new().unwrap();
    let all = cores.free_cpus().len();
    let pool = builder(1).cores(cores.clone()).build().unwrap();
    for round in 0..20 {
        std::thread::scope(|scope| {
            for first in [1, 2, 1] {
                let pool = &pool;
                scope.spawn(move || {
                    for number in 0..20 {
                        pool.resize(1 + (first + number) % 2).unwrap();
                    }
                });
            }
        });
        pool.warm_up().unwrap();
        // Each runs on the one core that it was given.
        sample(&pool, 20);
        let workers = pool.workers();
        brigade_testkit::wait_until("as many workers as it says", BOUND, || {
            pool.worker_pids().len() == workers && cores.free_cpus().len() == all - workers
        });
        assert_eq!(pool.broadcast(whereabouts, ()).unwrap().len(), workers, "round {round}");
    }
}

#[test]
fn a_hook_for_cores_may_query_the_pool_that_returned_them() {
    if !machine_has(2) {
        return;
    }
    let _watchdog = Watchdog::new("a hook of a lease that asks the pool", BOUND);
    let cores = CorePool::new().unwrap();
    let pool = Arc::new(builder(2).cores(cores.clone()).cores_per_worker(1).build().unwrap());
    pool.warm_up().unwrap();
    let (sender, asked) = channel();
    let asking = Arc::clone(&pool);
    let hook = move || {
        let _ = sender.send(asking.worker_restarts());
    };
    let most = CoreRequest::new(cores.free_cpus().len() + 1);
    let mut ticket = cores.reserve_later(most, hook).unwrap();
    // A worker exits, and the return of its core runs the hook.
    pool.resize(1).unwrap();
    assert_eq!(asked.recv_timeout(BOUND).unwrap(), 0);
    assert!(ticket.try_take().is_some());
}
