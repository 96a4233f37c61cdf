//! Checks the texts that a newcomer reads if the program or its surroundings are not as they must
//! be: each gives the remedy.

use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_forgets_init");

/// Returns what a program prints to standard error. It must fail.
fn complaint(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    text
}

#[test]
fn a_program_without_init_is_told_the_line_that_it_lacks() {
    let output = Command::new(PROGRAM).env("INIT", "").output().unwrap();
    assert_eq!(output.stdout, b"42\n");
    let text = complaint(&mut Command::new(PROGRAM));
    assert!(text.contains("brigade::init()"), "{text}");
    assert!(!text.contains("NotInitialized"), "{text}");
}

#[test]
fn a_program_that_the_loader_started_names_it() {
    let loader = "/lib64/ld-linux-x86-64.so.2";
    if !Path::new(loader).exists() {
        return;
    }
    let text = complaint(Command::new(loader).arg(PROGRAM).env("INIT", ""));
    assert!(text.contains("worker_command") && text.contains("/ld-"), "{text}");
    assert!(text.contains("start the program directly"), "{text}");
}

#[test]
fn a_machine_without_proc_is_named_as_the_cause() {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "umount -l /proc && INIT= exec \"$0\"", PROGRAM]);
    let mut probe = Command::new("unshare");
    let probe = probe.args(["--mount", "umount", "-l", "/proc"]).output();
    // Only root may do so.
    if !probe.is_ok_and(|output| output.status.success()) {
        return;
    }
    let text = complaint(&mut command);
    assert!(text.contains("/proc, which must be mounted"), "{text}");
}
