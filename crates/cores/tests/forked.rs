//! A process that forks without `exec`: the copy gets no cores from the original's pool, disturbs
//! no other process, and never hangs.

use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use brigade_cores::{CorePool, CoreRequest, ReserveError, Ticket, Topology};
use brigade_sys::private_folder::PrivateFolder;
use brigade_testkit::{BOUND, Side, copy_process, processes, wait_until};

fn one() -> CoreRequest {
    CoreRequest::new(1)
}

fn pool(folder: &Path) -> CorePool {
    let topology = Topology::flat((0..8).collect());
    CorePool::builder().topology(topology).exclusive_in(folder).build().unwrap()
}

/// Calls everything that a pool and a ticket offer.
fn use_the_pool(pool: &CorePool, mut ticket: Ticket) {
    let results = [
        pool.reserve(one()).map(drop),
        pool.try_reserve(one()).map(drop),
        pool.reserve_timeout(one(), BOUND).map(drop),
        pool.reserve_later(one(), || ()).map(drop),
    ];
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(error, ReserveError::Forked), "{error}");
        assert!(error.to_string().contains("build a pool after the fork"), "{error}");
    }
    assert!(ticket.try_take().is_none() && ticket.wait_timeout(Duration::MAX).is_none());
    drop(ticket);
    assert!(pool.free_cpus().is_empty());
    assert_eq!((pool.waiting(), pool.cpus().len()), (0, 8));
    assert!(!format!("{pool:?}").is_empty());
}

#[test]
fn a_fork_gets_errors_and_does_not_touch_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    // Only the original removes the folder.
    let (locks, others) = (folder.path().join("locks"), folder.path().join("others"));
    let ours = pool(&locks);
    let lease = ours.reserve(CoreRequest::new(8)).unwrap();
    let (sender, granted) = channel();
    let mut ticket = ours.reserve_later(one(), move || sender.send(()).unwrap()).unwrap();
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(move || {
            use_the_pool(&ours, ticket);
            // Dropping the last handles would stop and join the pool's thread.
            drop((lease, ours));
            let own = pool(&others);
            drop(own.reserve(one()).unwrap());
        }),
    };
    copy.assert_success();
    assert_eq!(ours.waiting(), 1, "the fork has dropped the request of the original");
    drop(lease);
    granted.recv_timeout(BOUND).unwrap();
    drop(ticket.try_take().unwrap());
    // The thread that watches other processes is still running.
    let theirs = pool(&locks);
    let lease = theirs.reserve(CoreRequest::new(8)).unwrap();
    let mut ticket = ours.reserve_later(one(), || ()).unwrap();
    drop(lease);
    assert!(ticket.wait_timeout(BOUND).is_some());
}

#[test]
fn a_fork_does_not_wait_for_a_lock_held_by_another_thread() {
    let folder = tempfile::tempdir().unwrap();
    let locks = folder.path().join("locks");
    let ours = pool(&locks);
    // Holding the folder blocks all other processes, under the lock of their pool.
    let held = PrivateFolder::open(&locks).unwrap();
    assert!(held.try_lock_alone().unwrap());
    let other = ours.clone();
    let (sender, thread) = channel();
    let reserves = thread::spawn(move || {
        sender.send(processes::this_thread()).unwrap();
        other.reserve(one()).map(drop)
    });
    let thread = thread.recv().unwrap();
    wait_until("a thread under the lock", BOUND, || processes::thread_sleeps(thread));
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(move || {
            assert!(matches!(ours.reserve(one()), Err(ReserveError::Forked)));
            assert_eq!((ours.waiting(), ours.free_cpus().len()), (0, 0));
            drop(ours);
        }),
    };
    copy.assert_success();
    held.unlock().unwrap();
    reserves.join().unwrap().unwrap();
}
