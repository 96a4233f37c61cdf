//! A host without descriptors, or without a proper temporary folder, gets errors, and never hangs.

use std::process::Output;

use brigade_integration::Helper;

/// Runs the program `host`, which tells what came of its pool, through a shell that takes something away first.
fn host_after(preparation: &str) -> Output {
    run_after(preparation, env!("CARGO_BIN_EXE_host"), "starved")
}

fn run_after(preparation: &str, program: &str, arguments: &str) -> Output {
    let script = format!("{preparation}; exec \"$0\" {arguments}");
    Helper::new("/bin/sh").argument("-c").argument(&script).argument(program).output()
}

/// What a host with so much address space says that sends large arguments to so many workers.
fn carried_within(mebibytes: u64, workers: usize) -> String {
    // The C library takes 128 MiB for each thread's first allocation, and gives some of it back at once. What fails meanwhile
    // is not ours.
    let output = run_after(
        &format!("export MALLOC_ARENA_MAX=1; ulimit -v {}", mebibytes * 1024),
        env!("CARGO_BIN_EXE_limited"),
        &format!("carries {workers}"),
    );
    assert_sensible(&format!("{mebibytes} MiB, {workers} workers"), &output)
}

#[track_caller]
fn assert_sensible(what: &str, output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {} {told:?} {stderr}", output.status);
    told
}

#[test]
fn every_shortage_of_descriptors_is_an_error_or_none() {
    let mut told = Vec::new();
    for limit in (5..30).chain([60]) {
        let output = host_after(&format!("ulimit -n {limit}"));
        told.push(assert_sensible(&format!("{limit} descriptors"), &output));
    }
    assert!(told[0] != "well\n", "five descriptors are not enough for a pool");
    assert_eq!(told.last().map(String::as_str), Some("well\n"));
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_says_so() {
    for (blocks, is_enough) in [(0, false), (8, false), (1_000_000, true)] {
        let output = host_after(&format!("ulimit -f {blocks}"));
        let told = assert_sensible(&format!("files of {blocks} blocks"), &output);
        assert!(if is_enough { told == "well\n" } else { told.contains("ulimit -f") }, "{told}");
    }
}

#[test]
fn a_thread_that_cannot_be_started_is_an_error() {
    // The stack of a thread is what needs most address space; with how much the program itself starts is not ours to say.
    let told: Vec<String> = (6..40)
        .map(|mebibytes| host_after(&format!("ulimit -v {}", mebibytes * 1024)))
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .collect();
    assert!(told.iter().any(|told| told.contains("start a thread of the pool")), "{told:?}");
    assert_eq!(told.last().map(String::as_str), Some("well\n"));
}

#[test]
fn large_arguments_arrive_however_little_address_space_there_is() {
    for (workers, limits) in [
        (1, [128, 200, 400, 600, 1200, 24_000]),
        (4, [256, 400, 800, 1200, 3000, 24_000]),
        (16, [512, 1200, 2400, 6000, 24_000, 34_000]),
    ] {
        for mebibytes in limits {
            let told = carried_within(mebibytes, workers);
            assert_eq!(told, "well\n", "{mebibytes} MiB, {workers} workers");
        }
    }
}

#[test]
fn no_limit_of_address_space_aborts_the_host() {
    for workers in [1, 4, 64] {
        for mebibytes in [40, 50, 60, 70, 80, 90, 100, 110] {
            let told = carried_within(mebibytes, workers);
            assert!(!told.is_empty(), "{mebibytes} MiB, {workers} workers");
        }
    }
}

#[test]
fn a_limit_of_address_space_may_change_while_a_pool_lives() {
    let output = run_after("true", env!("CARGO_BIN_EXE_limited"), "lowers 2");
    assert_eq!(assert_sensible("a limit that changes", &output), "well\n");
}

#[test]
fn workers_may_have_less_address_space_than_their_host() {
    let output = run_after("true", env!("CARGO_BIN_EXE_limited"), "confined-workers 2");
    assert_eq!(assert_sensible("confined workers", &output), "well\n");
}

#[test]
fn a_temporary_folder_with_a_long_name_is_no_obstacle() {
    let output =
        host_after("TMPDIR=\"$TMPDIR/$(printf '%0120d' 0)\"; mkdir \"$TMPDIR\"; export TMPDIR");
    assert_eq!(assert_sensible("a long name", &output), "well\n");
}

#[test]
fn a_temporary_folder_that_is_not_there_is_named() {
    // Only the ipc link needs the folder.
    let output = host_after("export BRIGADE_LINK=ipc TMPDIR=/nowhere");
    let told = assert_sensible("no folder", &output);
    assert!(told.contains("/nowhere"), "{told}");
}

#[test]
fn a_temporary_folder_that_is_not_utf_8_matters_to_ipc_only_which_names_it() {
    let folder = "TMPDIR=\"$(printf '/nowhere\\377')\"; export TMPDIR";
    let output = host_after(&format!("export BRIGADE_LINK=ring; {folder}"));
    assert_eq!(assert_sensible("rings", &output), "well\n");
    let output = host_after(&format!("export BRIGADE_LINK=ipc; {folder}"));
    let told = assert_sensible("ipc", &output);
    assert!(told.contains("/nowhere") && told.contains("not UTF-8"), "{told}");
}
