//! What surroundings do to a run: terminals that go away, readers that do not read, descriptors and disks that run out,
//! signals that are ignored. Nothing may be lost, left behind or left hanging.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Place, Ran, pids, signal, until};

/// Much more than these runs need, and less than the ladder of a stop.
const SOON: Duration = Duration::from_secs(9);

const BRIGADE: &str = env!("CARGO_BIN_EXE_brigade");

fn in_shell(place: &Place, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, BRIGADE]).current_dir(place.path("")).stdin(Stdio::null());
    command
}

#[test]
fn an_interrupted_canary_is_a_stop_and_no_failure() {
    let place = Place::new();
    let canary = "echo $$ > pid; exec sleep 600";
    let brigade = place.spawn(&["run", "--canary", canary, "--", "true", ":::", "x"]);
    pids(&place.path("pid"), 1);
    signal(brigade.id(), "INT");
    let ran: Ran = brigade.wait_with_output().expect("ours").into();
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    assert!(!ran.stderr.contains("canary failed"), "{}", ran.stderr);
}

#[test]
fn a_job_that_has_stopped_itself_hears_the_interrupt() {
    let place = Place::new();
    let job = "echo $$ > pid; kill -STOP $$; sleep 600";
    let brigade = place.spawn(&["run", "--", "sh", "-c", job, ":::", "x"]);
    let pid = &pids(&place.path("pid"), 1)[0];
    until("the stop", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
    });
    let start = Instant::now();
    signal(brigade.id(), "INT");
    let ran: Ran = brigade.wait_with_output().expect("ours").into();
    assert_eq!(ran.status, 130);
    assert!(start.elapsed() < SOON, "it took the whole ladder: {}", ran.stderr);
}

#[test]
fn without_descriptors_jobs_wait_for_others() {
    let place = Place::new();
    let script =
        "ulimit -n 64; exec \"$0\" run --no-pin -j 40 -- sh -c 'sleep 0.1; echo {}' ::: $(seq 100)";
    let ran: Ran = in_shell(&place, script).output().expect("sh").into();
    assert_eq!((ran.status, ran.lines().len()), (0, 100), "{}", ran.stderr);
}

#[test]
fn a_pipe_that_nobody_writes_holds_up_its_own_job_only() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("mkfifo").success());
    let job = "[[job]]\ncommand = ['cat']\nstdin = 'pipe'\ntimeout = 1\n[[job]]\ncommand = ['echo', 'b']\n";
    place.write("jobs.toml", job);
    let brigade = place.spawn(&["run", "-j1", "jobs.toml"]);
    let ran: Ran = brigade.wait_with_output().expect("ours").into();
    assert_eq!((ran.stdout.as_str(), ran.status), ("b\n", 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("took longer than 1.000 s"), "{}", ran.stderr);
}

#[test]
fn a_pipe_as_standard_input_is_read_by_its_job() {
    let place = Place::new();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().expect("mkfifo").success());
    place.write("jobs.toml", "[[job]]\ncommand = ['cat', '-n']\nstdin = 'pipe'\nfolder = '/'\n");
    let brigade = place.spawn(&["run", "jobs.toml"]);
    fs::write(place.path("pipe"), "text\n").expect("a reader");
    let ran: Ran = brigade.wait_with_output().expect("ours").into();
    assert_eq!((ran.stdout.trim(), ran.status), ("1\ttext", 0), "{}", ran.stderr);
}

#[test]
fn results_are_left_as_their_job_and_its_strays_write_them() {
    let place = Place::new();
    let job = "setsid seq 1 1000000000 & sleep 0.2";
    let ran = place.run(&["--results", "d", "--", "sh", "-c", job, "x", ":::", "1"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let written = place.read("d/1/1/stdout");
    let whole = written.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let in_order = (1_u64..).zip(whole.lines()).all(|(number, line)| line == number.to_string());
    assert!(in_order && !whole.is_empty(), "the file was written over");
}
