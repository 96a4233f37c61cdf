//! A host without descriptors, or without a proper temporary folder, gets errors, and never hangs.

use std::process::Output;

use brigade_integration::Helper;

/// Runs the program `host`, which tells what came of its pool, through a shell that takes something away first.
fn host_after(preparation: &str) -> Output {
    let script = format!("{preparation}; exec \"$0\" starved");
    Helper::new("/bin/sh")
        .argument("-c")
        .argument(&script)
        .argument(env!("CARGO_BIN_EXE_host"))
        .output()
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
