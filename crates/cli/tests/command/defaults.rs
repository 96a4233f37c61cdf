//! Tests of default options.

use crate::common::{RunOutput, TestDir};

#[test]
fn defaults_come_from_a_file_and_a_variable() {
    let dir = TestDir::new();
    std::fs::create_dir_all(dir.path("config/brigade")).expect("a directory");
    dir.write("config/brigade/config", "# ours\n--tag\n\n--retries 1\n-j 1\n");
    let run = |options: &str, arguments: &[&str]| {
        let mut command = dir.command(&[&["run"], arguments].concat());
        command.env("BRIGADE_OPTIONS", options);
        dir.write("attempts", "");
        let ran = RunOutput::from(command.output().expect("brigade"));
        (ran, dir.read("attempts").lines().count())
    };
    let job = ["--shell", "--", "echo {}; echo >> attempts; false", ":::", "a"];
    let (ran, attempts) = run("", &job);
    assert_eq!((ran.stdout.as_str(), attempts), ("a\ta\n", 2), "{}", ran.stderr);
    // The variable is stronger than the file, and the command line is stronger than both.
    assert_eq!(run("--retries '2'", &job).1, 3);
    assert_eq!(run("--retries=2", &[&["--retries", "0"], &job[..]].concat()).1, 1);
    // An option that contradicts the command line gives way to it.
    let (ran, _) = run("--tag", &["--json", "--", "echo", ":::", "a"]);
    assert!(ran.status == 0 && ran.stdout.contains("\"finished\""), "{}", ran.stderr);
    // The others beside it stay, and one of the file gives way to the variable.
    assert_eq!(run("--tag --retries 2", &[&["--json"], &job[..]].concat()).1, 3);
    let (ran, _) = run("--json", &["--", "echo", ":::", "a"]);
    assert!(ran.status == 0 && ran.stdout.contains("\"finished\""), "{}", ran.stderr);
}

#[test]
fn wrong_defaults_are_refused_with_their_source() {
    let dir = TestDir::new();
    std::fs::create_dir_all(dir.path("config/brigade")).expect("a directory");
    for (config, options, expected) in [
        ("--tag\n--jobs x\n", "", "line 2 of"),
        ("--no-such-option\n", "", "line 1 of"),
        ("--tag 'a\n", "", "line 1 of"),
        ("", "--retries many", "in $BRIGADE_OPTIONS"),
        ("", "-- rm", "in $BRIGADE_OPTIONS"),
    ] {
        dir.write("config/brigade/config", config);
        let mut command = dir.command(&["run", "--", "touch", ":::", "ran"]);
        let output = command.env("BRIGADE_OPTIONS", options).output().expect("brigade");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(255), "{config} {options}");
        assert!(stderr.contains(expected), "{stderr}");
    }
    assert!(!dir.path("ran").exists());
}
