//! Tests of misbehaving jobs, and of stopping and killing the command.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brigade_testkit::repetitions;

use crate::common::{
    PATIENCE, RunOutput, TestDir, is_alive, numbered, pids, signal, until, until_at_rest,
};

#[test]
fn after_sigkill_no_process_of_a_job_is_left() {
    let dir = TestDir::new();
    // The shell, its child in the group, a grandchild whose parent is gone, and a process that has
    // left the group.
    let script = "echo $$ >> pids; (sleep 600 & echo $! >> pids); sleep 600 & echo $! >> pids
        setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait";
    let mut brigade = dir.spawn(&["run", "-j1", "--", "sh", "-c", script, ":::", "x"]);
    let pids = pids(&dir.path("pids"), 4);
    brigade.kill().expect("own child");
    brigade.wait().expect("own child");
    until("the end of all processes", || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn a_killed_guardian_is_replaced() {
    let dir = TestDir::new();
    let script = "sleep 600 & echo $! >> pids
        setsid sh -c 'echo $$ >> pids; exec sleep 600' & wait";
    let mut brigade = dir.spawn(&["run", "-j1", "--", "sh", "-c", script, ":::", "x"]);
    let pids = pids(&dir.path("pids"), 2);
    let number = brigade.id();
    let guardian = || {
        let children = fs::read_to_string(format!("/proc/{number}/task/{number}/children"));
        let children = children.unwrap_or_default();
        let is_guardian = |pid: &&str| {
            is_alive(pid)
                && fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name == "lifeline\n")
        };
        children.split_whitespace().find(is_guardian).and_then(|pid| pid.parse::<u32>().ok())
    };
    // It takes its name a moment after its start.
    until("a guardian", || guardian().is_some());
    let first = guardian().expect("a guardian");
    signal(first, "KILL");
    until("another guardian", || guardian().is_some_and(|pid| pid != first));
    brigade.kill().expect("own child");
    brigade.wait().expect("own child");
    until("the end of all processes", || !pids.iter().any(|pid| is_alive(pid)));
}

#[test]
fn the_first_interrupt_asks_and_the_second_one_kills() {
    let dir = TestDir::new();
    let script = "trap 'echo asked >> log' INT TERM; echo $$ >> pids; while :; do sleep 0.05; done";
    let brigade = dir.spawn(&["run", "--joblog", "joblog", "--", "sh", "-c", script, ":::", "x"]);
    let pids = pids(&dir.path("pids"), 1);
    signal(brigade.id(), "INT");
    until("the job's trap", || dir.read("log").contains("asked"));
    assert!(is_alive(&pids[0]));
    signal(brigade.id(), "INT");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    assert!(ran.stderr.contains("1 still running; sending SIGKILL"), "{}", ran.stderr);
    assert!(!is_alive(&pids[0]));
    assert_eq!(
        dir.read("joblog").lines().count(),
        2,
        "a stopped job is logged, but not as a success"
    );
}

#[test]
fn a_run_stopped_and_continued_by_a_terminal_runs_all_jobs() {
    let jobs = repetitions(600);
    let dir = TestDir::new();
    dir.write("jobs", numbered(jobs, |number| format!("true {number}\n")));
    let mut command = dir.command(&["run", "--joblog", "log", "jobs"]);
    let mut brigade = command.process_group(0).stderr(Stdio::null()).spawn().expect("brigade");
    let group = format!("-{}", brigade.id());
    let hit = |name: &str| {
        // The run may have ended in the meantime.
        let _ =
            Command::new("kill").args(["-s", name, "--", &group]).stderr(Stdio::null()).status();
    };
    let finished = || fs::read_to_string(dir.path("log")).unwrap_or_default().lines().count();
    let (mut known, mut since) = (0, Instant::now());
    let status = loop {
        hit("TSTP");
        hit("CONT");
        let now = finished();
        if now != known {
            (known, since) = (now, Instant::now());
        }
        if let Some(status) = brigade.try_wait().expect("own child") {
            break status;
        }
        if since.elapsed() > PATIENCE / 2 {
            let _ = brigade.kill();
            panic!("the run hangs after {known} lines of its log");
        }
    };
    assert!(status.success(), "{status}");
    assert_eq!(dir.read("log").lines().count(), jobs + 1);
}

#[test]
fn a_job_that_ignores_requests_is_killed_after_its_limit() {
    let script = "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let dir = TestDir::new();
    let options = ["--timeout", "2", "--joblog", "log"];
    let ran = dir.run(&[&options[..], &["--", "sh", "-c", script, ":::", "x"]].concat());
    assert_eq!(ran.status, 1);
    assert!(dir.read("log").contains("\t-1\t15\t"), "{}", dir.read("log"));
    assert!(ran.stderr.contains("exceeded its time limit of 2.000 s"), "{}", ran.stderr);
    assert!(!is_alive(dir.read("pid").trim()));
}

#[test]
fn a_large_output_is_printed_whole() {
    let dir = TestDir::new();
    let ran =
        dir.run(&["--shell", "--", "head -c 20000000 /dev/zero | tr '\\0' {}", ":::", "a", "b"]);
    assert_eq!(ran.stdout.len(), 40_000_000);
    // Job by job: each letter appears in one piece.
    assert_eq!(ran.stdout.as_bytes().chunk_by(|a, b| a == b).count(), 2);
}

#[test]
fn a_job_that_closes_its_outputs_is_waited_for() {
    let dir = TestDir::new();
    let go = dir.fifo("go");
    let script = "exec >&- 2>&-; touch closed; read line < go; exit 4";
    let brigade = dir.spawn(&["run", "--joblog", "log", "--", "sh", "-c", script, ":::", "x"]);
    until("the end of the outputs", || dir.path("closed").exists());
    until_at_rest(brigade.id());
    fs::write(go, "").expect("a reader");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!(ran.status, 1);
    assert!(dir.read("log").contains("\t4\t0\tsh"), "{}", dir.read("log"));
}

#[test]
fn a_daemon_does_not_delay_its_job_and_ends_with_the_run() {
    let dir = TestDir::new();
    let script = "setsid sh -c 'echo $$ > pid; exec sleep 600' & while [ ! -s pid ]; do sleep 0.01; done; echo over";
    let ran = dir.run(&["--", "sh", "-c", script, ":::", "x"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("over\n", 0));
    assert!(
        ran.stderr.contains("left the process group of job 1 and outlived the job; it was killed"),
        "{}",
        ran.stderr
    );
    assert!(!is_alive(dir.read("pid").trim()));
}

#[test]
fn a_child_that_dies_slowly_is_not_called_a_daemon() {
    // The system takes a while to free the memory of the child.
    let script = "perl -e '$x = q(a) x 400_000_000; open F, q(>ready); sleep 600' &
        while [ ! -e ready ]; do sleep 0.01; done";
    let ran = TestDir::new().run(&["-j1", "--", "sh", "-c", script, ":::", "x"]);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""));
}

#[test]
fn jobs_that_cannot_start_say_why_and_the_rest_runs() {
    let dir = TestDir::new();
    dir.write("plain", "echo no");
    dir.write("folder.toml", "[[job]]\ncommand = ['true']\nfolder = '/nowhere'\n");
    let ran =
        dir.run_with(&["--joblog", "log", "-"], b"no-such-program x\n./plain\n/usr\necho fine\n");
    assert_eq!((ran.stdout.as_str(), ran.status), ("fine\n", 3));
    for message in [
        "program `no-such-program` not found on PATH",
        "`./plain` is not executable",
        "`/usr` is not executable",
    ] {
        assert!(ran.stderr.contains(message), "{message}: {}", ran.stderr);
    }
    let log = dir.read("log");
    assert!(
        log.contains("\t127\t0\tno-such-program x") && log.contains("\t126\t0\t./plain"),
        "{log}"
    );
    let ran = dir.run(&["folder.toml"]);
    assert!(ran.stderr.contains("cannot enter its directory /nowhere"), "{}", ran.stderr);
}

#[test]
fn a_retry_starts_after_the_previous_attempt_is_gone() {
    let dir = TestDir::new();
    dir.write("pids", "");
    // An attempt leaves a child behind.
    let script = "for pid in $(cat pids); do
            case $(ps -o stat= $pid) in ''|Z*);; *) echo overlap;; esac
        done
        echo $$ >> pids; sleep 600 & echo $! >> pids; test $(wc -l < pids) = 6";
    let ran = dir.run(&["--retries", "5", "--joblog", "log", "--", "sh", "-c", script, ":::", "x"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(dir.read("log").contains("attempts=3"));
}

#[test]
fn other_jobs_run_during_the_pause_before_a_retry() {
    let dir = TestDir::new();
    dir.write("jobs", "echo first; [ -e again ] || { touch again; exit 1; }\necho second\n");
    let start = Instant::now();
    let ran = dir.run(&["-j1", "--retries", "1", "--retry-delay", "0.3,factor=1", "jobs"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "second\nfirst\n"), "{}", ran.stderr);
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
}

#[test]
fn an_interrupt_ends_the_pause_before_a_retry() {
    let dir = TestDir::new();
    let options = ["--json", "--joblog", "log", "--retries", "1", "--retry-delay", "1h"];
    let job = ["--", "sh", "-c", "[ -e again ]", ":::", "x"];
    let mut brigade = dir.spawn(&[&["run"], &options[..], &job].concat());
    let mut events = BufReader::new(brigade.stdout.take().expect("piped")).lines();
    assert!(events.any(|line| line.expect("a line").contains("\"retrying\"")));
    signal(brigade.id(), "INT");
    assert_eq!(
        events.filter(|line| line.as_ref().is_ok_and(|it| it.contains("finished"))).count(),
        1
    );
    assert_eq!(brigade.wait().expect("own child").code(), Some(130));
    let log = dir.read("log");
    assert!(log.contains("\t1\t0\tsh") && log.contains("attempts=1"), "{log}");
    dir.write("again", "");
    let again = dir.run(&[&["--resume"], &options[1..], &job].concat());
    assert_eq!((again.status, dir.read("log").lines().count()), (0, 3), "{}", again.stderr);
}

#[test]
fn a_halt_ends_the_pause_before_a_retry() {
    let dir = TestDir::new();
    let jobs = "{\"command\": [\"false\"], \"retries\": 1}\n\
                {\"shell\": \"until [ -e failed ]; do sleep 0.01; done; exit 2\"}\n";
    dir.write("jobs.jsonl", jobs);
    let options = ["-j2", "--no-pin", "--json", "--retry-delay", "1h", "--halt", "soon,fail=1"];
    let mut brigade = dir.spawn(&[&["run"], &options[..], &["jobs.jsonl"]].concat());
    let mut events = BufReader::new(brigade.stdout.take().expect("piped")).lines();
    assert!(events.any(|line| line.expect("a line").contains("\"retrying\"")));
    dir.write("failed", "");
    assert_eq!(
        events.filter(|line| line.as_ref().is_ok_and(|it| it.contains("finished"))).count(),
        2
    );
    assert_eq!(brigade.wait().expect("own child").code(), Some(2));
}

#[test]
fn wide_and_narrow_jobs_never_share_cores() {
    let dir = TestDir::new();
    let jobs = numbered(40, |number| {
        let cores = if number % 3 == 0 { 2 } else { 1 };
        format!("[[job]]\nlabel = '{number}'\ncommand = ['sleep', '0.01']\ncores = {cores}\n")
    });
    dir.write("jobs.toml", &jobs);
    let ran = dir.run(&["--json", "jobs.toml"]);
    if ran.stderr.contains("can never run") {
        // A machine with one core has no room for the wide jobs, and says so.
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
    assert!(order.is_sorted(), "a wide job was overtaken by narrow ones");
    assert_eq!(order.len(), 40);
}

#[test]
fn the_standard_input_of_a_job_is_empty() {
    let ran = TestDir::new().run_with(&["-j1", "-"], b"cat\necho second\n");
    assert_eq!(ran.stdout, "second\n");
}
