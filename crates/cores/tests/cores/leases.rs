//! The promises of a pool, checked with real threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use brigade_cores::{
    BuildError, CoreKind, CorePool, CoreRequest, CpuSet, Level, Policy, ReserveError, Topology,
};
use brigade_testkit::{BOUND, Random, wait_until};

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn pool(cpus: &str) -> CorePool {
    CorePool::builder().topology(Topology::flat(set(cpus))).build().unwrap()
}

fn cores(count: usize) -> CoreRequest {
    CoreRequest::new(count)
}

#[test]
fn a_lease_prints_as_a_list_and_returns_its_cores_when_dropped() {
    let pool = pool("0-3,8");
    let lease = pool.reserve(cores(5)).unwrap();
    assert_eq!(lease.to_string(), "0-3,8");
    assert!(pool.free_cpus().is_empty());
    drop(lease);
    assert_eq!(pool.free_cpus(), set("0-3,8"));
}

#[test]
fn avoided_cores_are_leased_only_if_others_do_not_suffice() {
    let topology = Topology::flat(set("0-3"));
    let pool = CorePool::builder().topology(topology).avoid(set("0,2,9")).build().unwrap();
    let leases: Vec<_> = (0..3).map(|_| pool.reserve(cores(1)).unwrap()).collect();
    let cpus: Vec<_> = leases.iter().map(ToString::to_string).collect();
    assert_eq!(cpus, ["1", "3", "0"]);
    drop(leases);
    assert_eq!(pool.reserve(cores(2)).unwrap().to_string(), "0-1");
}

#[test]
fn a_request_that_can_never_be_granted_is_refused_at_once() {
    let pool = pool("0-3");
    let _all = pool.reserve(cores(4)).unwrap();
    assert!(matches!(pool.reserve(cores(0)), Err(ReserveError::ZeroCores)));
    for request in [
        cores(5),
        cores(1).numa_node(7),
        cores(1).kind(CoreKind::Efficient),
        cores(5).best_effort(),
    ] {
        let error = pool.reserve(request).unwrap_err();
        assert!(matches!(error, ReserveError::NeverFits { size: 4, .. }), "{error}");
    }
    assert!(matches!(pool.try_reserve(cores(1)), Err(ReserveError::Busy { .. })));
}

#[test]
fn a_timeout_leaves_the_queue() {
    let pool = pool("0-3");
    let some = pool.reserve(cores(2)).unwrap();
    let start = Instant::now();
    let timeout = Duration::from_millis(20);
    let late = pool.reserve_timeout(cores(4), timeout);
    assert!(matches!(late, Err(ReserveError::TimedOut { .. })));
    assert!(start.elapsed() >= timeout);
    assert_eq!(pool.waiting(), 0);
    // The wide request no longer holds up the requests behind it.
    assert_eq!(pool.try_reserve(cores(2)).unwrap().to_string(), "2-3");
    drop(some);
    assert!(pool.reserve_timeout(cores(4), timeout).is_ok());
}

#[test]
fn a_wide_request_is_served_before_narrow_ones_behind_it() {
    let pool = pool("0-3");
    let first = pool.reserve(cores(1)).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let queue = |count| {
        let (theirs, order, before) = (pool.clone(), Arc::clone(&order), pool.waiting());
        let thread = thread::spawn(move || {
            let lease = theirs.reserve(cores(count)).unwrap();
            order.lock().unwrap().push(lease.cores().len());
        });
        wait_until("a waiting request", BOUND, || pool.waiting() > before);
        thread
    };
    let threads = [queue(4), queue(1), queue(2)];
    assert!(
        matches!(pool.try_reserve(cores(1)), Err(ReserveError::Busy { .. })),
        "3 cores are free, but a request is waiting"
    );
    drop(first);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(order.lock().unwrap()[0], 4);
    assert_eq!(pool.free_cpus().len(), 4);
}

#[test]
fn a_hook_is_called_when_the_cores_are_granted() {
    let pool = pool("0-3");
    let lease = pool.reserve(cores(4)).unwrap();
    let (sender, receiver) = mpsc::channel();
    let mut ticket = pool.reserve_later(cores(3), move || sender.send(()).unwrap()).unwrap();
    assert!(ticket.try_take().is_none());
    assert!(receiver.try_recv().is_err());
    drop(lease);
    receiver.recv_timeout(BOUND).unwrap();
    assert_eq!(ticket.try_take().unwrap().to_string(), "0-2");
    assert!(ticket.try_take().is_none());
    assert_eq!(pool.free_cpus().len(), 4);
}

#[test]
fn a_dropped_ticket_returns_its_grant_and_leaves_the_queue() {
    let pool = pool("0-3");
    let lease = pool.reserve(cores(4)).unwrap();
    let granted = pool.reserve_later(cores(4), || {}).unwrap();
    let next = pool.reserve_later(cores(4), || {}).unwrap();
    let mut last = pool.reserve_later(cores(1), || {}).unwrap();
    drop(lease);
    assert!(pool.free_cpus().is_empty());
    drop(next);
    assert!(last.try_take().is_none());
    drop(granted);
    assert!(last.try_take().is_some());
    assert_eq!(pool.free_cpus().len(), 4);
}

#[test]
fn panics_of_tasks_and_hooks_lose_no_core() {
    let pool = pool("0-1");
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _lease = pool.reserve(cores(2)).unwrap();
        let _ticket = pool.reserve_later(cores(1), || panic!("as asked")).unwrap();
        panic!("as asked");
    }));
    assert!(result.is_err());
    assert_eq!(pool.free_cpus().len(), 2);
    assert_eq!(pool.waiting(), 0);
}

/// A value that panics when it is dropped.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        assert!(thread::panicking(), "as asked");
    }
}

#[test]
fn a_hook_that_panics_does_not_stop_others() {
    let pool = pool("0-3");
    let lease = pool.reserve(cores(4)).unwrap();
    let (sender, receiver) = mpsc::channel();
    let throws = pool.reserve_later(cores(1), || std::panic::panic_any(PanicsOnDrop)).unwrap();
    let (inner, told) = (pool.clone(), sender.clone());
    // A hook may use the pool.
    let asks = pool.reserve_later(cores(1), move || told.send(inner.waiting()).unwrap()).unwrap();
    let last = pool.reserve_later(cores(1), move || sender.send(9).unwrap()).unwrap();
    drop(lease);
    assert_eq!(receiver.recv_timeout(BOUND), Ok(0));
    assert_eq!(receiver.recv_timeout(BOUND), Ok(9));
    drop((throws, asks, last));
    assert_eq!(pool.free_cpus().len(), 4);
}

#[test]
fn waiting_threads_are_woken_before_hooks_run() {
    let pool = pool("0-3");
    let lease = pool.reserve(cores(4)).unwrap();
    let (sender, receiver) = mpsc::channel::<()>();
    let receiver = Mutex::new(receiver);
    let heard = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&heard);
    // Returns when the thread behind it has its cores.
    let slow = pool.reserve_later(cores(1), move || {
        if receiver.lock().unwrap().recv_timeout(BOUND).is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let behind = {
        let pool = pool.clone();
        thread::spawn(move || {
            let lease = pool.reserve(cores(1)).unwrap();
            sender.send(()).unwrap();
            drop(lease);
        })
    };
    wait_until("a waiting request", BOUND, || pool.waiting() == 2);
    drop(lease);
    behind.join().unwrap();
    drop(slow);
    assert_eq!((heard.load(Ordering::SeqCst), pool.free_cpus().len()), (1, 4));
}

#[test]
fn threads_never_hold_the_same_core() {
    const ROUNDS: usize = 300;
    let pool = pool("0-7");
    let held: Arc<Vec<AtomicUsize>> = Arc::new((0..8).map(|_| AtomicUsize::new(0)).collect());
    let threads: Vec<_> = (0..6)
        .map(|seed| {
            let (pool, held) = (pool.clone(), Arc::clone(&held));
            thread::spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..ROUNDS {
                    let count = 1 + usize::try_from(random.within(0..5)).unwrap();
                    let policies = [Policy::Contiguous, Policy::Compact, Policy::Scatter];
                    let request = cores(count).policy(policies[count % 3]);
                    let lease = match random.within(0..3) {
                        0 => pool.reserve(request).ok(),
                        1 => pool.try_reserve(request).ok(),
                        _ => pool.reserve_timeout(request, Duration::from_micros(50)).ok(),
                    };
                    let cpus: Vec<u32> =
                        lease.iter().flat_map(|lease| lease.cores().iter()).collect();
                    for &cpu in &cpus {
                        assert_eq!(held[cpu as usize].fetch_add(1, Ordering::SeqCst), 0);
                    }
                    for cpu in cpus {
                        held[cpu as usize].fetch_sub(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(pool.free_cpus().len(), 8);
    assert_eq!(pool.waiting(), 0);
}

#[test]
fn a_pool_of_certain_cpus_has_no_others() {
    let topology = Topology::flat(set("0-7"));
    let chosen = CorePool::builder().topology(topology.clone()).cpus(set("2-3,6")).build().unwrap();
    assert_eq!(chosen.reserve(cores(3)).unwrap().to_string(), "2-3,6");
    let error =
        CorePool::builder().topology(topology.clone()).cpus(set("6-9")).build().unwrap_err();
    assert!(
        matches!(&error, BuildError::NotUsable { missing, .. } if *missing == set("8-9")),
        "{error}"
    );
    let none = CorePool::builder().topology(topology).cpus(CpuSet::new()).build();
    assert!(matches!(none, Err(BuildError::Empty { isolated: false })));
}

#[test]
fn a_lease_pins_the_thread_and_the_threads_it_starts() {
    let pool = CorePool::new().unwrap();
    let lease = pool.reserve(cores(1)).unwrap();
    assert_eq!((lease.span(), lease.cores().len()), (Level::Core, 1));
    thread::scope(|scope| {
        scope.spawn(|| {
            let before = CpuSet::of_current_thread().unwrap();
            let inside = lease
                .run_pinned(|pinned| {
                    assert!(pinned.is_exact());
                    thread::spawn(CpuSet::of_current_thread).join().unwrap().unwrap()
                })
                .unwrap();
            assert_eq!(inside, *lease.cores());
            assert_eq!(CpuSet::of_current_thread().unwrap(), before);
            let pinned = lease.pin_current_thread().unwrap();
            assert_eq!(pinned.requested, pinned.effective);
            assert_eq!(CpuSet::of_current_thread().unwrap(), *lease.cores());
        });
    });
}

#[test]
fn missing_cpus_are_reported_and_pin_nothing() {
    let here = CpuSet::of_current_thread().unwrap();
    let nowhere = set("4000-4001");
    thread::spawn(move || {
        assert!(nowhere.pin_current_thread().is_err());
        let pinned = here.union(&nowhere).pin_current_thread().unwrap();
        assert!(!pinned.is_exact());
        assert_eq!(pinned.effective, here);
    })
    .join()
    .unwrap();
}
