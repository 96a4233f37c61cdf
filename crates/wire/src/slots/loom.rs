//! Checks every interleaving of a worker that starts a task and a host that revokes it or uses the
//! entry again.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::Revocation;
use super::word::{self, Word, revoked, running};

impl Word for AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64> {
        self.compare_exchange(expected, value, won, lost).map(drop)
    }
}

#[test]
fn begin_and_revoke_never_both_win_and_never_both_lose() {
    loom::model(|| {
        let state = Arc::new(AtomicU64::new(0));
        let task = running(7, 0);
        let worker = {
            let state = Arc::clone(&state);
            thread::spawn(move || word::begin(&*state, task))
        };
        let revocation = word::revoke(&*state, 0, task);
        let is_revoked = revocation == Revocation::Revoked;
        assert_ne!(revocation, Revocation::Neither);
        let begun = worker.join().expect("the worker's thread");
        assert_ne!(begun, is_revoked);
        let end = state.load(Ordering::Acquire);
        assert_eq!(end, if begun { task } else { revoked(task) });
    });
}

#[test]
fn a_host_that_sees_a_task_running_sees_when_it_began() {
    loom::model(|| {
        let state = Arc::new(AtomicU64::new(0));
        let since = Arc::new(AtomicU64::new(0));
        let task = running(7, 0);
        let worker = {
            let (state, since) = (Arc::clone(&state), Arc::clone(&since));
            thread::spawn(move || {
                since.store(42, Ordering::Relaxed);
                assert!(word::begin(&*state, task));
            })
        };
        if state.load(Ordering::Acquire) == task {
            assert_eq!(since.load(Ordering::Relaxed), 42);
        }
        worker.join().expect("the worker's thread");
    });
}

/// The host hears that a task was skipped, or its outcome, before it sends the next one.
#[test]
fn a_task_that_follows_in_the_same_entry_begins_or_is_revoked() {
    for tag in [7, 8] {
        loom::model(move || {
            let state = Arc::new(AtomicU64::new(0));
            let answered = Arc::new(AtomicU64::new(0));
            let sent = Arc::new(AtomicU64::new(0));
            let first = running(7, 0);
            let second = running(tag, first);
            let worker = {
                let (state, answered, sent) =
                    (Arc::clone(&state), Arc::clone(&answered), Arc::clone(&sent));
                thread::spawn(move || {
                    let _ = word::begin(&*state, first);
                    answered.store(1, Ordering::Release);
                    (sent.load(Ordering::Acquire) == 1).then(|| word::begin(&*state, second))
                })
            };
            let found = word::revoke(&*state, 0, first);
            assert_ne!(found, Revocation::Neither);
            let before = if found == Revocation::Revoked { revoked(first) } else { first };
            let mut end = None;
            if answered.load(Ordering::Acquire) == 1 {
                assert_eq!(state.load(Ordering::Acquire), before, "the entry is at rest");
                sent.store(1, Ordering::Release);
                end = Some(word::revoke(&*state, before, second));
                assert_ne!(end, Some(Revocation::Neither));
            }
            if let Some(begun) = worker.join().expect("the worker's thread") {
                assert_eq!(end, Some(if begun { Revocation::Begun } else { Revocation::Revoked }));
            }
        });
    }
}
