//! What becomes of jobs that misbehave, and of all of them when the command is stopped or killed.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::common::{PATIENCE, Place, Ran, is_alive, pids, pieces, signal, until};

#[test]
fn after_sigkill_no_process_of_a_job_is_left() {
    let place = Place::new();
    // The shell, its child in the group, a grandchild whose parent has gone, and one that has left the group.
    let script = "echo $$ >> pids; (sleep 600 & echo $! >> pids); sleep 600 & echo $! >> pids
        setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait";
    let mut brigade = place.spawn(&["run", "-j1", "--", "sh", "-c", script, ":::", "x"]);
    let pids = pids(&place.path("pids"), 4);
    brigade.kill().expect("ours");
    brigade.wait().expect("ours");
    until("the end of all processes", || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn a_guardian_that_is_killed_is_replaced() {
    let place = Place::new();
    let script = "sleep 600 & echo $! >> pids
        setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait";
    let mut brigade = place.spawn(&["run", "-j1", "--", "sh", "-c", script, ":::", "x"]);
    let pids = pids(&place.path("pids"), 2);
    let number = brigade.id();
    let guardian = || {
        let children = std::fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
        let children = children.unwrap_or_default();
        let is_guardian = |pid: &&str| {
            is_alive(pid)
                && std::fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name == "lifeline\n")
        };
        children.split_whitespace().find(is_guardian).and_then(|pid| pid.parse::<u32>().ok())
    };
    let first = guardian().expect("there is one");
    signal(first, "KILL");
    until("another guardian", || guardian().is_some_and(|pid| pid != first));
    brigade.kill().expect("ours");
    brigade.wait().expect("ours");
    until("the end of all processes", || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn the_first_interrupt_asks_and_the_second_kills() {
    let place = Place::new();
    let script = "trap 'echo asked >> log' INT TERM; echo $$ >> pids; while :; do sleep 0.05; done";
    let brigade = place.spawn(&["run", "--joblog", "joblog", "--", "sh", "-c", script, ":::", "x"]);
    let pids = pids(&place.path("pids"), 1);
    signal(brigade.id(), "INT");
    until("the job's trap", || place.read("log").contains("asked"));
    assert!(is_alive(&pids[0]));
    signal(brigade.id(), "INT");
    let ran: Ran = brigade.wait_with_output().expect("ours").into();
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("SIGKILL to 1 still running"), "{}", ran.stderr);
    assert!(!is_alive(&pids[0]));
    assert_eq!(place.read("joblog").lines().count(), 2, "a stopped job is logged, as no success");
}

#[test]
fn a_run_that_a_terminal_stops_and_continues_runs_all_its_jobs() {
    let place = Place::new();
    place.write("jobs", pieces(1500, |number| format!("true {number}\n")));
    let mut command = place.command(&["run", "--joblog", "log", "jobs"]);
    let mut brigade = command.process_group(0).stderr(Stdio::null()).spawn().expect("brigade");
    let group = format!("-{}", brigade.id());
    let hit = |name: &str| {
        // It may have ended meanwhile.
        let _ =
            Command::new("kill").args(["-s", name, "--", &group]).stderr(Stdio::null()).status();
    };
    let start = Instant::now();
    let status = loop {
        hit("TSTP");
        hit("CONT");
        if let Some(status) = brigade.try_wait().expect("ours") {
            break status;
        }
        if start.elapsed() > PATIENCE / 2 {
            let _ = brigade.kill();
            panic!("the run hangs after {} jobs", place.read("log").lines().count());
        }
    };
    assert!(status.success(), "{status}");
    assert_eq!(place.read("log").lines().count(), 1501);
}

#[test]
fn a_job_that_ignores_every_request_is_killed_after_its_limit() {
    let script = "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let place = Place::new();
    let ran = place.run(&["--timeout", "0.3", "--", "sh", "-c", script, ":::", "x"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("took longer than 0.300 s"), "{}", ran.stderr);
    assert!(!is_alive(place.read("pid").trim()));
}

#[test]
fn a_job_that_prints_a_lot_is_printed_whole() {
    let place = Place::new();
    let ran =
        place.run(&["--shell", "--", "head -c 20000000 /dev/zero | tr '\\0' {}", ":::", "a", "b"]);
    assert_eq!(ran.stdout.len(), 40_000_000);
    // Job by job: each letter is one run.
    assert_eq!(ran.stdout.as_bytes().chunk_by(|a, b| a == b).count(), 2);
}

#[test]
fn a_job_that_closes_its_outputs_and_lives_on_is_waited_for() {
    let place = Place::new();
    let script = "exec >&- 2>&-; sleep 0.3; touch lived; exit 4";
    let ran = place.run(&["--joblog", "log", "--", "sh", "-c", script, ":::", "x"]);
    assert_eq!(ran.status, 1);
    assert!(place.path("lived").exists());
    assert!(place.read("log").contains("\t4\t0\tsh"), "{}", place.read("log"));
}

#[test]
fn a_job_that_leaves_a_daemon_is_over_and_the_daemon_is_ended_with_the_run() {
    let place = Place::new();
    let script = "setsid sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do sleep 0.01; done; echo over";
    let ran = place.run(&["--", "sh", "-c", script, ":::", "x"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("over\n", 0));
    assert!(
        ran.stderr.contains("of job 1 had left its job and outlived it, and was killed"),
        "{}",
        ran.stderr
    );
    assert!(!is_alive(place.read("pid").trim()));
}

#[test]
fn what_cannot_be_started_says_why_and_the_rest_runs() {
    let place = Place::new();
    place.write("plain", "echo no");
    place.write("folder.toml", "[[job]]\ncommand = ['true']\nfolder = '/nowhere'\n");
    let ran =
        place.run_with(&["--joblog", "log", "-"], b"no-such-program x\n./plain\n/usr\necho fine\n");
    assert_eq!((ran.stdout.as_str(), ran.status), ("fine\n", 3));
    for message in [
        "there is no program `no-such-program` on PATH",
        "`./plain` is not executable",
        "`/usr` is not executable",
    ] {
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
    }
    let log = place.read("log");
    assert!(
        log.contains("\t127\t0\tno-such-program x") && log.contains("\t126\t0\t./plain"),
        "{log}"
    );
    let ran = place.run(&["folder.toml"]);
    assert!(ran.stderr.contains("cannot enter its folder /nowhere"), "{}", ran.stderr);
}

#[test]
fn a_retry_starts_when_nothing_of_the_attempt_before_is_left() {
    let place = Place::new();
    let script = "mkdir lock || { echo overlap; exit 9; }; echo x >> tries; (trap 'rmdir lock' EXIT; sleep 0.1)
        [ $(wc -l < tries) = 3 ]";
    let ran =
        place.run(&["--retries", "5", "--joblog", "log", "--", "bash", "-c", script, ":::", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(place.read("log").contains("attempts=3"));
}

#[test]
fn cores_are_never_overcommitted_by_wide_and_narrow_jobs() {
    let place = Place::new();
    let jobs = pieces(40, |number| {
        let cores = if number % 3 == 0 { 2 } else { 1 };
        format!("[[job]]\nlabel = '{number}'\ncommand = ['sleep', '0.01']\ncores = {cores}\n")
    });
    place.write("jobs.toml", &jobs);
    let ran = place.run(&["--json", "jobs.toml"]);
    if ran.stderr.contains("can never run") {
        // A machine of one core has no room for the wide ones, and says so.
        return;
    }
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let mut used = std::collections::BTreeMap::new();
    let mut order = Vec::new();
    for line in ran.stdout.lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let job = event["job"].as_u64();
        match event["event"].as_str() {
            Some("started") => {
                order.push(job);
                for core in event["cores"].as_array().expect("a list") {
                    assert_eq!(used.insert(core.as_u64(), job), None, "two jobs on one core");
                }
            }
            Some("finished") => used.retain(|_, holder| *holder != job),
            _ => {}
        }
    }
    assert!(order.is_sorted(), "no wide job was passed by narrow ones");
    assert_eq!(order.len(), 40);
}

#[test]
fn standard_input_of_a_job_is_empty_and_not_the_list_of_jobs() {
    let ran = Place::new().run_with(&["-j1", "-"], b"cat\necho second\n");
    assert_eq!(ran.stdout, "second\n");
}
