//! More waiting callers than listen while they sleep.

use brigade_wire::ring::Listener;

use super::{Model, spawn};
use crate::drive::collect::listeners::NextTurn;
use crate::drive::collect::rings::{LockedRings, Rings};

/// The collector thread is rung for callers of whom none listens, even if it is quiet because
/// callers looked before.
#[test]
fn an_outcome_for_one_of_many_sleeping_callers_is_collected() {
    for is_quiet in [false, true] {
        loom::model(move || {
            let model = Model::with(2, false, 1, false);
            if is_quiet {
                let mut locked = model.lock();
                locked.listeners().count(1);
                locked.listeners().next_turn = NextTurn::Due;
                model.listen(Listener::Nobody);
            }
            let worker = spawn(&model, Model::send_outcomes);
            let collector = spawn(&model, Model::take_turns);
            let other = spawn(&model, |model| model.wait_for(1));
            model.wait_for(0);
            other.join().expect("the other caller");
            model.end();
            collector.join().expect("the collector thread");
            worker.join().expect("the worker");
        });
    }
}

/// The collector thread runs user code until all callers have their outcomes.
#[test]
fn sleeping_callers_do_without_a_busy_collector_thread() {
    loom::model(|| {
        let model = Model::with(2, false, 1, false);
        let worker = spawn(&model, Model::send_outcomes);
        let collector = spawn(&model, |model| {
            model.lock().listeners().set_thread_is_away(true);
        });
        let other = spawn(&model, |model| model.wait_for(1));
        model.wait_for(0);
        other.join().expect("the other caller");
        collector.join().expect("the collector thread");
        worker.join().expect("the worker");
    });
}
