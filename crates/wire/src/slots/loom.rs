//! Every interleaving of a worker that begins and a host that revokes.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::word::{self, ModelAtomic};

#[test]
fn begin_and_revoke_never_both_win_and_never_both_lose() {
    loom::model(|| {
        let state = Arc::new(ModelAtomic::new(0));
        word::arm(&*state, 7);
        let worker = {
            let state = Arc::clone(&state);
            thread::spawn(move || word::begin(&*state, 7))
        };
        let revoked = word::revoke(&*state, 7);
        let begun = worker.join().expect("the worker's thread");
        assert_ne!(begun, revoked);
        assert_eq!(word::read(&*state), if begun { word::RUNNING } else { word::REVOKED });
    });
}

#[test]
fn a_host_that_sees_a_task_running_sees_when_it_began() {
    loom::model(|| {
        let state = Arc::new(ModelAtomic::new(0));
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
fn a_late_finish_does_not_touch_the_next_task_in_the_slot() {
    loom::model(|| {
        let state = Arc::new(ModelAtomic::new(0));
        let answered = Arc::new(AtomicU64::new(0));
        word::arm(&*state, 7);
        let worker = {
            let (state, answered) = (Arc::clone(&state), Arc::clone(&answered));
            thread::spawn(move || {
                assert!(word::begin(&*state, 7));
                answered.store(1, Ordering::Release);
                word::finish(&*state, 7);
            })
        };
        let rearmed = answered.load(Ordering::Acquire) == 1;
        if rearmed {
            word::arm(&*state, 8);
        }
        worker.join().expect("the worker's thread");
        assert_eq!(word::begin(&*state, 8), rearmed);
    });
}
