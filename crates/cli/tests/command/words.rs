//! Tests of the words in help and errors: plain, short, and those of the command.

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

#[test]
fn the_first_examples_of_the_manual_work() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let manual = include_str!("../../docs/manual.md");
    let bin = Path::new(env!("CARGO_BIN_EXE_brigade")).parent().expect("a folder");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let dir = TestDir::new();
    let (_, examples) = manual.split_once("these work at once:").expect("the examples");
    let (_, examples) = examples.split_once("```sh\n").expect("a block");
    let (examples, _) = examples.split_once("```").expect("its end");
    assert_eq!(examples.lines().count(), 2);
    for example in examples.lines() {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", example]).current_dir(root).env("PATH", &path);
        shell.env("XDG_RUNTIME_DIR", dir.path("")).env_remove("BRIGADE_CORES");
        let ran: RunOutput = shell.output().expect("sh").into();
        assert_eq!(ran.status, 0, "{example}: {}", ran.stderr);
        assert!(ran.stdout.lines().count() > 2, "{example}: {}", ran.stdout);
    }
}
