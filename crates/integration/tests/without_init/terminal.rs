//! Signals that a host receives or was started with, and the terminal of a host and its workers.

use brigade_integration::Helper;
use brigade_testkit::processes::{Signal, hit_group};
use brigade_testkit::{BOUND, Random, pause, wait_for};
use std::time::Duration;

#[test]
fn a_pool_survives_a_stop_of_its_host_during_starts() {
    let seed = Random::seed_from("BRIGADE_TEST_SEED");
    let mut random = Random::new(seed);
    let mut helper =
        Helper::new(env!("CARGO_BIN_EXE_host")).argument("replacing").leading_a_group();
    let mut host = helper.start();
    let end =
        wait_for(&format!("the end of the tasks; BRIGADE_TEST_SEED={seed}"), 2 * BOUND, || {
            hit_group(host.id(), Signal::TSTP);
            pause(random.below(Duration::from_millis(1)));
            hit_group(host.id(), Signal::CONT);
            pause(random.below(Duration::from_millis(8)));
            host.try_wait().expect("our child")
        });
    assert!(end.success(), "{end}");
}

#[test]
fn workers_have_default_signals_whatever_the_host_blocks() {
    let mut helper = Helper::new("env")
        .argument("--block-signal")
        .argument("--ignore-signal=CHLD")
        .argument(env!("CARGO_BIN_EXE_host"))
        .argument("signals");
    let output = helper.output();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("0000000000000000 Ok(ExitStatus(unix_wait_status(0)))"), "{output:?}");
}

#[test]
fn a_worker_that_uses_the_terminal_is_not_stopped() {
    // `script` creates a terminal for a command, which becomes its foreground job.
    let job = format!("stty tostop; exec {} terminal", env!("CARGO_BIN_EXE_host"));
    let mut helper = Helper::new("script").argument("-qec").argument(&job).argument("/dev/null");
    let output = helper.output();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("written by a task"), "{output:?}");
    // EIO.
    assert!(text.contains("the terminal says Some(5)"), "{output:?}");
}

#[test]
fn a_worker_in_a_sandbox_cannot_read_from_the_terminal() {
    let job = format!("exec {} 'sandboxed terminal'", env!("CARGO_BIN_EXE_host"));
    let mut helper = Helper::new("script").argument("-qec").argument(&job).argument("/dev/null");
    let output = helper.output();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("written by a task"), "{output:?}");
    // EBADF.
    assert!(text.contains("the output says Some(9)"), "{output:?}");
}
