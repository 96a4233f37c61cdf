//! Sandboxes and limits of jobs.

use crate::common::TestDir;

#[test]
fn a_job_in_a_strict_sandbox_has_only_what_it_was_given() {
    let dir = TestDir::new();
    dir.write("in", "input\n");
    dir.write("secret", "secret\n");
    std::fs::create_dir(dir.path("out")).expect("a new folder");
    let job = "cat in > out/copy; cat secret; touch new; true {}";
    let strict = ["--sandbox", "strict", "--read", "in", "--write", "out", "--shell", "--"];
    let ran = dir.run(&[&strict[..], &[job, ":::", "x"]].concat());
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(dir.path("out/copy")).expect("a copy"), "input\n");
    assert!(!dir.path("new").exists());
    assert_eq!(ran.stderr.matches("Permission denied").count(), 2, "{}", ran.stderr);
}

#[test]
fn a_strict_job_may_lower_limits_and_make_an_allowed_call() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("out")).expect("a new folder");
    dir.write("out/file", "text");
    let job = "ulimit -c 0 && chmod 600 out/file && echo changed #";
    let run = |options: &[&str]| {
        let strict = ["--sandbox", "strict", "--write", "out"];
        dir.run(&[&strict[..], options, &["--shell", "--", job, ":::", "x"]].concat())
    };
    let refused = run(&[]);
    assert!(refused.stderr.contains("chmod") && refused.stdout.is_empty(), "{}", refused.stderr);
    let allowed = run(&["--allow-call", "fchmodat", "--allow-call", "fchmodat2"]);
    assert_eq!(allowed.stdout, "changed\n", "{}", allowed.stderr);
    let unknown = run(&["--allow-call", "no_such_call"]);
    assert!(unknown.stderr.contains("no_such_call"), "{}", unknown.stderr);
}

#[test]
fn a_program_that_the_sandbox_forbids_is_named_with_the_remedy() {
    let dir = TestDir::new();
    dir.write("program", "#!/bin/sh\n");
    let run = |options: &[&str]| {
        dir.run(&[&["--sandbox", "strict"], options, &["--", "./program", ":::", "x"]].concat())
    };
    let refused = run(&["--read", "program"]);
    assert!(refused.stderr.contains("allow its folder with `execute`"), "{}", refused.stderr);
}

#[test]
fn each_job_has_the_paths_of_its_replacement_strings() {
    let dir = TestDir::new();
    for name in ["a", "b"] {
        std::fs::create_dir(dir.path(name)).expect("a new folder");
    }
    let job = "echo {#} > {}/own; echo {#} > b/foreign #";
    let run = |jobs: &[&str]| {
        let strict = ["--sandbox", "strict", "--write", "{}", "--shell", "--", job, ":::"];
        dir.run(&[&strict[..], jobs].concat())
    };
    run(&["a"]);
    assert!(dir.path("a/own").exists() && !dir.path("b/foreign").exists());
    assert_eq!(run(&["b"]).status, 0);
    assert!(dir.path("b/own").exists() && dir.path("b/foreign").exists());
    let missing = run(&["gone"]);
    assert!(
        missing.stderr.contains("job 1") && missing.stderr.contains("gone"),
        "{}",
        missing.stderr
    );
}

#[test]
fn an_isolated_job_sees_no_other_file() {
    let dir = TestDir::new();
    dir.write("in", "input\n");
    dir.write("secret", "secret\n");
    let strict = ["--sandbox", "strict", "--isolate", "--read", "in", "--shell", "--"];
    let job = "cat in; cat secret; test -e /home || echo hidden #";
    let ran = dir.run(&[&strict[..], &[job, ":::", "x"]].concat());
    assert_eq!(ran.stdout, "input\nhidden\n", "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("No such file").count(), 1, "{}", ran.stderr);
    dir.write(
        "jobs.toml",
        r#"
        [defaults]
        sandbox = "strict"
        isolate = true
        [[job]]
        shell = "test -e secret || echo hidden"
        "#,
    );
    assert_eq!(dir.run(&["jobs.toml"]).stdout, "hidden\n");
}

#[test]
fn a_job_that_takes_too_much_fails_with_the_limit() {
    let dir = TestDir::new();
    let fills = "head -c 100M /dev/zero | tail -c 100M > /dev/null; exit 1";
    for (options, job, limit) in [
        (["--memory", "20M"], fills, "20 MiB of memory"),
        (["--cpu-time", "1s"], "while :; do :; done", "1.000s of processor time"),
        (
            ["--file-size", "1M"],
            "dd if=/dev/zero of=large bs=2M count=1; exit $?",
            "1 MiB in a file",
        ),
    ] {
        let ran = dir.run(&[&options[..], &["--shell", "--", job, "#", ":::", "x"]].concat());
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        let text = format!("exceeded its limit of {limit}");
        // Without a control group, the processes of a job have a limit each, and its shell ends
        // with an error of its own.
        let is_named = ran.stderr.contains(&text);
        assert!(is_named || options[0] == "--memory", "{}", ran.stderr);
    }
}

#[test]
fn a_job_with_a_limit_stays_in_the_sandbox_of_the_command() {
    let dir = TestDir::new();
    dir.write("secret", "known");
    dir.write("jobs.toml", "[[job]]\nshell = 'cat secret'\nmemory = '1G'\n");
    dir.write("jobs.jsonl", r#"{"command": ["cat", "secret"], "cpu-time": 9}"#);
    for file in ["jobs.toml", "jobs.jsonl"] {
        let ran = dir.run(&["--sandbox", "strict", file]);
        assert!(ran.status == 1 && ran.stdout.is_empty(), "{file}: {}", ran.stdout);
        let ran = dir.run(&["--sandbox", "strict", "--read", "secret", file]);
        assert_eq!((ran.status, ran.stdout.as_str()), (0, "known"), "{file}: {}", ran.stderr);
    }
    let ran = dir.run(&["--sandbox", "strict", "--read", "{}", "jobs.toml"]);
    assert!(ran.status == 255 && ran.stderr.contains("do not go with"), "{}", ran.stderr);
    // The limits of the command hold, too.
    dir.write("jobs.toml", "[[job]]\nshell = 'seq 99999 > numbers'\nmemory = '1G'\n");
    let ran = dir.run(&["--file-size", "1k", "jobs.toml"]);
    assert!(ran.status == 1, "{}", ran.stderr);
}

#[test]
fn a_job_file_sets_sandboxes_and_limits() {
    let dir = TestDir::new();
    dir.write("secret", "secret\n");
    dir.write(
        "jobs.toml",
        r#"
        [defaults]
        sandbox = "strict"

        [[job]]
        label = "closed"
        shell = "cat secret"

        [[job]]
        label = "open"
        read = ["secret"]
        cpu-time = 10
        shell = "cat secret"
        "#,
    );
    let ran = dir.run(&["--keep-order", "jobs.toml"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (1, "secret\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("closed"), "{}", ran.stderr);
}

#[test]
fn a_job_of_a_file_may_make_an_allowed_call() {
    let dir = TestDir::new();
    std::fs::create_dir(dir.path("out")).expect("a new folder");
    dir.write("out/file", "text");
    let job = "[[job]]\nsandbox = 'strict'\nwrite = ['out']\nshell = 'chmod 600 out/file'\n";
    dir.write("jobs.toml", job);
    assert_ne!(dir.run(&["jobs.toml"]).status, 0);
    dir.write("jobs.toml", format!("{job}allow-call = ['fchmodat', 'fchmodat2']\n"));
    let ran = dir.run(&["jobs.toml"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn exceptions_without_a_level_and_missing_paths_are_named() {
    let dir = TestDir::new();
    let ran = dir.run(&["--read", "in", "--", "true", ":::", "x"]);
    assert!(ran.status != 0 && ran.stderr.contains("--sandbox"), "{}", ran.stderr);
    let ran = dir.run(&["--sandbox", "strict", "--read", "gone", "--", "true", ":::", "x"]);
    assert!(ran.status != 0 && ran.stderr.contains("gone"), "{}", ran.stderr);
    dir.write("jobs.toml", "[[job]]\ncommand = ['true']\nread = ['in']\n");
    let ran = dir.run(&["jobs.toml"]);
    assert!(ran.status != 0 && ran.stderr.contains("choose its level"), "{}", ran.stderr);
}

#[test]
fn the_command_says_what_this_machine_can_enforce() {
    let dir = TestDir::new();
    let ran = dir.command(&["sandbox"]).output().expect("the command");
    assert!(ran.status.success());
    let text = String::from_utf8_lossy(&ran.stdout);
    for layer in ["files: ", "network: ", "system calls: ", "memory: ", "processor time: "] {
        assert!(text.contains(layer), "{text}");
    }
}

#[test]
fn a_process_killed_for_memory_fails_its_job() {
    let dir = TestDir::new();
    let machine = dir.command(&["sandbox"]).output().expect("the command");
    let has_group = String::from_utf8_lossy(&machine.stdout).contains("memory: control group");
    // The shell ends with 0. Without a control group nothing is killed, but the allocation fails.
    let script = "head -c 100M /dev/zero | tail -c 90M | wc -c; :";
    let ran = dir.run(&["--memory", "20M", "--", "sh", "-c", script, ":::", "1"]);
    let is_killed = ran.stderr.contains("exceeded its limit of 20 MiB of memory");
    assert!(is_killed || !has_group, "{}", ran.stderr);
    assert_eq!(is_killed, ran.status != 0, "{}", ran.stderr);
}
