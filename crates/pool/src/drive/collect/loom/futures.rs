//! Futures that look when they are polled.

use std::sync::Arc;
use std::task::{Wake, Waker};

use super::{Model, spawn};
use crate::drive::collect::caller::Caller;
use crate::sync::{Thread, current, park};
use brigade_task::backend::Wait;

/// Awaits a task as the only one of an executor, which parks its thread, and takes the outcome.
fn await_alone(model: &Model, task: usize) {
    struct Parked(Thread);
    impl Wake for Parked {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let (task, waker) = (&model.tasks[task], Waker::from(Arc::new(Parked(current()))));
    let mut is_first = true;
    loop {
        if task.is_pending() && std::mem::take(&mut is_first) {
            Caller::new(model).glance(&**task);
        }
        match task.poll(&waker).expect("it was not taken") {
            Some(_) => return,
            None => park(),
        }
    }
}

#[test]
fn a_future_that_has_looked_in_vain_is_woken() {
    loom::model(|| {
        let model = Model::with(2, false, 3, true);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        await_alone(&model, 0);
        await_alone(&model, 1);
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}

/// Without a collector thread: the other caller handles the outcome of the future.
#[test]
fn a_future_that_spins_hands_over_to_a_caller() {
    loom::model(|| {
        let model = Model::with(2, false, 3, true);
        let worker = spawn(&model, Model::send_outcomes);
        let caller = spawn(&model, |model| model.wait_for(1));
        await_alone(&model, 0);
        caller.join().expect("the caller");
        worker.join().expect("the worker");
    });
}

/// The collector thread relies on futures that have looked with success, until one looks in vain.
#[test]
fn a_future_that_looks_in_vain_after_others_is_woken() {
    loom::model(|| {
        let model = Model::with(3, false, 3, true);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, Model::take_turns);
        await_alone(&model, 0);
        await_alone(&model, 2);
        model.end();
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}
