//! A host that ends, in whatever way, leaves no worker, file or shared memory.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use brigade_integration::Helper;
use brigade_testkit::{BOUND, PATIENCE, Random, pause, wait_for, wait_until};

/// Time in which everything must be gone.
const PROMISED: Duration = Duration::from_secs(PATIENCE);

fn runs() -> u64 {
    std::env::var("BRIGADE_TEST_KILLS")
        .map_or(25, |text| text.parse().expect("BRIGADE_TEST_KILLS is a number"))
}

#[track_caller]
fn assert_nothing_is_left(helper: &Helper, host: u32, what: &str) {
    wait_until(&format!("the end of all workers, {what}"), PROMISED, || {
        helper.processes(host).is_empty()
    });
    wait_until(&format!("a clean temporary folder, {what}"), PROMISED, || {
        helper.left_behind().is_empty()
    });
}

#[test]
fn a_host_killed_at_any_moment_leaves_nothing() {
    let seed = Random::seed_from("BRIGADE_TEST_SEED");
    let mut random = Random::new(seed);
    for run in 0..runs() {
        // Most is in flight while workers start.
        const MODES: [&str; 8] =
            ["starting", "starting", "starting", "fresh", "fresh", "busy", "large", "hanging"];
        let mode = *random.choose(&MODES);
        let moment = random.below(Duration::from_millis(150));
        let mut helper = Helper::new(env!("CARGO_BIN_EXE_host")).argument(mode);
        let mut host = helper.start();
        pause(moment);
        host.kill().unwrap();
        host.wait().unwrap();
        let what =
            format!("run {run}: host `{mode}` killed after {moment:?}; BRIGADE_TEST_SEED={seed}");
        assert_nothing_is_left(&helper, host.id(), &what);
    }
}

#[test]
fn a_host_killed_while_its_first_workers_start_leaves_nothing() {
    // From before its `main` until its pool works, at intervals that hit every step now and then.
    for moment in (0..40).map(|step| Duration::from_micros(300 * step)) {
        let mut helper = Helper::new(env!("CARGO_BIN_EXE_host")).argument("starting");
        let mut host = helper.start();
        pause(moment);
        host.kill().unwrap();
        host.wait().unwrap();
        assert_nothing_is_left(&helper, host.id(), &format!("killed after {moment:?}"));
    }
}

#[test]
fn a_host_killed_at_any_step_of_a_start_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for step in ["started", "greeted", "answered", "replied", "running"] {
        for run in 0..4 {
            let file = folder.path().join(format!("{step}-{run}"));
            let mut helper = Helper::new(env!("CARGO_BIN_EXE_kills_host"))
                .argument("host")
                .argument(step)
                .argument(file.to_str().unwrap());
            let mut host = helper.start();
            let end = wait_for("the host's death", BOUND, || host.try_wait().unwrap());
            assert_eq!(end.signal(), Some(9), "{step}: {end}");
            assert_nothing_is_left(&helper, host.id(), step);
        }
    }
}

#[test]
fn workers_in_every_state_end_with_their_host() {
    for mode in ["idle", "busy", "hanging", "stopped", "emitting"] {
        let mut helper = Helper::new(env!("CARGO_BIN_EXE_host")).argument(mode);
        let mut host = helper.start();
        let pid = host.id();
        wait_until(&format!("two workers of a host that is {mode}"), BOUND, || {
            helper.workers(pid).len() == 2
        });
        if mode == "stopped" {
            wait_until("stopped workers", BOUND, || {
                helper.workers(pid).into_iter().all(brigade_testkit::processes::is_stopped)
            });
        }
        host.kill().unwrap();
        host.wait().unwrap();
        assert_nothing_is_left(&helper, pid, mode);
    }
}

#[test]
fn processes_that_tasks_have_started_end_with_the_host() {
    for run in 0..8 {
        let mut helper = Helper::new(env!("CARGO_BIN_EXE_host")).argument("families");
        let mut host = helper.start();
        wait_until("two workers with two processes each", BOUND, || {
            helper.workers(host.id()).len() == 6
        });
        host.kill().unwrap();
        host.wait().unwrap();
        assert_nothing_is_left(&helper, host.id(), &format!("run {run}"));
    }
}

#[test]
fn workers_without_a_parent_death_signal_end_with_the_host() {
    for way in ["initializer", "task", "cleared", "severed"] {
        for mode in ["idle-adrift", "busy-adrift"] {
            // Over ipc, a worker without descriptors cannot send the outcome of its task.
            if (way, mode) == ("severed", "idle-adrift") {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            // Writable for a worker that has become another user, too.
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
            let mut helper = Helper::new(env!("CARGO_BIN_EXE_host"))
                .argument(mode)
                .argument(way)
                .argument(folder.path().to_str().unwrap());
            let mut host = helper.start();
            wait_until(&format!("two workers adrift, {mode} by {way}"), BOUND, || {
                fs::read_dir(folder.path()).unwrap().count() == 2
            });
            host.kill().unwrap();
            host.wait().unwrap();
            assert_nothing_is_left(&helper, host.id(), &format!("{mode} by {way}"));
        }
    }
}

#[test]
fn accepted_tasks_run_although_the_pool_is_never_dropped() {
    for way in ["static", "exit", "late", "callback", "thread", "fork", "in a worker"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let mut helper = Helper::new(env!("CARGO_BIN_EXE_host"));
        helper = helper.argument("living").argument(way).argument(path);
        let output = helper.output();
        assert!(output.status.success(), "{way}: {output:?}");
        assert_eq!(fs::read_dir(path).unwrap().count(), 8, "{way}");
        assert!(helper.left_behind().is_empty(), "{way}");
    }
}

#[test]
fn a_host_that_exits_without_dropping_its_pool_leaves_nothing() {
    for mode in ["exits", "aborts"] {
        let mut helper = Helper::new(env!("CARGO_BIN_EXE_host")).argument(mode);
        let mut host = helper.start();
        host.wait().unwrap();
        assert_nothing_is_left(&helper, host.id(), mode);
    }
}
