//! What surrounds the host, and code of users that runs in it, holds up no thread of a pool.

use brigade_integration::Helper;
use brigade_testkit::{BOUND, wait_until};

/// Runs a mode of the troubled host, whose stderr is read only when it has ended.
#[track_caller]
fn goes_well(mode: &str) {
    let mut helper = Helper::new(env!("CARGO_BIN_EXE_troubled_host")).argument(mode);
    let (stdout, stderr) = helper.output_unread();
    assert_eq!(stdout, "well\n", "{mode}: {stderr}");
}

#[test]
fn a_host_whose_stderr_is_not_read_has_deaths_deadlines_and_an_end() {
    goes_well("stderr-not-read");
}

#[test]
fn a_subscriber_that_panics_disturbs_nobody() {
    goes_well("subscriber-panics");
}

#[test]
fn a_subscriber_may_ask_the_pool() {
    goes_well("subscriber-asks");
}

#[test]
fn a_subscriber_that_blocks_holds_up_neither_deadlines_nor_the_end() {
    goes_well("subscriber-blocks");
}

#[test]
fn a_subscriber_may_end_a_pool_that_breaks() {
    goes_well("subscriber-shuts-down");
}

#[test]
fn a_host_that_may_open_nothing_more_has_deaths_deadlines_and_an_end() {
    goes_well("few-descriptors");
}

#[test]
fn a_host_that_may_not_kill_its_workers_any_more_says_so_and_ends_with_them() {
    let mut helper = Helper::new(env!("CARGO_BIN_EXE_troubled_host")).argument("gives-up-rights");
    let (stdout, stderr) = helper.output_unread();
    assert_eq!(stdout, "well\n", "{stderr}");
    wait_until("the end of the workers", BOUND, || helper.workers(0).is_empty());
}
