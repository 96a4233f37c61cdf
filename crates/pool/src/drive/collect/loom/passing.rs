//! A thread that does not wait looks at the rings.

use super::super::rings::{LockedRings, Rings};
use super::{Model, spawn};
use crate::drive::deferred::Deferred;

/// A thread that comes by, as one that submits does, handles the outcome of a caller that is about
/// to sleep at the doorbell.
#[test]
fn a_caller_whose_outcome_another_thread_takes_is_woken() {
    loom::model(|| {
        let model = Model::new(1);
        let worker = spawn(&model, Model::send_outcomes);
        let passer_by = spawn(&model, |model| {
            let mut deferred = Deferred::default();
            let mut locked = model.lock();
            let collected = locked.look(None, &mut deferred);
            locked.listeners().count(collected);
            drop(locked);
            model.run(&mut deferred);
        });
        model.wait_for(0);
        passer_by.join().expect("the thread that comes by");
        worker.join().expect("the worker");
    });
}
