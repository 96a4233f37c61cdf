//! Tasks that take long are reported with their phase and their worker.

use std::time::Duration;

use brigade_integration::{Log, builder, square};
use brigade_testkit::{Gate, outcome, pass};

const LIMIT: Duration = Duration::from_millis(40);

#[test]
fn slow_tasks_are_reported_with_phase_and_worker() {
    let log = Log::get();
    let pool = builder(1).slow_task_after(LIMIT).build().unwrap();
    let gate = Gate::new();
    let running = pool.task(pass).label("held").submit(gate.pass(1)).unwrap();
    let queued = pool.task(square).label("behind").submit(2).unwrap();
    gate.wait_for_arrivals(1);
    let pid = format!("pid={}", pool.worker_pids()[0]);
    let slow = ["WARN", "task is slow", "elapsed="];
    let expect = |words: &[&str]| log.wait_for_line(&[&slow, words].concat());
    expect(&[r#"label="held""#, r#"phase="running""#, "worker=worker 0.1", &pid, "running="]);
    expect(&["task=task 2", r#"label="behind""#, r#"phase="queued""#]);
    // And again, after the same time.
    expect(&[r#"label="held""#, "attempt=1", "elapsed=8"]);
    gate.open();
    outcome(running).unwrap();
    outcome(queued).unwrap();
}

#[test]
fn a_task_that_waits_for_the_first_worker_says_so() {
    let log = Log::get();
    let gate = Gate::new();
    let builder = builder(1).name("starting").initializer(pass, gate.pass(1));
    let pool = builder.slow_task_after(LIMIT).build().unwrap();
    let handle = pool.submit(square, 3).unwrap();
    log.wait_for_line(&["task is slow", "starting", r#"phase="starting""#]);
    gate.open();
    outcome(handle).unwrap();
}
