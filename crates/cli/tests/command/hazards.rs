//! Tests with hostile surroundings: terminals that disappear, readers that do not read, exhausted
//! descriptors and disks, ignored signals. Nothing may be lost, left behind or left hanging.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brigade_sys::pipes;
use brigade_sys::poller::{Interest, Poller};

use crate::common::{RunOutput, TestDir, is_alive, is_stopped, pids, signal, until, until_at_rest};

/// Much more than these runs need, and less than a stop that escalates to SIGKILL.
const SOON: Duration = Duration::from_secs(9);

const BRIGADE: &str = env!("CARGO_BIN_EXE_brigade");

fn in_shell(dir: &TestDir, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, BRIGADE]).current_dir(dir.path("")).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", dir.path("")).env_remove("BRIGADE_CORES");
    command
}

fn numbers(count: usize) -> Vec<String> {
    (1..=count).map(|number| number.to_string()).collect()
}

/// Starts a shell in a terminal of its own, with a script in which `$0` is the command.
fn in_terminal(dir: &TestDir, shell: &str, script: &str) -> Child {
    dir.write("session", script.replace("$0", BRIGADE));
    Command::new("script")
        .args(["-qc", &format!("exec {shell} session"), "/dev/null"])
        .current_dir(dir.path(""))
        .env("XDG_RUNTIME_DIR", dir.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("script")
}

/// Runs a shell line in a terminal, and closes the terminal once two processes have left their
/// jobs.
fn lose_terminal(dir: &TestDir, line: &str) {
    dir.write(
        "job",
        "setsid sh -c 'echo $$ >> strays; : > left$0; exec sleep 600' $1 &
        until test -e left$1; do sleep 0.01; done",
    );
    let mut terminal = in_terminal(dir, "sh", line);
    pids(&dir.path("strays"), 2);
    terminal.kill().expect("own child");
    terminal.wait().expect("own child");
}

#[test]
fn processes_that_were_there_before_the_run_survive_it() {
    let dir = TestDir::new();
    // The shell's child becomes the command's, and goes on after it.
    let line = "(while kill -0 $$ 2> /dev/null; do sleep 0.01; done; : > survived) &
        exec \"$0\" run -- true ::: 1 2> errors";
    let status = in_shell(&dir, line).stdout(Stdio::null()).status().expect("sh");
    assert!(status.success(), "{}", dir.read("errors"));
    until("the process has survived", || dir.path("survived").exists());
    assert_eq!(dir.read("errors"), "");
}

#[test]
fn a_closed_terminal_leaves_no_process() {
    let dir = TestDir::new();
    lose_terminal(&dir, "exec \"$0\" run -- sh job {} ::: $(seq 1000) 2> /dev/tty");
    until("the end of all processes", || !dir.read("strays").split_whitespace().any(is_alive));
}

#[test]
fn a_closed_terminal_causes_no_panic() {
    let dir = TestDir::new();
    // The shell does not pass the hangup on.
    let line = "trap : HUP; \"$0\" run -- sh job {} ::: $(seq 40) 2> /dev/tty; echo $? > status";
    lose_terminal(&dir, line);
    until("the end of the run", || dir.read("status").ends_with('\n'));
    assert_eq!(dir.read("status"), "0\n");
    assert!(!dir.read("strays").split_whitespace().any(is_alive));
}

#[test]
fn a_reader_that_does_not_read_delays_no_limit_and_no_stop() {
    let dir = TestDir::new();
    let job =
        "if [ $1 = 1 ]; then head -c 1000000 /dev/zero; exit; fi; echo $$ >> pids; exec sleep 600";
    let arguments = ["run", "--no-pin", "-j2", "--timeout", "2", "--", "sh", "-c", job, "x", "{}"];
    let arguments: Vec<&str> = arguments.into_iter().chain([":::", "1", "2", "3", "4"]).collect();
    let mut brigade = dir.spawn(&arguments);
    let pids = pids(&dir.path("pids"), 3);
    until("the end of the jobs", || !pids.iter().any(|pid| is_alive(pid)));
    let mut status = None;
    until("the end of the run", || {
        // Two signals in quick succession may count as one.
        signal(brigade.id(), "INT");
        status = brigade.try_wait().expect("own child");
        status.is_some()
    });
    let status = status.expect("ended");
    assert_eq!((status.signal(), status.code()), (None, Some(130)));
}

#[test]
fn nothing_is_said_to_a_reader_that_has_had_enough() {
    let dir = TestDir::new();
    let script = "\"$0\" run -- echo ::: $(seq 1000) 2> said | head -1";
    let ran: RunOutput = in_shell(&dir, script).output().expect("sh").into();
    assert_eq!((ran.stdout.lines().count(), dir.read("said").as_str()), (1, ""));
}

#[test]
fn lines_without_an_end_do_not_share_a_line_with_the_progress() {
    let dir = TestDir::new();
    // Each waits until the jobs before it are counted.
    dir.write("job", "until grep -q \"$(($1 - 1))/3 \" shown; do sleep 0.01; done; printf x$1");
    let shown = dir.show(&format!("{BRIGADE} run -j1 -- sh job ::: 1 2 3"));
    for line in ["x1\r\n", "x2\r\n", "x3\r\n"] {
        assert!(shown.contains(line), "{}", shown.escape_debug());
    }
    assert!(!shown.contains('░'), "{}", shown.escape_debug());
    // A job is counted as soon as its output is seen.
    assert!(shown.contains("x2\r\n2/3 "), "{}", shown.escape_debug());
    // The cursor rests at the start of a line: a `^C` at the end of a full one would break it.
    assert!(!shown.contains(" \u{1b}[1A"), "{}", shown.escape_debug());
}

#[test]
fn the_length_of_a_list_is_known_once_its_end_was_read() {
    let dir = TestDir::new();
    // After the end of a job the run asks for the next one. The last one waits for that.
    let job = "echo $$ > pid-{}; test {} != 30 || \
        until test -s pid-29 && ! kill -0 $(cat pid-29) 2> /dev/null; do sleep 0.01; done";
    let script = format!("seq 30 | \"$0\" run --bar --no-pin -j2 --shell -- '{job}'");
    let ran: RunOutput = in_shell(&dir, &script).output().expect("sh").into();
    assert!(ran.stderr.contains("/30 done"), "{}", ran.stderr);
}

#[test]
fn a_late_reader_gets_all_output() {
    let dir = TestDir::new();
    let job = "touch begun-{}; head -c 200000 /dev/zero | tr '\\0' x";
    let numbers = numbers(40);
    let mut arguments = vec!["run", "--shell", "-j2", "--", job, ":::"];
    arguments.extend(numbers.iter().map(String::as_str));
    let mut brigade = dir.spawn(&arguments);
    until("the jobs to go on", || dir.path("begun-20").exists());
    let mut printed = Vec::new();
    brigade.stdout.take().expect("piped").read_to_end(&mut printed).expect("a pipe");
    assert_eq!(printed.len(), 40 * 200_000);
    assert!(brigade.wait().expect("own child").success());
}

#[test]
fn an_interrupted_canary_is_a_stop_not_a_failure() {
    let dir = TestDir::new();
    let canary = "echo $$ > pid; exec sleep 600";
    let brigade = dir.spawn(&["run", "--canary", canary, "--", "true", ":::", "x"]);
    pids(&dir.path("pid"), 1);
    signal(brigade.id(), "INT");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    assert!(!ran.stderr.contains("canary failed"), "{}", ran.stderr);
}

#[test]
fn a_stopped_job_receives_the_interrupt() {
    let dir = TestDir::new();
    let job = "echo $$ > pid; kill -STOP $$; sleep 600";
    let brigade = dir.spawn(&["run", "--", "sh", "-c", job, ":::", "x"]);
    let pid = &pids(&dir.path("pid"), 1)[0];
    until("the stop", || is_stopped(pid));
    let start = Instant::now();
    signal(brigade.id(), "INT");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!(ran.status, 130);
    assert!(start.elapsed() < SOON, "it took the whole escalation: {}", ran.stderr);
}

#[test]
fn a_suspended_run_suspends_its_jobs_and_their_limits() {
    let dir = TestDir::new();
    // A shell that starts programs may wait for one that was stopped, and is not stopped itself.
    let wait = "select undef, undef, undef, 0.02 until -e \"go\"";
    let job = format!("echo $$ >> pids; exec perl -e '{wait}' # {{}}");
    let options = ["run", "--no-pin", "-j2", "--timeout", "6", "--shell"];
    let mut command = dir.command(&[&options[..], &["--", &job, ":::", "1", "2"]].concat());
    let brigade = command.stdout(Stdio::piped()).process_group(0).spawn().expect("brigade");
    let pids = pids(&dir.path("pids"), 2);
    signal(brigade.id(), "TSTP");
    until("the stop", || {
        pids.iter().all(|pid| is_stopped(pid)) && is_stopped(&brigade.id().to_string())
    });
    // Longer than the limit.
    assert!(Command::new("sleep").arg("6.5").status().expect("sleep").success());
    dir.write("go", "");
    signal(brigade.id(), "CONT");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

#[test]
fn a_job_that_wants_the_terminal_is_named() {
    let dir = TestDir::new();
    let session = "\"$0\" run -- sh -c 'read x < /dev/tty' ::: 1 2> said & \
        until grep -q 'wants to use the terminal' said; do sleep 0.05; done; kill -INT $!; wait $!; echo $? > status";
    // Job control, so that the run is not in the foreground either.
    let mut terminal = in_terminal(&dir, "sh -m", session);
    until("the end of the run", || dir.read("status").ends_with('\n'));
    assert_eq!(dir.read("status"), "130\n", "{}", dir.read("said"));
    let _ = terminal.kill();
    terminal.wait().expect("own child");
}

#[test]
fn jobs_wait_for_others_if_descriptors_run_out() {
    let dir = TestDir::new();
    let go = dir.fifo("go");
    // They wait until no more jobs start.
    let script = "ulimit -n 64; exec \"$0\" run --no-pin -j 40 --shell -- \
        'echo >> begun; test -e over || read line < go; echo {}' ::: $(seq 100)";
    let mut command = in_shell(&dir, script);
    let brigade = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    until("a job", || !dir.read("begun").is_empty());
    until_at_rest(brigade.id());
    assert!(dir.read("begun").len() < 40, "all of them have descriptors");
    dir.write("over", "");
    fs::write(go, "").expect("readers");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!((ran.status, ran.lines().len()), (0, 100), "{}", ran.stderr);
}

#[test]
fn a_job_waits_until_the_load_falls() {
    const THREADS: usize = 50;
    // Others come and go while these begin.
    const LIMIT: usize = 30;
    let dir = TestDir::new();
    let spin =
        |_| Command::new("nice").args(["-n", "19", "sh", "-c", "while :; do :; done"]).spawn();
    let mut spinning: Vec<Child> = (0..THREADS).map(spin).map(|child| child.expect("sh")).collect();
    // Those that are asleep do not count.
    let runnable = || fs::read_to_string("/proc/loadavg").expect("a kernel of Linux");
    until("the load", || {
        let text = runnable();
        let field = text.split(' ').nth(3).and_then(|field| field.split('/').next());
        field.and_then(|count| count.parse().ok()).is_some_and(|count: usize| count > THREADS)
    });
    let limit = LIMIT.to_string();
    let arguments = ["run", "--no-pin", "--json", "--load", &limit, "--", "touch", ":::", "ran"];
    let mut brigade = dir.spawn(&arguments);
    let mut stdout = BufReader::new(brigade.stdout.take().expect("piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a pipe");
    let was_held_back = !dir.path("ran").exists();
    for child in &mut spinning {
        child.kill().expect("own child");
        child.wait().expect("own child");
    }
    assert!(line.contains("\"waiting\"") && line.contains("\"load\""), "{line}");
    assert!(was_held_back && brigade.wait().expect("own child").success());
    assert!(dir.path("ran").exists());
}

#[test]
fn streams_that_do_not_block_lose_nothing() {
    const LINES: usize = 500_000;
    let dir = TestDir::new();
    for options in [&["--"][..], &["--line-buffer", "--"], &["--results=-.csv", "--"]] {
        let (read, write) = pipes::input_pipe().expect("a pipe");
        let lines = LINES.to_string();
        let arguments = [&["run"], options, &["seq", ":::", &lines]].concat();
        let mut command = dir.command(&arguments);
        let mut brigade = command.stdout(write.try_clone().expect("one")).spawn().expect("brigade");
        // The command has the other end.
        drop(command);
        let poller = Poller::new().expect("descriptors");
        poller.add(&write, 0).expect("a pipe");
        poller.set_interest(&write, 0, Interest::Writable).expect("a pipe");
        until("a full pipe", || {
            let mut ready = Vec::new();
            poller.ready(false, &mut ready).expect("a pipe");
            ready.is_empty() || brigade.try_wait().expect("own child").is_some()
        });
        drop((poller, write));
        let printed = std::io::read_to_string(fs::File::from(read)).expect("UTF-8");
        assert!(brigade.wait().expect("own child").success(), "{options:?}");
        assert!(printed.lines().count() >= LINES, "{options:?}");
    }
    for options in [&["-k", "--"][..], &["--pipe", "-N1", "-k", "--", "xargs"]] {
        let (mut ours, theirs) = UnixStream::pair().expect("sockets");
        theirs.set_nonblocking(true).expect("a socket");
        let mut command = dir.command(&[&["run"], options, &["tee", "-a"]].concat());
        command.stdin(OwnedFd::from(theirs)).stderr(Stdio::piped());
        let brigade = command.spawn().expect("brigade");
        drop(command);
        ours.write_all(b"first\n").expect("a socket");
        until("the first job", || dir.path("first").exists());
        ours.write_all(b"second\n").expect("a socket");
        drop(ours);
        let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
        assert_eq!(ran.status, 0, "{options:?}: {}", ran.stderr);
        fs::remove_file(dir.path("first")).expect("written");
        fs::remove_file(dir.path("second")).expect("written");
    }
}

#[test]
fn blocks_that_wait_leave_descriptors_for_jobs() {
    let dir = TestDir::new();
    for (limit, options) in [(32, "-j 0"), (24, "-j 0"), (32, "-j 9 --round-robin")] {
        let script = format!(
            "ulimit -n {limit}; seq 20000 | \"$0\" run --no-pin {options} --pipe --block 1k -- wc -l"
        );
        let ran: RunOutput = in_shell(&dir, &script).output().expect("sh").into();
        let lines = ran.lines().iter().map(|line| line.parse::<u32>().expect("a number")).sum();
        assert_eq!((ran.status, lines), (0, 20_000), "{script}: {}", ran.stderr);
    }
}

#[test]
fn the_limit_of_descriptors_is_raised_but_not_for_jobs() {
    let dir = TestDir::new();
    // All jobs run at once: each waits until the last one has started.
    let script = "ulimit -Sn 64; exec \"$0\" run --no-pin -j 100 -- sh -c \
        'ulimit -Sn; : > begun-$0; until test -e begun-100; do sleep 0.05; done' ::: $(seq 100)";
    let ran: RunOutput = in_shell(&dir, script).output().expect("sh").into();
    assert_eq!((ran.status, ran.stdout), (0, "64\n".repeat(100)), "{}", ran.stderr);
}

#[test]
fn outputs_that_are_held_back_do_not_exhaust_descriptors() {
    let dir = TestDir::new();
    let go = dir.fifo("go");
    let script = "ulimit -n 64; exec \"$0\" run -k --no-pin -j 2 --shell -- \
        'echo >> begun; test {} = 1 && read line < go; head -c 300000 /dev/zero' ::: $(seq 60)";
    let mut command = in_shell(&dir, script);
    let brigade = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    until("two jobs", || dir.read("begun").len() >= 2);
    until_at_rest(brigade.id());
    fs::write(go, "").expect("a reader");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!((ran.status, ran.stdout.len()), (0, 60 * 300_000), "{}", ran.stderr);
}

#[test]
fn outputs_that_are_held_back_take_bounded_memory() {
    const MAX_KIB: u64 = 110 << 10;
    let dir = TestDir::new();
    // All together they would take 200 MB. The first job waits until no more jobs start, and the
    // last one looks at the run.
    let go = dir.fifo("go");
    let job = "case {} in \
        1) read line < go;; \
        800) grep VmHWM /proc/$PPID/status;; \
        *) echo >> begun; head -c 250000 /dev/zero;; esac";
    let numbers = numbers(800);
    let mut arguments = vec!["run", "-k", "--no-pin", "-j2", "--shell", "--", job, ":::"];
    arguments.extend(numbers.iter().map(String::as_str));
    let brigade = dir.spawn(&arguments);
    until("many jobs", || dir.read("begun").len() > 100);
    until_at_rest(brigade.id());
    fs::write(go, "\n").expect("a reader");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    let peak = ran.stdout.rsplit("VmHWM:").next().and_then(|text| text.split_whitespace().next());
    let peak: u64 = peak.and_then(|text| text.parse().ok()).expect("a number");
    assert!(ran.status == 0 && peak < MAX_KIB, "{peak} KiB, {}", ran.stderr);
}

#[test]
fn a_job_whose_output_does_not_fit_on_disk_is_not_a_success() {
    let dir = TestDir::new();
    let script =
        "TMPDIR=/nowhere exec \"$0\" run --joblog log --shell -- 'head -c 600000 /dev/zero' ::: 1";
    let ran: RunOutput = in_shell(&dir, script).output().expect("sh").into();
    assert_eq!(ran.status, 255, "{}", ran.stderr);
    assert!(ran.stderr.contains("TMPDIR"), "{}", ran.stderr);
    assert_eq!(dir.read("log").lines().count(), 1, "no success must be logged");
}

#[test]
fn a_pipe_without_a_writer_delays_only_its_own_job() {
    let dir = TestDir::new();
    dir.fifo("pipe");
    let job = "[[job]]\ncommand = ['cat']\nstdin = 'pipe'\ntimeout = 1\n[[job]]\ncommand = ['echo', 'b']\n";
    dir.write("jobs.toml", job);
    let brigade = dir.spawn(&["run", "-j1", "jobs.toml"]);
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!((ran.stdout.as_str(), ran.status), ("b\n", 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("exceeded its time limit of 1.000 s"), "{}", ran.stderr);
}

#[test]
fn a_pipe_as_standard_input_is_read_by_the_job() {
    let dir = TestDir::new();
    let pipe = dir.fifo("pipe");
    dir.write("jobs.toml", "[[job]]\ncommand = ['cat', '-n']\nstdin = 'pipe'\nfolder = '/'\n");
    let brigade = dir.spawn(&["run", "jobs.toml"]);
    fs::write(pipe, "text\n").expect("a reader");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!((ran.stdout.trim(), ran.status), ("1\ttext", 0), "{}", ran.stderr);
}

#[test]
fn results_of_a_job_and_its_strays_are_not_overwritten() {
    let dir = TestDir::new();
    let job = "setsid seq 1 1000000000 & until test -s d/1/1/stdout; do sleep 0.01; done";
    let ran = dir.run(&["--results", "d", "--", "sh", "-c", job, "x", ":::", "1"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let written = dir.read("d/1/1/stdout");
    let whole = written.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let in_order = (1_u64..).zip(whole.lines()).all(|(number, line)| line == number.to_string());
    assert!(in_order && !whole.is_empty(), "the file was overwritten");
}

#[test]
fn orphans_of_a_job_are_reaped_while_the_job_runs() {
    let dir = TestDir::new();
    let job = "for i in $(seq 50); do (true &); done
        until [ $(ps --ppid $PPID -o stat= | grep -c Z) = 0 ]; do sleep 0.05; done; echo none";
    let ran = dir.run(&["--timeout", "60", "--", "sh", "-c", job, ":::", "x"]);
    assert_eq!((ran.stdout.as_str(), ran.status), ("none\n", 0), "{}", ran.stderr);
}

#[test]
fn a_signal_ignored_at_the_start_stays_ignored() {
    let dir = TestDir::new();
    let go = dir.fifo("go");
    let script =
        "trap '' HUP INT; exec \"$0\" run -- sh -c 'echo $$ > pid; read x < go; echo done' ::: x";
    let mut command = in_shell(&dir, script);
    let brigade = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    pids(&dir.path("pid"), 1);
    signal(brigade.id(), "HUP");
    signal(brigade.id(), "INT");
    until_at_rest(brigade.id());
    fs::write(go, "").expect("a reader");
    let ran: RunOutput = brigade.wait_with_output().expect("own child").into();
    assert_eq!((ran.stdout.as_str(), ran.status), ("done\n", 0), "{}", ran.stderr);
}

#[test]
fn an_ignored_sigchld_loses_no_exit_status() {
    let dir = TestDir::new();
    let script = "exec env --ignore-signal=CHLD \"$0\" run --joblog log -- sh -c 'exit {}' ::: 0 3";
    let ran: RunOutput = in_shell(&dir, script).output().expect("sh").into();
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("exit code 3"), "{}", ran.stderr);
}

#[test]
fn the_status_of_a_halt_is_that_of_the_job_that_met_it() {
    let dir = TestDir::new();
    for policy in ["soon,fail=1", "now,fail=1"] {
        let job = "if [ $0 = 1 ]; then touch over; exit 7; fi
            until test -e over; do sleep 0.01; done";
        let ran = dir.run(&[
            "--no-pin", "-j2", "--halt", policy, "--", "sh", "-c", job, "{}", ":::", "1", "8", "9",
        ]);
        assert_eq!(ran.status, 7, "{policy}: {}", ran.stderr);
    }
    // Even if nothing is left to halt.
    for policy in ["soon,fail=1", "now,fail=1"] {
        let ran = dir.run(&["-j1", "--halt", policy, "--", "sh", "-c", "exit {}", ":::", "0", "7"]);
        assert_eq!(ran.status, 7, "{policy}");
    }
}
