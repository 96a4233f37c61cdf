//! Checks every interleaving of a thread that stores an outcome and those that wait for it.

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::thread;

use super::OutcomeKind;
use super::tests::{self, TestPromise, promise, value};
use crate::completion_queue::CompletionQueue;
use crate::sync::{AtomicBool, Ordering};
use crate::waiting::{Sleeper, Wait, park_for};

/// Stores the outcome and notifies the waiters, as executors do. Returns `true` if the doorbell has
/// to be rung.
fn complete(promise: &TestPromise) -> bool {
    let Some(wakeups) = tests::complete(promise, value(1)) else { return false };
    wakeups.wakers.into_iter().for_each(Waker::wake);
    wakeups.ring_doorbell
}

fn spawn(promise: &TestPromise, run: fn(&TestPromise) -> bool) -> thread::JoinHandle<bool> {
    let promise = promise.clone();
    thread::spawn(move || run(&promise))
}

#[test]
fn a_parked_caller_is_woken_and_finds_the_outcome() {
    loom::model(|| {
        let promise = promise();
        let completer = spawn(&promise, complete);
        park_for(&promise, None);
        assert!(promise.try_take().is_some());
        completer.join().expect("the completer");
    });
}

#[test]
fn a_caller_at_the_doorbell_stays_up_or_is_rung() {
    loom::model(|| {
        let promise = promise();
        let completer = spawn(&promise, complete);
        promise.set_sleeper(Sleeper::AtTheDoorbell);
        let sleeps = promise.is_pending();
        let rings = completer.join().expect("the completer");
        assert!(!sleeps || rings, "it sleeps and nobody rings");
    });
}

#[test]
fn an_outcome_is_taken_once() {
    loom::model(|| {
        let promise = promise();
        let (completer, taker) = (spawn(&promise, complete), spawn(&promise, take));
        let mut taken = usize::from(take(&promise));
        completer.join().expect("the completer");
        taken += usize::from(taker.join().expect("the taker"));
        taken += usize::from(take(&promise));
        assert_eq!(taken, 1);
        assert_eq!(promise.outcome_kind(), Some(OutcomeKind::Value));
    });
}

fn take(promise: &TestPromise) -> bool {
    promise.try_take().is_some()
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_future_that_waits_for_several_tasks_gets_one_or_is_woken() {
    loom::model(|| {
        let (promise, completions) = (promise(), Arc::<CompletionQueue>::default());
        promise.watch(&completions, 7);
        let completer = spawn(&promise, complete);
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        drop(completions.add_waker(&Waker::from(Arc::clone(&woken))));
        let sleeps = completions.is_pending();
        completer.join().expect("the completer");
        assert!(!sleeps || woken.0.load(Ordering::Relaxed), "pending, and nobody wakes it");
        assert_eq!(completions.take(), Some(7));
    });
}

#[test]
fn a_future_gets_the_outcome_or_is_woken() {
    loom::model(|| {
        let promise = promise();
        let completer = spawn(&promise, complete);
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&woken));
        let polled = promise.poll(&waker);
        completer.join().expect("the completer");
        if polled.expect("not taken").is_none() {
            assert!(woken.0.load(Ordering::Relaxed), "pending, and nobody wakes it");
            assert!(promise.try_take().is_some());
        }
    });
}

#[test]
fn two_callers_share_a_queue() {
    fn take(completions: &CompletionQueue) -> u64 {
        loop {
            park_for(completions, None);
            if let Some(token) = completions.take() {
                return token;
            }
        }
    }
    loom::model(|| {
        let completions = Arc::<CompletionQueue>::default();
        let of_other = Arc::clone(&completions);
        let other = thread::spawn(move || take(&of_other));
        let of_completer = Arc::clone(&completions);
        let completer = thread::spawn(move || {
            [1, 2].map(|token| of_completer.add(token).ring_doorbell).contains(&true)
        });
        let taken = take(&completions) + other.join().expect("the other");
        assert_eq!(taken, 3);
        assert!(!completer.join().expect("the completer"), "nobody sleeps at a doorbell");
    });
}

#[test]
fn a_watching_queue_gets_the_task_once() {
    loom::model(|| {
        let promise = promise();
        let completer = spawn(&promise, complete);
        let completions = Arc::<CompletionQueue>::default();
        promise.watch(&completions, 7);
        if completions.is_pending() {
            park_for(&*completions, None);
        }
        assert_eq!(completions.take(), Some(7));
        assert!(promise.try_take().is_some(), "the queue has it before its outcome");
        completer.join().expect("the completer");
        assert_eq!(completions.take(), None);
    });
}
