//! What surroundings do to a run: terminals that go away, readers that do not read, descriptors and disks that run out,
//! signals that are ignored. Nothing may be lost, left behind or left hanging.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Place, Ran, is_alive, pids, signal, until};

/// Much more than these runs need, and less than the ladder of a stop.
const SOON: Duration = Duration::from_secs(9);

const BRIGADE: &str = env!("CARGO_BIN_EXE_brigade");

fn in_shell(place: &Place, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, BRIGADE]).current_dir(place.path("")).stdin(Stdio::null());
    command
}

fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

/// Runs this line of a shell in a terminal, and takes the terminal away when processes run that have left their job.
fn lose_terminal(place: &Place, line: &str) {
    place.write("job", "setsid sh -c 'echo $$ >> strays; exec sleep 600' & sleep 0.05");
    place.write("session", line.replace("$0", BRIGADE));
    let mut terminal = Command::new("script")
        .args(["-qc", "exec sh session", "/dev/null"])
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("script");
    pids(&place.path("strays"), 2);
    terminal.kill().expect("ours");
    terminal.wait().expect("ours");
}

#[test]
fn a_terminal_that_goes_away_leaves_no_process() {
    let place = Place::new();
    lose_terminal(&place, "exec \"$0\" run -- sh job {} ::: $(seq 1000) 2> /dev/tty");
    until("the end of all processes", || !place.read("strays").split_whitespace().any(is_alive));
}

#[test]
fn a_terminal_that_goes_away_is_no_panic() {
    let place = Place::new();
    // The shell keeps the hangup to itself.
    let line = "trap : HUP; \"$0\" run -- sh job {} ::: $(seq 40) 2> /dev/tty; echo $? > status";
    lose_terminal(&place, line);
    until("the end of the run", || place.read("status").ends_with('\n'));
    assert_eq!(place.read("status"), "0\n");
    assert!(!place.read("strays").split_whitespace().any(is_alive));
}

#[test]
fn a_reader_that_does_not_read_holds_up_no_limit_and_no_stop() {
    let place = Place::new();
    let job =
        "if [ $1 = 1 ]; then head -c 1000000 /dev/zero; exit; fi; echo $$ >> pids; exec sleep 600";
    let arguments = ["run", "--no-pin", "-j2", "--timeout", "1", "--", "sh", "-c", job, "x", "{}"];
    let arguments: Vec<&str> = arguments.into_iter().chain([":::", "1", "2", "3", "4"]).collect();
    let mut brigade = place.spawn(&arguments);
    let pids = pids(&place.path("pids"), 3);
    until("the end of the jobs", || !pids.iter().any(|pid| is_alive(pid)));
    let mut status = None;
    until("the end of the run", || {
        // Two at once may count as one.
        signal(brigade.id(), "INT");
        status = brigade.try_wait().expect("ours");
        status.is_some()
    });
    let status = status.expect("ended");
    assert_eq!((status.signal(), status.code()), (None, Some(130)));
}

#[test]
fn what_a_late_reader_gets_is_whole() {
    let place = Place::new();
    let job = "touch begun-{}; head -c 200000 /dev/zero | tr '\\0' x";
    let numbers = numbers(40);
    let mut arguments = vec!["run", "--shell", "-j2", "--", job, ":::"];
    arguments.extend(numbers.iter().map(String::as_str));
    let mut brigade = place.spawn(&arguments);
    until("the jobs to go on", || place.path("begun-20").exists());
    let mut printed = Vec::new();
    brigade.stdout.take().expect("piped").read_to_end(&mut printed).expect("a pipe");
    assert_eq!(printed.len(), 40 * 200_000);
    assert!(brigade.wait().expect("ours").success());
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
fn results_that_are_held_back_do_not_use_up_descriptors() {
    let place = Place::new();
    let script = "ulimit -n 64; exec \"$0\" run -k --no-pin -j 2 --shell -- \
        'test {} = 1 && sleep 2; head -c 300000 /dev/zero' ::: $(seq 60)";
    let ran: Ran = in_shell(&place, script).output().expect("sh").into();
    assert_eq!((ran.status, ran.stdout.len()), (0, 60 * 300_000), "{}", ran.stderr);
}

#[test]
fn output_that_finds_no_disk_is_no_success() {
    let place = Place::new();
    let script =
        "TMPDIR=/nowhere exec \"$0\" run --joblog log --shell -- 'head -c 600000 /dev/zero' ::: 1";
    let ran: Ran = in_shell(&place, script).output().expect("sh").into();
    assert_eq!(ran.status, 255, "{}", ran.stderr);
    assert!(ran.stderr.contains("TMPDIR"), "{}", ran.stderr);
    assert_eq!(place.read("log").lines().count(), 1, "no success is logged");
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

#[test]
fn what_daemons_leave_is_reaped_while_their_job_runs() {
    let place = Place::new();
    let job = "for i in $(seq 50); do (true &); done
        until [ $(ps --ppid $PPID -o stat= | grep -c Z) = 0 ]; do sleep 0.05; done; echo none";
    let ran = place.run(&["--timeout", "10", "--", "sh", "-c", job, ":::", "x"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("none\n", 0), "{}", ran.stderr);
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let place = Place::new();
    let script =
        "trap '' HUP INT; exec \"$0\" run -- sh -c 'echo $$ > pid; sleep 1; echo done' ::: x";
    let mut command = in_shell(&place, script);
    let brigade = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    pids(&place.path("pid"), 1);
    signal(brigade.id(), "HUP");
    signal(brigade.id(), "INT");
    let ran: Ran = brigade.wait_with_output().expect("ours").into();
    assert_eq!((ran.stdout.as_str(), ran.status), ("done\n", 0), "{}", ran.stderr);
}

#[test]
fn an_ignored_sigchld_loses_no_status() {
    let place = Place::new();
    let script = "exec env --ignore-signal=CHLD \"$0\" run --joblog log -- sh -c 'exit {}' ::: 0 3";
    let ran: Ran = in_shell(&place, script).output().expect("sh").into();
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("exit code 3"), "{}", ran.stderr);
}

#[test]
fn a_halt_ends_with_the_status_of_the_job_that_met_it() {
    let place = Place::new();
    for policy in ["soon,fail=1", "now,fail=1"] {
        let job = "sleep 0.$0; if [ $0 = 1 ]; then exit 7; fi";
        let ran = place.run(&[
            "--no-pin", "-j2", "--halt", policy, "--", "sh", "-c", job, "{}", ":::", "1", "8", "9",
        ]);
        assert_eq!(ran.status, 7, "{policy}: {}", ran.stderr);
    }
}
