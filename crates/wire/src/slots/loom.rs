//! Checks every interleaving of a worker that starts a task and a host that revokes it or arms the
//! entry again.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::Revocation;
use super::word;
use crate::word::Word;

impl Word for AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64> {
        self.compare_exchange(expected, value, won, lost).map(drop)
    }

    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}

#[test]
fn begin_and_revoke_never_both_win_and_never_both_lose() {
    loom::model(|| {
        let state = Arc::new(AtomicU64::new(0));
        word::arm(&*state, 7);
        let worker = {
            let state = Arc::clone(&state);
            thread::spawn(move || word::begin(&*state, 7))
        };
        let revocation = word::revoke(&*state, 7);
        let revoked = revocation == Revocation::Revoked;
        assert_ne!(revocation, Revocation::Neither);
        let begun = worker.join().expect("the worker's thread");
        assert_ne!(begun, revoked);
        assert_eq!(word::read(&*state), if begun { word::RUNNING } else { word::REVOKED });
    });
}

#[test]
fn a_host_that_sees_a_task_running_sees_when_it_began() {
    loom::model(|| {
        let state = Arc::new(AtomicU64::new(0));
        let since = Arc::new(AtomicU64::new(0));
        word::arm(&*state, 7);
        let worker = {
            let (state, since) = (Arc::clone(&state), Arc::clone(&since));
            thread::spawn(move || {
                since.store(42, Ordering::Relaxed);
                assert!(word::begin(&*state, 7));
            })
        };
        if word::read(&*state) == word::RUNNING {
            assert_eq!(since.load(Ordering::Relaxed), 42);
        }
        worker.join().expect("the worker's thread");
    });
}

#[test]
fn an_outdated_message_never_begins_the_next_task() {
    loom::model(|| {
        let state = Arc::new(AtomicU64::new(0));
        word::arm(&*state, 7);
        let worker = {
            let state = Arc::clone(&state);
            thread::spawn(move || word::begin(&*state, 7))
        };
        let revocation = word::revoke(&*state, 7);
        let revoked = revocation == Revocation::Revoked;
        assert_ne!(revocation, Revocation::Neither);
        if revoked {
            word::arm(&*state, 8);
        }
        let begun = worker.join().expect("the worker's thread");
        assert_ne!(begun, revoked);
        assert_eq!(word::begin(&*state, 8), revoked);
    });
}

#[test]
fn an_entry_is_free_once_the_outcome_has_arrived() {
    loom::model(|| {
        let state = Arc::new(AtomicU64::new(0));
        let answered = Arc::new(AtomicU64::new(0));
        let sent = Arc::new(AtomicU64::new(0));
        word::arm(&*state, 7);
        let worker = {
            let (state, answered, sent) =
                (Arc::clone(&state), Arc::clone(&answered), Arc::clone(&sent));
            thread::spawn(move || {
                assert!(word::begin(&*state, 7));
                answered.store(1, Ordering::Release);
                // The link's order: the task was sent after the table was written.
                let next = sent.load(Ordering::Acquire) == 1;
                (next, next && word::begin(&*state, 8))
            })
        };
        if answered.load(Ordering::Acquire) == 1 {
            assert_eq!(word::read(&*state), word::RUNNING);
            word::arm(&*state, 8);
            sent.store(1, Ordering::Release);
        }
        let (next, begun) = worker.join().expect("the worker's thread");
        assert_eq!(begun, next);
    });
}
