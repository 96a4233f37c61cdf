//! Tests of `--pipe` and its relatives when a run is stopped or suspended, and when its jobs exceed
//! their limits. Nothing may be left behind or left hanging.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::common::{RunOutput, TestDir, is_alive, is_stopped, numbered, pids, signal, until};

/// The ways in which jobs get their input, each with at least two jobs.
const WAYS: [&[&str]; 6] = [
    &["--pipe", "--block", "100k"],
    &["--pipe", "--block", "100k", "--cat"],
    &["--pipe", "--block", "100k", "--fifo"],
    &["--pipe", "--block", "100k", "--round-robin"],
    &["--pipe", "--tee"],
    &["--pipe-part", "-a", "input", "--block", "500k"],
];
const LINES: usize = 200_000;

/// Starts a run in a process group of its own, with two jobs at once. With `is_endless`, a
/// standard input never ends.
fn start(dir: &TestDir, way: &[&str], options: &[&str], job: &str, is_endless: bool) -> Child {
    dir.write("input", numbered(LINES, |number| format!("{number:06}\n")));
    let common = ["run", "--no-pin", "-j2", "--shell"];
    let list: &[&str] = if way.contains(&"--tee") { &[": {};", ":::", "1", "2"] } else { &[] };
    let command = match list {
        [] => vec![job.to_owned()],
        [argument, rest @ ..] => std::iter::once(format!("{argument} {job}"))
            .chain(rest.iter().map(|&word| word.to_owned()))
            .collect(),
    };
    let words = common.iter().chain(way).chain(options).chain(&["--"]).map(|&word| word.to_owned());
    let words: Vec<String> = words.chain(command).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = dir.command(&words);
    let file = if is_endless { "cat input; exec sleep 600" } else { "exec cat input" };
    let mut producer = Command::new("sh");
    producer.args(["-c", file]).current_dir(dir.path("")).stdout(Stdio::piped());
    if !way.contains(&"--pipe-part") {
        let mut producer = producer.process_group(0).spawn().expect("sh");
        command.stdin(producer.stdout.take().expect("piped"));
        dir.write("producer", producer.id().to_string());
        // The test that starts it ends it.
        std::thread::spawn(move || producer.wait());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().expect("brigade")
}

fn end_producer(dir: &TestDir) {
    let producer = dir.read("producer");
    if is_alive(&producer) {
        let group = format!("-{producer}");
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).status();
    }
}

#[test]
fn an_interrupt_ends_jobs_that_have_not_read_their_input() {
    for way in WAYS {
        let dir = TestDir::new();
        let brigade = start(&dir, way, &[], "echo $$ >> pids; exec sleep 600 # {}", true);
        let pids = pids(&dir.path("pids"), 2);
        signal(brigade.id(), "INT");
        let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
        end_producer(&dir);
        assert_eq!(ran.status, 130, "{way:?}: {}", ran.stderr);
        assert!(!pids.iter().any(|pid| is_alive(pid)), "{way:?}");
    }
}

#[test]
fn a_suspended_run_goes_on_with_its_input() {
    for way in WAYS {
        let dir = TestDir::new();
        let input = if way.contains(&"--cat") || way.contains(&"--fifo") { "{}" } else { "-" };
        // A shell that starts programs may wait for one that was stopped, and is not stopped.
        let wait = "select undef, undef, undef, 0.01 until -e \"go\"; exec \"cat\", @ARGV";
        let job = format!("echo $$ >> pids; exec perl -e '{wait}' {input}");
        let mut brigade = start(&dir, way, &[], &job, false);
        let pids = pids(&dir.path("pids"), 2);
        signal(brigade.id(), "TSTP");
        until("the stop", || {
            is_stopped(&brigade.id().to_string()) && pids[..2].iter().all(|pid| is_stopped(pid))
        });
        dir.write("go", "");
        signal(brigade.id(), "CONT");
        let mut printed = Vec::new();
        brigade.stdout.take().expect("piped").read_to_end(&mut printed).expect("a pipe");
        let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
        let copies = if way.contains(&"--tee") { 2 } else { 1 };
        assert_eq!((ran.status, printed.len()), (0, copies * LINES * 7), "{way:?}: {}", ran.stderr);
    }
}

#[test]
fn jobs_that_do_not_read_their_input_have_a_limit_too() {
    for way in WAYS {
        let dir = TestDir::new();
        let options = ["--timeout", "2", "--halt", "soon,fail=2"];
        let brigade = start(&dir, way, &options, "echo $$ >> pids; exec sleep 600 # {}", true);
        let pids = pids(&dir.path("pids"), 2);
        let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
        end_producer(&dir);
        assert!(ran.stderr.contains("exceeded its time limit"), "{way:?}: {}", ran.stderr);
        assert!((1..=3).contains(&ran.status), "{way:?}: {}", ran.stderr);
        assert!(!pids.iter().any(|pid| is_alive(pid)), "{way:?}");
    }
}

#[test]
fn a_run_that_waits_for_memory_can_be_interrupted() {
    for way in WAYS {
        let dir = TestDir::new();
        let options = ["--memfree", "900T"];
        let mut brigade = start(&dir, way, &options, "echo $$ >> pids # {}", true);
        let mut stderr = brigade.stderr.take().expect("piped");
        let mut said = Vec::new();
        until("the wait", || {
            let mut piece = [0; 256];
            let count = stderr.read(&mut piece).expect("a pipe");
            said.extend_from_slice(&piece[..count]);
            assert!(count > 0, "{way:?}: {}", String::from_utf8_lossy(&said));
            String::from_utf8_lossy(&said).contains("waiting for memory")
        });
        signal(brigade.id(), "INT");
        let status = brigade.wait().expect("own child");
        end_producer(&dir);
        assert_eq!((status.code(), dir.read("pids").as_str()), (Some(130), ""), "{way:?}");
    }
}
