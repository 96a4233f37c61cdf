//! The program that `cargo xtask escape` runs.

#![expect(clippy::unwrap_used, reason = "a failure of the test")]

use std::process::Command;

#[test]
fn a_refused_attempt_is_named_with_its_layer_and_counted() {
    let program = env!("CARGO_BIN_EXE_brigade-escape");
    let ran = Command::new(program).args(["--only", "signal"]).output().unwrap();
    let printed = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{printed}");
    let refused = printed.lines().filter(|line| line.starts_with("refused ")).count();
    assert!(refused > 0, "{printed}");
    assert!(printed.contains(&format!("{refused} attempts, 0 escaped")), "{printed}");
}
