//! Tests of the places where outputs are stored: files, tables and temporary files.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{RunOutput, TestDir};

const JOB: [&str; 4] = ["sh", "-c", "echo $0; echo e$0 >&2", "{}"];

#[test]
fn a_name_of_results_may_have_replacement_strings() {
    let dir = TestDir::new();
    for options in [&["--results", "out/{}.txt"][..], &["--results", "out/{}.txt", "--line-buffer"]]
    {
        let ran = dir.run(&[options, &JOB, &[":::", "a", "b/c"]].concat());
        assert_eq!((ran.lines(), ran.status), (vec!["a", "b/c"], 0), "{}", ran.stderr);
        let read = |name| dir.read(&format!("out/{name}"));
        assert_eq!((read("a.txt"), read("a.txt.err"), read("a.txt.seq")), texts("a", "1"));
        assert_eq!((read("b/c.txt"), read("b/c.txt.err"), read("b/c.txt.seq")), texts("b/c", "2"));
        fs::remove_dir_all(dir.path("out")).expect("a directory");
    }
    let ran = dir.run(&[&["--results", "out/{#}/"][..], &JOB, &[":::", "a"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let read = |name| dir.read(&format!("out/1/{name}"));
    assert_eq!((read("stdout"), read("stderr"), read("seq")), texts("a", "1"));
}

fn texts(argument: &str, number: &str) -> (String, String, String) {
    (format!("{argument}\n"), format!("e{argument}\n"), number.to_owned())
}

#[test]
fn no_job_writes_to_the_files_of_another_one() {
    for (name, arguments) in [
        ("{.}", ["a.x", "a.y"]),
        ("{}", ["a", "./a"]),
        ("{}", ["a", "b/../a"]),
        ("{}", ["a", "a.err"]),
    ] {
        let dir = TestDir::new();
        let command = ["--results", name, "--joblog", "log", "-j1", "--", "echo", ":::"];
        let command = [&command[..], &arguments].concat();
        // The files of a job that is done are not overwritten either.
        for options in [&[][..], &["--resume"]] {
            let ran = dir.run(&[options, &command].concat());
            assert_eq!(ran.status, 255, "{arguments:?}");
            assert!(ran.stderr.contains("jobs 1 and 2 would both write"), "{}", ran.stderr);
        }
        assert!(!dir.read("a").contains(arguments[1]), "{arguments:?}");
    }
}

#[test]
fn a_table_of_results_has_a_row_for_each_job() {
    let dir = TestDir::new();
    let command = [&["--header", ":", "-j1"][..], &JOB, &[":::", "x y", "a", "b,c"]].concat();
    for (name, header, row) in [
        ("t.csv", ",Command,\"x y\",Stdout,Stderr\n", "\"b,c\",\"b,c\n\",\"eb,c\n\"\n"),
        ("t.TSV", "\tCommand\t\"x y\"\tStdout\tStderr\n", "\tb,c\t\"b,c\n\"\t\"eb,c\n\"\n"),
        ("t.jsonl", "{ \"Seq\": 1, ", "\"b,c\" ], \"Stdout\": \"b,c\\u000a\", "),
    ] {
        let ran = dir.run(&[&["--results", name][..], &command].concat());
        assert_eq!((ran.stdout.as_str(), ran.status), ("a\nb,c\n", 0), "{}", ran.stderr);
        let table = dir.read(name);
        assert!(table.contains(header) && table.contains(row), "{table}");
    }
    let ran = dir.run(&[&["--results=-.csv"][..], &command].concat());
    assert!(ran.stdout.starts_with("Seq,Host,") && ran.stdout.lines().count() == 7);
}

#[test]
fn gnu_parallel_takes_jsonl_for_a_directory() {
    let dir = TestDir::new();
    let words = ["parallel", "--results", "d.jsonl", "echo", ":::", "a"];
    assert!(dir.command(&words).status().expect("brigade").success());
    assert_eq!(dir.read("d.jsonl/1/a/stdout"), "a\n");
}

#[test]
fn a_full_disk_fails_the_run_and_the_job_is_not_logged() {
    let dir = TestDir::new();
    std::os::unix::fs::symlink("/dev/full", dir.path("t.csv")).expect("a link");
    let options = ["--results", "t.csv", "--joblog", "log", "--", "echo", ":::", "a"];
    let ran = dir.run(&options);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("cannot store a job's results"), "{}", ran.stderr);
    assert_eq!(dir.read("log").lines().count(), 1);
}

#[test]
fn a_job_whose_output_was_not_printed_is_not_logged() {
    let dir = TestDir::new();
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let mut command = dir.command(&["run", "--joblog", "log", "--", "echo", ":::", "a"]);
    let ran = RunOutput::from(command.stdout(full).output().expect("brigade"));
    assert_eq!(ran.status, 255, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot print a job's output"), "{}", ran.stderr);
    assert_eq!(dir.read("log").lines().count(), 1, "a resumed run prints it");
}

#[test]
fn a_line_that_was_not_printed_keeps_its_job_out_of_the_log() {
    let dir = TestDir::new();
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let arguments = ["run", "--line-buffer", "--joblog", "log", "--", "echo", ":::", "a"];
    let ran = RunOutput::from(dir.command(&arguments).stdout(full).output().expect("brigade"));
    assert_eq!(ran.status, 255, "{}", ran.stderr);
    assert_eq!(dir.read("log").lines().count(), 1, "a resumed run prints it");
}

#[test]
fn a_closed_standard_output_is_an_error() {
    let dir = TestDir::new();
    let mut command = Command::new("sh");
    let line = "\"$0\" run --joblog log -- echo ::: a >&-";
    command.args(["-c", line, env!("CARGO_BIN_EXE_brigade")]).current_dir(dir.path(""));
    command.env("XDG_RUNTIME_DIR", dir.path("")).stdin(Stdio::null());
    let ran = RunOutput::from(command.output().expect("a shell"));
    assert_eq!(ran.status, 255, "{}", ran.stderr);
    assert!(ran.stderr.contains("cannot print a job's output"), "{}", ran.stderr);
    assert_eq!(dir.read("log").lines().count(), 1, "a resumed run prints it");
}

/// Runs a shell line with a file system of 64 KiB in a name space of its own.
fn on_small_disk(dir: &TestDir, line: &str) -> RunOutput {
    fs::create_dir(dir.path("full")).expect("disk");
    let line = format!("mount -t tmpfs -o size=64k none full || exit 99; {line}");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &line]);
    command.arg(env!("CARGO_BIN_EXE_brigade")).current_dir(dir.path(""));
    command.env("XDG_RUNTIME_DIR", dir.path("")).stdin(Stdio::null());
    command.output().expect("unshare").into()
}

#[expect(clippy::print_stderr, reason = "says that nothing was tested")]
fn has_small_disks() -> bool {
    let has_them = on_small_disk(&TestDir::new(), "exit 0").status == 0;
    if !has_them {
        eprintln!("left out: no file system can be mounted here");
    }
    has_them
}

#[test]
fn a_log_on_a_full_disk_has_only_whole_lines() {
    if !has_small_disks() {
        return;
    }
    let dir = TestDir::new();
    let again = |job| format!("if test -e again; then echo {job} >> runs; exit; fi");
    let until_ready = "until test -e ready; do sleep 0.01; done";
    // Its line is longer than what is left of the log's first page.
    let fills = format!("head -c 99999 /dev/zero > full/filler; : {}", "x".repeat(5_000));
    let frees = "trap 'rm full/filler; exit 1' INT TERM; : > ready; while :; do sleep 0.01; done";
    let jobs = format!("{}; {until_ready}; {fills}\n{}; {frees}\n", again(1), again(2));
    dir.write("jobs", jobs);
    let line = "\"$0\" run --joblog full/log -j2 jobs; test $? = 255 || exit 98; : > again
        exec \"$0\" run --joblog full/log --resume jobs";
    let ran = on_small_disk(&dir, line);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let mut runs: Vec<String> = dir.read("runs").lines().map(str::to_owned).collect();
    runs.sort_unstable();
    assert_eq!(runs, ["1", "2"], "{}", ran.stderr);
}

#[test]
fn jobs_with_the_same_arguments_do_not_share_files() {
    let piped = ["--pipe", "-N1", "--results", "out", "--", "cat"];
    let same = ["--allow-duplicates", "--results", "out", "--", "echo"];
    for arguments in [&piped[..], &same] {
        let ran = TestDir::new().run_with(arguments, b"a\na\n");
        assert_eq!(ran.status, 255, "{arguments:?}");
        assert!(ran.stderr.contains("jobs 1 and 2 would both write"), "{}", ran.stderr);
    }
}

#[test]
fn results_that_do_not_fit_on_a_disk_fail_the_run() {
    if !has_small_disks() {
        return;
    }
    for (options, message) in [
        ("--results full/d --line-buffer", "cannot store a job's results"),
        ("--results full/{}.txt --line-buffer", "cannot store a job's results"),
        ("--results full/t.csv", "cannot store a job's results"),
        ("--results full/t.json", "cannot store a job's results"),
        ("--files --tmpdir full", "cannot store a job's output"),
        ("--tmpdir full", "free some space, or set TMPDIR"),
        // The job itself writes to the file, and fails.
        ("--results full/d", "job 1 failed"),
        ("--files --results full/d", "job 1 failed"),
    ] {
        let dir = TestDir::new();
        let run = format!("exec \"$0\" run --joblog log {options} --shell --");
        // More than is kept in memory.
        let ran = on_small_disk(&dir, &format!("{run} 'head -c 400000 /dev/zero #' ::: 1"));
        let is_own = message.starts_with("job");
        let expected = if is_own { (1, 2) } else { (255, 1) };
        let logged = dir.read("log").lines().count();
        assert_eq!((ran.status, logged), expected, "{options}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{options}: {}", ran.stderr);
    }
}

#[test]
fn names_of_files_are_printed_instead_of_outputs() {
    let dir = TestDir::new();
    fs::create_dir(dir.path("tmp")).expect("disk");
    let command = [&JOB[..], &[":::", "a", "b"]].concat();
    let ran = dir.run(&[&["-k", "--files", "--tmpdir", "tmp"][..], &command].concat());
    let read: Vec<String> = ran.stdout.lines().map(|name| dir.read(name)).collect();
    assert_eq!((read, ran.status), (vec!["a\n".to_owned(), "b\n".to_owned()], 0), "{}", ran.stderr);
    assert!(ran.stdout.contains("/tmp/brigade-") && ran.stderr.contains("ea\neb\n"));
    let ran = dir.run(&[&["-k", "--tag", "--files", "--results", "d"][..], &command].concat());
    assert_eq!(ran.stdout, "a\td/1/a/stdout\nb\td/1/b/stdout\n");
    assert_eq!(dir.read("d/1/b/stdout"), "b\n");
}
