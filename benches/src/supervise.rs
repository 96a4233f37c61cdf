//! One turn of one contestant: started, awaited with a bound, and looked after.
//!
//! Every process that comes from a turn carries its mark in the environment, so that those which
//! are left over are found, whoever their parent is by then.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use brigade_sys::clock::now;
use brigade_sys::wait::wait_readable;
use brigade_testkit::{pause, processes};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::report::{EVERYTHING, Outcome, Report};
use crate::role::PARENT;

/// Runs a contestant to its end, or to the end of its time.
pub(crate) fn run(command: &mut Command, bound: Duration) -> Report {
    let mark = mark();
    command.env(MARK, &mark).env(PARENT, std::process::id().to_string());
    let mut report = report(command, bound, &mark).unwrap_or_else(|error| {
        let mut report = Report::default();
        report.miss(EVERYTHING, error.to_string());
        report
    });
    let left = left_behind(&mark);
    if left > 0 {
        report.miss("processes left behind", format!("{left}; they were killed"));
    }
    report
}

/// The variable that all processes of a turn inherit.
const MARK: &str = "BRIGADE_BENCH_TURN";

fn mark() -> String {
    static TURN: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), TURN.fetch_add(1, Ordering::Relaxed))
}

fn report(command: &mut Command, bound: Duration, mark: &str) -> Outcome<Report> {
    // Files, so that nobody has to read while the contestant runs.
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(errors.try_clone()?));
    let program = command.get_program().display().to_string();
    // In our own process group: Ctrl-C in a terminal reaches it too.
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let status = wait(&mut child, bound, mark)?;
    let words = last_words(&mut errors)?;
    match status {
        None => Err(format!("no end after {} s{words}", bound.as_secs()).into()),
        Some(status) if !status.success() => Err(format!("{status}{words}").into()),
        Some(_) => {
            let text = contents(&mut output)?;
            serde_json::from_str(&text).map_err(|error| format!("no report: {error}{words}").into())
        }
    }
}

/// Waits for the end and reaps; `None` when it had to be killed.
fn wait(child: &mut Child, bound: Duration, mark: &str) -> Outcome<Option<ExitStatus>> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = now().saturating_add(bound);
    let in_time = wait_readable(&[ended.as_fd()], Some(deadline))?[0];
    if !in_time {
        hit(mark);
        // Also when its environment could not be read.
        let _ = child.kill();
    }
    let status = child.wait()?;
    Ok(in_time.then_some(status))
}

/// How many processes of the turn did not end by themselves soon after it; they are killed.
fn left_behind(mark: &str) -> usize {
    let begin = Instant::now();
    loop {
        let left = processes::with_variable(MARK, mark).len();
        if left == 0 || begin.elapsed() > GRACE {
            if left > 0 {
                hit(mark);
            }
            return left;
        }
        pause(Duration::from_millis(20));
    }
}

/// Helpers of Python's pools notice the end of their program a moment later.
const GRACE: Duration = Duration::from_secs(3);

/// Kills all processes of a turn, also those that are started meanwhile.
fn hit(mark: &str) {
    let begin = Instant::now();
    loop {
        let found = processes::with_variable(MARK, mark);
        if found.is_empty() || begin.elapsed() > GRACE {
            return;
        }
        for process in found {
            processes::hit(process, processes::Signal::KILL);
        }
        pause(Duration::from_millis(5));
    }
}

/// The last line that was written to standard error, which mostly says what happened.
fn last_words(errors: &mut File) -> Outcome<String> {
    let text = contents(errors)?;
    let last = text.trim_end().lines().next_back().unwrap_or_default();
    Ok(if last.is_empty() { String::new() } else { format!(": {last}") })
}

fn contents(file: &mut File) -> Outcome<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::run;
    use crate::report::EVERYTHING;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_is_printed_is_the_report() {
        let report = run(
            &mut shell(r#"echo '{"version": "1", "figures": {"a_seconds": 0.5}}'"#),
            Duration::from_secs(20),
        );
        assert_eq!(report.figures["a_seconds"].to_bits(), 0.5_f64.to_bits());
        assert!(report.missing.is_empty(), "{report:?}");
    }

    #[test]
    fn one_that_hangs_is_killed_with_all_its_processes() {
        let begin = Instant::now();
        let report = run(&mut shell("sleep 60 & sleep 60"), Duration::from_millis(300));
        assert!(report.missing[EVERYTHING].contains("no end"), "{report:?}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn one_that_fails_says_why() {
        let report = run(&mut shell("echo no such thing >&2; exit 3"), Duration::from_secs(20));
        let reason = &report.missing[EVERYTHING];
        assert!(reason.contains('3') && reason.contains("no such thing"), "{reason}");
    }

    #[test]
    fn what_is_left_behind_is_found_and_killed() {
        let report =
            run(&mut shell("sleep 60 & echo '{\"version\": \"\"}'"), Duration::from_secs(20));
        assert!(report.missing["processes left behind"].starts_with('1'), "{report:?}");
    }
}
