//! Tests of the words in help and errors: plain, short, and those of the command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{RunOutput, TestDir};

/// Runs that fail, with a part of what is said.
fn mistakes(long: &str) -> Vec<(Vec<&str>, &'static str)> {
    let run = |words: &'static str| words.split(' ').collect::<Vec<_>>();
    let mut mistakes = vec![
        (run("zero.toml"), "expected a whole number of at least 1, found the number 0"),
        (run("word.toml"), "expected a list, found the text \"a\""),
        (run("late.toml"), "`soon` is not a duration"),
        (run("wide.toml"), "a job cannot get 4096 cores"),
        (run("twice.toml"), "give them labels, or use --allow-duplicates"),
        (run("word.jsonl"), "expected a list, found the text \"a\""),
        (run("list.jsonl"), "expected an object, such as"),
        (run("cut.jsonl"), "the line ends within an object"),
        (run("nowhere"), "if it is a command: brigade run -- nowhere"),
        (run("--retries x true ::: 1"), "expected a whole number"),
        (run("--retries -1 true ::: 1"), "expected a whole number"),
        (run("--retry-delay x true ::: 1"), "expected seconds or a duration"),
        (run("--retry-delay 1,factor=0 true ::: 1"), "expected factor= with a number"),
        (run("--retry-delay 1,jitter=2 true ::: 1"), "expected jitter= with a number"),
        (run("--retry-delay 1,2 true ::: 1"), "behind commas factor=N, max=DURATION or jitter="),
        (run("--nice 90 true ::: 1"), "--nice must be from 0 to 19"),
        (run("--seed x --shuffle true ::: 1"), "expected a whole number"),
        (run("--halt x true ::: 1"), "expected now or soon"),
        (run("--timeout 0 true ::: 1"), "expected seconds, a duration"),
        (run("--delay -1 true ::: 1"), "expected seconds or a duration"),
        (run("-c 4096 true ::: 1"), "a job cannot get 4096 cores"),
        (run("-j 3000000 true ::: 1"), "--jobs must be from 1 to 16384"),
        (run("--canary true --canary-timeout 0 true ::: 1"), "--canary-timeout must be greater"),
        (run("--process-slot-var A=B true ::: 1"), "--process-slot-var must be the name"),
        (run("--status 99999 true ::: 1"), "`99999` is not an address help:"),
    ];
    for words in [&["--jobs", long, "true"][..], &[long], &["--", "false", ":::", long]] {
        mistakes.push((words.to_vec(), "xxx"));
    }
    mistakes
}

/// Words of Rust and of the library.
const FOREIGN: &[&str] = &[
    "usize",
    "u32",
    "non-zero",
    "nonzero",
    "digit found",
    "sequence",
    "a map",
    "EOF",
    "strict",
    "best_effort",
    "best effort",
    "cores_per_job",
    "canary_limit",
    "socket",
];

#[test]
fn errors_are_in_the_words_of_the_command() {
    let dir = TestDir::new();
    for (file, text) in [
        ("zero.toml", "[[job]]\ncommand = ['a']\ncores = 0\n"),
        ("word.toml", "[[job]]\ncommand = 'a'\n"),
        ("late.toml", "[[job]]\ncommand = ['a']\ntimeout = 'soon'\n"),
        ("wide.toml", "[[job]]\ncommand = ['a']\ncores = 4096\n"),
        ("twice.toml", "[[job]]\ncommand = ['a']\n[[job]]\ncommand = ['a']\n"),
        ("word.jsonl", "{\"command\": \"a\"}\n"),
        ("list.jsonl", "[[\"a\"]]\n"),
        ("cut.jsonl", "{\"command\": [\"a\"]\n"),
    ] {
        dir.write(file, text);
    }
    let long = "x".repeat(5000);
    for (arguments, expected) in mistakes(&long) {
        let ran = dir.run(&arguments);
        let said: Vec<&str> = ran.stderr.split_whitespace().collect();
        let said = said.join(" ").replace(" │ ", " ");
        assert_ne!(ran.status, 0, "{arguments:?}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(said.len() < 1000, "{} bytes: {said}", said.len());
        for word in FOREIGN {
            assert!(!said.contains(word), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn help_fits_into_80_columns() {
    let dir = TestDir::new();
    for arguments in [&["--help"][..], &["run", "--help"], &["run", "-h"], &["man", "--help"]] {
        let ran: RunOutput = dir.command(arguments).output().expect("brigade").into();
        assert!(ran.stdout.contains("Usage: brigade"), "{}", ran.stdout);
        for line in ran.stdout.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn each_command_that_help_shows_has_a_manual_page() {
    let dir = TestDir::new();
    let ran: RunOutput = dir.command(&["man", "."]).output().expect("brigade").into();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    for name in ["", "-run", "-node", "-cluster", "-cluster-status", "-cluster-dead"] {
        assert!(dir.path(&format!("brigade{name}.1")).exists(), "{name}");
    }
    assert!(!dir.path("brigade-serve-commands.1").exists(), "users do not call it");
}

#[test]
fn the_version_begins_with_that_of_the_package() {
    let ran: RunOutput = TestDir::new().command(&["--version"]).output().expect("brigade").into();
    let expected = concat!("brigade ", env!("CARGO_PKG_VERSION"));
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
}

/// Returns the lines of all blocks of the shell in the manual.
fn examples_of_the_manual() -> Vec<&'static str> {
    let blocks = include_str!("../../docs/manual.md").split("```sh\n").skip(1);
    blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines()).collect()
}

/// Makes the files that the examples of the manual use.
fn lay_out(dir: &TestDir) {
    for folder in ["docs", "src", "runs", "runs/1"] {
        fs::create_dir(dir.path(folder)).expect("disk");
    }
    for name in ["docs/a.md", "docs/b.md", "a.log", "b.log", "x.txt"] {
        dir.write(name, "two\nlines\n");
    }
    for name in ["src/a.c", "src/b.c"] {
        dir.write(name, "int main(void) { return 0; }\n");
    }
    for name in ["bench", "simulate", "import", "align", "train", "runs/1/evaluate"] {
        let program = dir.write(name, "#!/bin/sh\ncat\necho $0 $@\n");
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("a file");
    }
    let words = "a word in a line\n".repeat(300_000);
    let mut packed = std::process::Command::new("gzip");
    dir.write("big", &words);
    packed.args(["-k", "big"]).current_dir(dir.path(""));
    assert!(packed.status().expect("gzip").success());
    dir.write("big.txt", words);
    dir.write("table.csv", "a,b\n1,2\n3,4\n");
    dir.write("all.fasta", ">one\nACGT\n>two\nTGCA\n");
    dir.write("commands.txt", "echo 1\necho 2\n");
    dir.write("jobs.jsonl", "{\"command\": [\"echo\", \"1\"]}\n");
    dir.write("runs/1/env.sh", "SET=1\n");
    let (_, file) = include_str!("../../docs/manual.md").split_once("```toml\n").expect("jobs");
    let (file, _) = file.split_once("```").expect("the end of the block");
    dir.write("jobs.toml", file);
}

#[test]
fn each_example_of_the_manual_works() {
    let bin = Path::new(env!("CARGO_BIN_EXE_brigade")).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let dir = TestDir::new();
    lay_out(&dir);
    let mut ran = 0;
    for example in examples_of_the_manual() {
        if example.contains("--cluster") {
            continue; // tests of clusters run these options beside a server
        }
        // The machine may have fewer cores.
        let line = example.replace("--cores-per-job 4", "--cores-per-job 1");
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).current_dir(dir.path("")).env("PATH", &path);
        shell.env("XDG_RUNTIME_DIR", dir.path("")).env_remove("BRIGADE_CORES");
        let output: RunOutput = shell.output().expect("sh").into();
        assert_eq!(output.status, 0, "{example}: {}{}", output.stdout, output.stderr);
        let is_silent = ["gzip", "cc -c", "sort"].iter().any(|command| example.contains(command));
        assert_eq!(output.stdout.is_empty(), is_silent, "{example}: {}", output.stdout);
        ran += 1;
    }
    assert!(ran > 12, "{ran} examples");
    for made in ["a.log.gz", "a.o", "x.uniq", "log", "report.html", "trace.json"] {
        assert!(dir.path(made).exists(), "{made}");
    }
}
