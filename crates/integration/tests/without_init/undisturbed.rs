//! Nothing around the host, and no user code in it, holds up a thread of the pool.

use brigade_integration::Helper;
use brigade_testkit::{BOUND, wait_until};

/// Runs a mode of the troubled host, whose stderr is read only after its end.
#[track_caller]
fn goes_well(mode: &str) {
    let mut helper = Helper::new(env!("CARGO_BIN_EXE_troubled_host")).argument(mode);
    let (stdout, stderr) = helper.output_unread();
    assert_eq!(stdout, "well\n", "{mode}: {stderr}");
}

#[test]
fn an_unread_stderr_delays_no_death_deadline_or_shutdown() {
    goes_well("stderr-not-read");
}

#[test]
fn a_panicking_subscriber_disturbs_nobody() {
    goes_well("subscriber-panics");
}

#[test]
fn a_subscriber_may_query_the_pool() {
    goes_well("subscriber-asks");
}

#[test]
fn a_blocking_subscriber_delays_no_deadline_or_shutdown() {
    goes_well("subscriber-blocks");
}

#[test]
fn a_subscriber_may_end_a_pool_that_breaks() {
    goes_well("subscriber-shuts-down");
}

#[test]
fn a_host_without_descriptors_keeps_deaths_and_deadlines() {
    goes_well("few-descriptors");
}

#[test]
fn a_host_that_may_not_kill_its_workers_reports_it() {
    let mut helper = Helper::new(env!("CARGO_BIN_EXE_troubled_host")).argument("gives-up-rights");
    let (stdout, stderr) = helper.output_unread();
    assert_eq!(stdout, "well\n", "{stderr}");
    wait_until("the end of the workers", BOUND, || helper.processes(0).is_empty());
}
