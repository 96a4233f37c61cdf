//! Checks the texts that a newcomer reads if the program or its surroundings are not as they must
//! be: each gives the remedy.

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
