//! A host without descriptors, memory or a proper temporary folder gets errors, and never hangs.

use std::process::Output;

use brigade_integration::Helper;
use brigade_testkit::repetitions;

/// Runs the program `host`, which reports on its pool, through a shell that takes something away
/// first.
fn host_after(preparation: &str) -> Output {
    run_after(preparation, env!("CARGO_BIN_EXE_host"), "starved")
}

fn run_after(preparation: &str, program: &str, arguments: &str) -> Output {
    let script = format!("{preparation}; exec \"$0\" {arguments}");
    Helper::new("/bin/sh").argument("-c").argument(&script).argument(program).output()
}

/// Returns the report of a host with this much address space that sends large arguments to
/// `workers` workers.
fn carried_within(mebibytes: u64, workers: usize) -> String {
    // The C library takes 128 MiB for each thread's first allocation, and returns some of it at
    // once. An allocation of others that fails meanwhile is beyond our control.
    let output = run_after(
        &format!("export MALLOC_ARENA_MAX=1; ulimit -v {}", mebibytes * 1024),
        env!("CARGO_BIN_EXE_limited"),
        &format!("carries {workers}"),
    );
    assert_sensible(&format!("{mebibytes} MiB, {workers} workers"), &output)
}

#[track_caller]
fn assert_sensible(what: &str, output: &Output) -> String {
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {} {report:?} {stderr}", output.status);
    report
}

#[test]
fn every_shortage_of_descriptors_is_an_error_or_harmless() {
    let mut reports = Vec::new();
    for limit in (5..30).chain([60]) {
        let output = host_after(&format!("ulimit -n {limit}"));
        reports.push(assert_sensible(&format!("{limit} descriptors"), &output));
    }
    assert!(reports[0] != "well\n", "five descriptors are not enough for a pool");
    assert_eq!(reports.last().map(String::as_str), Some("well\n"));
}

#[test]
fn a_file_size_limit_is_an_error_that_says_so() {
    for (blocks, is_enough) in [(0, false), (8, false), (1_000_000, true)] {
        let output = host_after(&format!("ulimit -f {blocks}"));
        let report = assert_sensible(&format!("files of {blocks} blocks"), &output);
        assert!(
            if is_enough { report == "well\n" } else { report.contains("ulimit -f") },
            "{report}"
        );
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    // The stack of a thread needs the most address space. The minimum at which the program itself
    // starts is beyond our control.
    let reports: Vec<String> = (6..60)
        .map(|mebibytes| host_after(&format!("ulimit -v {}", mebibytes * 1024)))
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .collect();
    assert!(
        reports.iter().any(|report| report.contains("start a thread of the pool")),
        "{reports:?}"
    );
    assert_eq!(reports.last().map(String::as_str), Some("well\n"));
}

#[test]
fn large_arguments_arrive_with_little_address_space() {
    for (workers, limits) in [
        (1, [128, 200, 400, 600, 1200, 24_000]),
        (4, [256, 400, 800, 1200, 3000, 24_000]),
        (16, [512, 1200, 2400, 6000, 24_000, 34_000]),
    ] {
        for mebibytes in limits {
            let report = carried_within(mebibytes, workers);
            assert_eq!(report, "well\n", "{mebibytes} MiB, {workers} workers");
        }
    }
}

#[test]
fn no_address_space_limit_aborts_the_host() {
    for workers in [1, 4, 64] {
        // In steps of 20 MiB, or of 5 if all are repeated.
        for mebibytes in (40..=110).step_by(80 / repetitions(16)) {
            let report = carried_within(mebibytes, workers);
            assert!(!report.is_empty(), "{mebibytes} MiB, {workers} workers");
        }
    }
}

#[test]
fn links_keep_no_memory_of_large_values() {
    // Too little for arenas, so that values go through the links.
    let script = "export MALLOC_ARENA_MAX=1; ulimit -v 500000";
    let output = run_after(script, env!("CARGO_BIN_EXE_limited"), "returns 4");
    assert_eq!(assert_sensible("values without arenas", &output), "well\n");
}

#[test]
fn the_address_space_limit_may_change_while_a_pool_lives() {
    let output = run_after("true", env!("CARGO_BIN_EXE_limited"), "lowers 2");
    assert_eq!(assert_sensible("a limit that changes", &output), "well\n");
}

#[test]
fn workers_may_have_less_address_space_than_their_host() {
    let output = run_after("true", env!("CARGO_BIN_EXE_limited"), "confined-workers 2");
    assert_eq!(assert_sensible("confined workers", &output), "well\n");
}

#[test]
fn a_temporary_folder_may_have_a_long_path() {
    let output =
        host_after("TMPDIR=\"$TMPDIR/$(printf '%0120d' 0)\"; mkdir \"$TMPDIR\"; export TMPDIR");
    assert_eq!(assert_sensible("a long name", &output), "well\n");
}

#[test]
fn a_missing_temporary_folder_is_named() {
    // Only the ipc link needs the folder.
    let output = host_after("export BRIGADE_LINK=ipc TMPDIR=/nowhere");
    let report = assert_sensible("no folder", &output);
    assert!(report.contains("/nowhere"), "{report}");
}

#[test]
fn only_ipc_needs_a_temporary_folder_in_utf_8() {
    let folder = "TMPDIR=\"$(printf '/nowhere\\377')\"; export TMPDIR";
    let output = host_after(&format!("export BRIGADE_LINK=ring; {folder}"));
    assert_eq!(assert_sensible("rings", &output), "well\n");
    let output = host_after(&format!("export BRIGADE_LINK=ipc; {folder}"));
    let report = assert_sensible("ipc", &output);
    assert!(report.contains("/nowhere") && report.contains("not UTF-8"), "{report}");
}
