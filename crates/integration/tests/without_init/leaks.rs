//! Pools that have ended leave nothing in their process: no descriptor, thread, child, file or
//! memory.

use brigade_integration::Helper;
use brigade_testkit::repetitions;

/// Runs the program `leaker`, which counts the resources of its own process before and after.
#[track_caller]
fn assert_no_leak(scenario: &str, share: u32) {
    let pools = repetitions(160 / share).to_string();
    let mut helper = Helper::new(env!("CARGO_BIN_EXE_leaker")).argument(scenario).argument(&pools);
    let output = helper.output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(helper.left_behind().is_empty(), "{:?}", helper.left_behind());
}

#[test]
fn an_unused_pool_leaves_nothing() {
    assert_no_leak("unused", 1);
}

#[test]
fn a_used_pool_leaves_nothing() {
    assert_no_leak("used", 1);
}

#[test]
fn a_pool_whose_worker_crashed_leaves_nothing() {
    assert_no_leak("crashed", 5);
}

#[test]
fn a_killed_pool_leaves_nothing() {
    assert_no_leak("killed", 5);
}

#[test]
fn a_pool_whose_tasks_were_cancelled_leaves_nothing() {
    assert_no_leak("cancelled", 5);
}

#[test]
fn a_broken_pool_leaves_nothing() {
    assert_no_leak("broken", 10);
}

#[test]
fn a_pool_killed_amid_large_messages_leaves_nothing() {
    assert_no_leak("large", 10);
}

#[test]
fn a_pool_whose_workers_were_set_up_leaves_nothing() {
    assert_no_leak("set-up", 5);
}

#[test]
fn a_pool_whose_initializer_failed_leaves_nothing() {
    assert_no_leak("ill-set-up", 10);
}

#[test]
fn a_pool_whose_memory_was_scribbled_over_leaves_nothing() {
    assert_no_leak("scribbled", 5);
}

#[test]
fn a_pool_with_buffers_in_all_outcomes_leaves_nothing() {
    assert_no_leak("buffers", 30);
}

#[test]
fn a_pool_that_was_split_into_streams_leaves_nothing() {
    assert_no_leak("streams", 5);
}

#[test]
fn a_pool_that_called_back_leaves_nothing() {
    assert_no_leak("called_back", 2);
}
