//! Checks every interleaving of callers that sleep and of threads that wake them.

use std::sync::Arc;

use loom::thread;

use super::{SLEEPS, Seat, WakeQueue};
use crate::sync::{Ordering, park};
use brigade_task::backend::Turn;

/// Sleeps as a caller does, until it is woken.
fn sleep(seat: Seat) {
    while seat.0.stage.load(Ordering::Acquire) == SLEEPS {
        park();
    }
}

#[test]
fn each_caller_is_woken_by_another_one() {
    loom::model(|| {
        let queue = WakeQueue::new(1, || {});
        let sleepers = [(); 2].map(|()| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let seat = queue.seat();
                seat.ticket().wake();
                sleep(seat);
            })
        });
        let seat = queue.seat();
        seat.ticket().wake();
        sleep(seat);
        for sleeper in sleepers {
            sleeper.join().expect("a caller");
        }
    });
}

/// The place of the first caller may end before, while, or after it is called.
#[test]
fn a_caller_that_leaves_early_does_not_stop_the_others() {
    loom::model(|| {
        let queue = WakeQueue::new(1, || {});
        let [leaves, stays] = [(); 2].map(|()| queue.seat());
        let tickets = [leaves.ticket(), stays.ticket()];
        let waker = thread::spawn(move || tickets.into_iter().for_each(Turn::wake));
        let leaver = thread::spawn(move || drop(leaves));
        sleep(stays);
        waker.join().expect("the thread that wakes");
        leaver.join().expect("the caller that leaves");
    });
}

#[test]
fn a_caller_that_lets_others_run_runs_again() {
    loom::model(|| {
        let queue = WakeQueue::new(1, || {});
        let other = Arc::clone(&queue);
        let caller = thread::spawn(move || other.let_others_run());
        queue.let_others_run();
        caller.join().expect("the other caller");
    });
}
