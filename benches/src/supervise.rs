//! Runs one turn of one contestant with a deadline, and kills the processes that it leaves behind.
//!
//! Every process of a turn inherits a mark in its environment. It finds leftover processes even
//! after they were given to another parent.

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

/// Runs a contestant until it exits or until `bound` has passed, and returns its report.
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

/// Environment variable that all processes of a turn inherit.
const MARK: &str = "BRIGADE_BENCH_TURN";

fn mark() -> String {
    static TURN: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), TURN.fetch_add(1, Ordering::Relaxed))
}

fn report(command: &mut Command, bound: Duration, mark: &str) -> Outcome<Report> {
    // Files instead of pipes, so that no thread has to read while the contestant runs.
    let (mut output, mut errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::from(output.try_clone()?))
        .stderr(Stdio::from(errors.try_clone()?));
    let program = command.get_program().display().to_string();
    // In this process's group, so that Ctrl-C in a terminal reaches it too.
    let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
    let status = wait(&mut child, bound, mark)?;
    let detail = last_line(&mut errors)?;
    match status {
        None => Err(format!("timed out after {} s{detail}", bound.as_secs()).into()),
        Some(status) if !status.success() => Err(format!("{status}{detail}").into()),
        Some(_) => {
            let text = contents(&mut output)?;
            serde_json::from_str(&text)
                .map_err(|error| format!("invalid report: {error}{detail}").into())
        }
    }
}

/// Waits for the child and reaps it. Returns `None` if it had to be killed.
fn wait(child: &mut Child, bound: Duration, mark: &str) -> Outcome<Option<ExitStatus>> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = now().saturating_add(bound);
    let in_time = wait_readable(&[ended.as_fd()], Some(deadline))?[0];
    if !in_time {
        kill_marked(mark);
        // The mark does not find a child whose environment cannot be read.
        let _ = child.kill();
    }
    let status = child.wait()?;
    Ok(in_time.then_some(status))
}

/// Kills the processes of the turn that do not exit soon after it, and returns their number.
fn left_behind(mark: &str) -> usize {
    let begin = Instant::now();
    loop {
        let left = processes::with_variable(MARK, mark).len();
        if left == 0 || begin.elapsed() > GRACE {
            if left > 0 {
                kill_marked(mark);
            }
            return left;
        }
        pause(Duration::from_millis(20));
    }
}

/// Time for helper processes of Python's pools to notice that their program has exited.
const GRACE: Duration = Duration::from_secs(3);

/// Kills all processes of a turn, including those that are started meanwhile.
fn kill_marked(mark: &str) {
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

/// Returns the last line of standard error, which usually names the cause.
fn last_line(errors: &mut File) -> Outcome<String> {
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
    fn the_report_is_read_from_standard_output() {
        let report = run(
            &mut shell(r#"echo '{"version": "1", "figures": {"a_seconds": 0.5}}'"#),
            Duration::from_secs(20),
        );
        assert_eq!(report.figures["a_seconds"].to_bits(), 0.5_f64.to_bits());
        assert!(report.missing.is_empty(), "{report:?}");
    }

    #[test]
    fn a_hung_contestant_is_killed_with_all_its_processes() {
        let begin = Instant::now();
        let report = run(&mut shell("sleep 60 & sleep 60"), Duration::from_millis(300));
        assert!(report.missing[EVERYTHING].contains("timed out"), "{report:?}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_failure_reports_status_and_standard_error() {
        let report = run(&mut shell("echo no such thing >&2; exit 3"), Duration::from_secs(20));
        let reason = &report.missing[EVERYTHING];
        assert!(reason.contains('3') && reason.contains("no such thing"), "{reason}");
    }

    #[test]
    fn leftover_processes_are_killed_and_reported() {
        let report =
            run(&mut shell("sleep 60 & echo '{\"version\": \"\"}'"), Duration::from_secs(20));
        assert!(report.missing["processes left behind"].starts_with('1'), "{report:?}");
    }
}
