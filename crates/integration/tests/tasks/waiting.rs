//! Waiting for several handles: until all, the first or the first error, with a timeout, in several
//! threads.

use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use brigade::pool::Waited;
use brigade::{Handle, Pool, TaskState, Until, as_completed, wait};
use brigade_integration::pool;
use brigade_testkit::faults::{aborts, panics_with_str, sleeps, spins};
use brigade_testkit::{BOUND, Gate, Watchdog, outcome, pass, wait_until};

const SMALL: Duration = Duration::from_millis(20);

/// A lost wake-up ends the test: with its own timeout a wait would only be late.
fn watch() -> Watchdog {
    Watchdog::new(thread::current().name().unwrap_or("a test"), BOUND)
}

/// Returns the numbers of the tasks that have ended, and of those that have not.
fn numbers<R>(waited: &Waited<'_, R>) -> (Vec<u64>, Vec<u64>) {
    let numbers = |handles: &[&Handle<R>]| handles.iter().map(|handle| handle.id().get()).collect();
    (numbers(&waited.done), numbers(&waited.pending))
}

/// Submits the first tasks of a pool of two, which then wait at the gate.
fn occupy(pool: &Pool, gate: &Gate) -> Vec<Handle<u64>> {
    let handles = [1, 2].map(|number| pool.submit(pass, gate.pass(number)).unwrap());
    gate.wait_for_arrivals(2);
    handles.into()
}

#[test]
fn all_waits_for_all() {
    let _watchdog = watch();
    let pool = pool(2);
    let handles: Vec<_> = (0..1_000).map(|_| pool.submit(spins, 10).unwrap()).collect();
    let waited = wait(&handles, Until::All, None);
    assert_eq!(numbers(&waited), ((1..=1_000).collect(), vec![]));
    assert_eq!(handles.into_iter().map(|handle| handle.wait().unwrap()).sum::<u64>(), 10_000);
}

#[test]
fn a_timeout_returns_finished_and_unfinished_tasks() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let mut handles = vec![pool.submit(spins, 1).unwrap()];
    wait(&handles, Until::All, None);
    handles.extend(occupy(&pool, &gate));
    for timeout in [Duration::ZERO, SMALL] {
        for until in [Until::All, Until::FirstError] {
            let waited = wait(&handles, until, timeout);
            assert_eq!(numbers(&waited), (vec![1], vec![2, 3]));
        }
        assert_eq!(numbers(&wait(&handles[1..], Until::First, timeout)), (vec![], vec![2, 3]));
    }
    gate.open();
    assert_eq!(numbers(&wait(&handles, Until::All, None)), (vec![1, 2, 3], vec![]));
}

#[test]
fn a_handle_given_twice_counts_once() {
    let _watchdog = watch();
    let pool = pool(1);
    let gate = Gate::new();
    let ended = pool.submit(spins, 1).unwrap();
    wait([&ended], Until::All, None);
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    let twice = [&running, &ended, &running, &ended];
    for until in [Until::All, Until::FirstError] {
        assert_eq!(numbers(&wait(twice, until, SMALL)), (vec![1], vec![2]));
    }
    gate.open();
    assert_eq!(numbers(&wait(twice, Until::All, None)), (vec![2, 1], vec![]));
}

#[test]
fn waiting_for_no_handles_returns_at_once() {
    let _watchdog = watch();
    for until in [Until::All, Until::First, Until::FirstError] {
        assert_eq!(numbers(&wait([] as [&Handle<u64>; 0], until, None)), (vec![], vec![]));
    }
    assert!(as_completed([] as [Handle<u64>; 0]).next().is_none());
}

#[test]
fn first_returns_when_any_task_has_ended() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let mut handles = vec![pool.submit(pass, gate.pass(1)).unwrap()];
    handles.push(pool.submit(sleeps, 10).unwrap());
    for _ in 0..2 {
        let waited = wait(&handles, Until::First, None);
        assert_eq!(numbers(&waited), (vec![2], vec![1]));
    }
    gate.open();
}

#[test]
fn a_cancelled_task_counts_as_ended() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let mut handles = occupy(&pool, &gate);
    handles.push(pool.submit(spins, 1).unwrap());
    thread::scope(|scope| {
        let first = scope.spawn(|| numbers(&wait(&handles, Until::First, None)));
        let all = scope.spawn(|| numbers(&wait(&handles[2..], Until::All, None)));
        assert!(handles[2].cancel());
        assert_eq!(first.join().unwrap(), (vec![3], vec![1, 2]));
        assert_eq!(all.join().unwrap(), (vec![3], vec![]));
    });
    assert_eq!(handles[2].state(), TaskState::Cancelled);
    gate.open();
}

#[test]
fn first_error_returns_at_the_first_failure() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let at_gate = |pass: brigade_testkit::Pass| {
        brigade_testkit::pass(pass);
    };
    let mut handles = vec![pool.submit(at_gate, gate.pass(1)).unwrap()];
    handles.push(pool.submit(|(): ()| (), ()).unwrap());
    handles.push(pool.submit(panics_with_str, ()).unwrap());
    handles.push(pool.submit(at_gate, gate.pass(2)).unwrap());
    for _ in 0..2 {
        let waited = wait(&handles, Until::FirstError, None);
        assert_eq!(numbers(&waited), (vec![2, 3], vec![1, 4]));
    }
    gate.open();
    handles.push(pool.submit(aborts, ()).unwrap());
    assert_eq!(numbers(&wait(&handles[3..], Until::FirstError, None)).0.last(), Some(&5));
}

#[test]
fn cancellations_and_returned_errors_are_not_failures() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let at_gate =
        |pass: brigade_testkit::Pass| -> Result<u64, String> { Ok(brigade_testkit::pass(pass)) };
    let mut handles = vec![pool.submit(|(): ()| Err("a value".to_owned()), ()).unwrap()];
    wait(&handles, Until::All, None);
    handles.extend([1, 2, 3].map(|number| pool.submit(at_gate, gate.pass(number)).unwrap()));
    gate.wait_for_arrivals(2);
    assert!(handles[3].cancel());
    let waited = wait(&handles, Until::FirstError, SMALL);
    assert_eq!(numbers(&waited), (vec![1, 4], vec![2, 3]));
    gate.open();
    assert_eq!(wait(&handles, Until::FirstError, None).done.len(), 4);
}

#[test]
fn a_hundred_tasks_that_end_at_once_lose_no_wake_up() {
    let _watchdog = watch();
    let pool = pool(2);
    for _ in 0..20 {
        let gate = Gate::new();
        let running = pool.submit(pass, gate.pass(1)).unwrap();
        gate.wait_for_arrivals(1);
        let handles: Vec<_> = (0..100).map(|_| pool.submit(spins, 0).unwrap()).collect();
        // Each of these waits for all of them, and one thread cancels half of them meanwhile.
        let ready = Barrier::new(4);
        thread::scope(|scope| {
            for until in [Until::All, Until::FirstError, Until::All] {
                let (handles, ready) = (&handles, &ready);
                scope.spawn(move || {
                    ready.wait();
                    assert_eq!(wait(handles, until, None).pending.len(), 0);
                });
            }
            ready.wait();
            handles.iter().step_by(2).for_each(|handle| {
                handle.cancel();
            });
            gate.open();
        });
        outcome(running).unwrap();
    }
}

#[test]
fn several_threads_may_wait_for_the_same_handles() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let handles = occupy(&pool, &gate);
    thread::scope(|scope| {
        let waits: Vec<_> = [Until::All, Until::First, Until::FirstError]
            .iter()
            .cycle()
            .take(12)
            .map(|until| scope.spawn(|| wait(&handles, *until, None).done.len()))
            .collect();
        // Some of them give up early, and leave the others alone.
        for until in [Until::All, Until::First, Until::FirstError] {
            assert!(wait(&handles, until, SMALL).done.is_empty());
        }
        assert!(waits.iter().all(|wait| !wait.is_finished()));
        gate.open();
        assert!(waits.into_iter().all(|wait| wait.join().unwrap() > 0));
    });
}

#[test]
fn tasks_of_several_pools_are_waited_for_together() {
    let _watchdog = watch();
    let pools = [pool(1), pool(1)];
    let gates = [Gate::new(), Gate::new()];
    let submit = |at: usize, number| pools[at].submit(pass, gates[at].pass(number)).unwrap();
    // Only the second pool's tasks end, so that no news of the first one helps.
    let handles = [submit(0, 1), submit(1, 2)];
    let mut completed = as_completed([submit(0, 3), submit(1, 4)]);
    thread::scope(|scope| {
        let first = scope.spawn(|| numbers(&wait(&handles, Until::First, None)));
        let next = scope.spawn(|| completed.next().unwrap());
        for gate in &gates {
            gate.wait_for_arrivals(1);
        }
        gates[1].open();
        assert_eq!(first.join().unwrap(), (vec![1], vec![1]));
        assert_eq!(outcome(next.join().unwrap()).unwrap(), 4);
    });
    gates[0].open();
    assert_eq!(wait(&handles, Until::All, None).done.len(), 2);
    assert_eq!(outcome(completed.next().unwrap()).unwrap(), 3);
}

#[test]
fn handles_are_yielded_in_completion_order() {
    let _watchdog = watch();
    let pool = pool(2);
    let gates = [Gate::new(), Gate::new()];
    let mut handles = vec![
        pool.submit(pass, gates[0].pass(0)).unwrap(),
        pool.submit(pass, gates[1].pass(1)).unwrap(),
    ];
    for gate in &gates {
        gate.wait_for_arrivals(1);
    }
    let cancelled = pool.submit(spins, 2).unwrap();
    assert!(cancelled.cancel());
    handles.push(cancelled);
    let mut completed = as_completed(handles);
    assert_eq!(completed.next().unwrap().id().get(), 3);
    gates[1].open();
    assert_eq!(outcome(completed.next().unwrap()).unwrap(), 1);
    gates[0].open();
    assert_eq!(outcome(completed.next().unwrap()).unwrap(), 0);
    assert!(completed.next().is_none());
    assert!(completed.next().is_none());
}

#[test]
fn a_timeout_is_not_mistaken_for_the_end() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let handles = occupy(&pool, &gate);
    let ended = pool.submit(spins, 1).unwrap();
    assert!(ended.cancel());
    let mut completed = as_completed(handles.into_iter().chain([ended]));
    assert_eq!(completed.len(), 3);
    assert!(completed.next_timeout(Duration::ZERO).unwrap().is_some());
    for timeout in [Duration::ZERO, SMALL] {
        let error = completed.next_timeout(timeout).unwrap_err();
        assert_eq!((error.pending, error.total), (2, 3));
        assert_eq!(error.to_string(), "timed out waiting for 2 of 3 tasks");
        assert_eq!(completed.len(), 2);
    }
    gate.open();
    assert!(completed.next_timeout(BOUND).unwrap().is_some());
    assert!(completed.next_timeout(Duration::MAX).unwrap().is_some());
    assert_eq!(completed.len(), 0);
    assert!(completed.next_timeout(Duration::ZERO).unwrap().is_none());
}

#[test]
fn tasks_of_different_types_are_waited_for_together() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let number = pool.submit(pass, gate.pass(7)).unwrap();
    let text = pool.submit(|text: String| text + "!", "done".to_owned()).unwrap();
    let failed = pool.submit(panics_with_str, ()).unwrap();
    let tasks = [number.untyped(), text.untyped(), failed.untyped()];
    let waited = wait(&tasks, Until::FirstError, None);
    assert!(waited.done.iter().any(|task| task.id() == failed.id()), "{waited:?}");
    let mut completed = as_completed(tasks);
    let first: Vec<_> = completed.by_ref().take(2).map(|task| task.id()).collect();
    assert!(first.contains(&text.id()) && first.contains(&failed.id()), "{first:?}");
    gate.open();
    let last = completed.next().unwrap();
    assert_eq!((last.id(), last.state()), (number.id(), TaskState::Done));
    drop(completed);
    assert_eq!((outcome(number).unwrap(), outcome(text).unwrap()), (7, "done!".to_owned()));
    assert!(outcome(failed).unwrap_err().is_panic());
}

#[test]
fn dropping_the_iterator_lets_its_tasks_run() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let mut handles = occupy(&pool, &gate);
    let queued = pool.submit(spins, 3).unwrap();
    let (sender, receiver) = channel();
    queued.on_done(move |outcome| sender.send(outcome.unwrap()).unwrap());
    let ended = pool.submit(spins, 4).unwrap();
    assert!(ended.cancel());
    handles.extend([queued, ended]);
    let mut completed = as_completed(handles);
    assert_eq!(completed.next().unwrap().state(), TaskState::Cancelled);
    drop(completed);
    gate.open();
    assert_eq!(receiver.recv_timeout(BOUND).unwrap(), 3);
}

#[test]
fn a_wait_sees_what_a_callback_and_a_future_see() {
    let _watchdog = watch();
    let pool = pool(1);
    let gate = Gate::new();
    let handle = pool.submit(pass, gate.pass(4)).unwrap();
    let (sender, receiver) = channel();
    handle.on_done(move |outcome| sender.send(outcome.unwrap()).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| wait([&handle], Until::All, None));
        scope.spawn(|| wait([&handle], Until::First, None));
        gate.open();
    });
    assert_eq!(receiver.recv_timeout(BOUND).unwrap(), 4);
    wait_until("the handle to be done", BOUND, || handle.is_done());
    assert_eq!(futures::executor::block_on(handle).unwrap(), 4);
}

/// Tasks of this many microseconds are brief, and longer than a wake-up.
const BRIEF: u64 = 70;

/// Returns a pool whose worker may announce outcomes later, and a task that is finished before one
/// that waits at the gate.
fn brief_before_long(gate: &Gate) -> (Pool, Handle<u64>) {
    let pool = pool(1);
    for sum in pool.map(spins, [BRIEF; 100]).chunk(1) {
        sum.unwrap();
    }
    let brief: Vec<_> = (0..2).map(|_| pool.submit(spins, BRIEF).unwrap()).collect();
    drop(pool.submit(pass, gate.pass(1)).unwrap());
    (pool, brief.into_iter().next_back().unwrap())
}

#[test]
fn an_outcome_is_not_held_back_by_a_long_task_behind_it() {
    let _watchdog = watch();
    let gate = Gate::new();
    let (_pool, brief) = brief_before_long(&gate);
    assert_eq!(brief.wait().unwrap(), BRIEF);
    gate.open();
}
