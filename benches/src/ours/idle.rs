//! A pool with nothing to do: what the kernel counts for its threads and its workers.
//!
//! Context switches and system calls are counted one after the other, because strace causes context
//! switches. The thread that measures is left out: it sleeps, wakes up and reads, and if it were traced
//! it could not even read strace's log to the end. A zero is believed only of an instrument that was
//! seen to count: each is shown one task first.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use brigade::Link;
use brigade_sys::process::{Process, Signal, command};
use brigade_testkit::pause;
use tempfile::NamedTempFile;

use super::{Crew, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::number;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let crew = Crew::warm(link, WORKERS)?;
    let mut processes = crew.worker_pids();
    if processes.len() != WORKERS {
        return Err(format!("{} of {WORKERS} workers are there", processes.len()).into());
    }
    processes.push(std::process::id());
    let window = Duration::from_secs(load.idle_seconds);
    report.attempt("context_switches_count", || {
        during(&crew, window, || context_switches(&processes))
    });
    report.attempt("system_calls_count", || {
        let log = NamedTempFile::new()?;
        let strace = trace(&processes, log.path())?;
        let count = during(&crew, window, || calls(log.path()));
        // Asked to end, it lets go of the threads as they were.
        strace.signal(Signal::Interrupt)?;
        strace.reap()?;
        count
    });
    Ok(())
}

/// What an instrument counts while nothing is to be done, after it has counted something.
fn during(crew: &Crew, window: Duration, count: impl Fn() -> Outcome<usize>) -> Outcome<f64> {
    let before = count()?;
    pause(SETTLING);
    crew.submit(noop, ())?.wait()?;
    pause(SETTLING);
    let begin = count()?;
    if begin == before {
        return Err("not even a task was counted".into());
    }
    pause(window);
    Ok(number(count()? - begin))
}

const WORKERS: usize = 64;

/// Spinning and the last bookkeeping end well within this.
const SETTLING: Duration = Duration::from_secs(1);

/// All threads of the processes but the one that asks, as their folders below `/proc`.
fn threads(processes: &[u32]) -> Outcome<Vec<PathBuf>> {
    let mut threads = Vec::new();
    for process in processes {
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            threads.push(entry?.path());
        }
    }
    threads.retain(|thread| !thread.ends_with(measuring_thread()));
    Ok(threads)
}

/// Of all threads, whether they slept or were displaced.
fn context_switches(processes: &[u32]) -> Outcome<usize> {
    let mut sum = 0;
    for thread in threads(processes)? {
        let status = fs::read_to_string(thread.join("status"))?;
        for line in status.lines() {
            if let Some((_, count)) = line.split_once("voluntary_ctxt_switches:") {
                sum += count.trim().parse::<usize>()?;
            }
        }
    }
    Ok(sum)
}

/// Contestants measure on their main thread, whose number is the process's.
fn measuring_thread() -> String {
    std::process::id().to_string()
}

/// A strace that is attached to all threads. It logs each call as it begins.
fn trace(processes: &[u32], log: &Path) -> Outcome<Process> {
    let threads = threads(processes)?;
    let mut strace = command("strace");
    strace.arg("-q").arg("-o").arg(log).stdin(Stdio::null());
    strace.stderr(OwnedFd::from(fs::File::create("/dev/null")?));
    for thread in &threads {
        strace.arg("-p").arg(thread.file_name().ok_or("a thread without a number")?);
    }
    let strace =
        Process::spawn(&mut strace).map_err(|error| format!("strace does not start: {error}"))?;
    let begin = Instant::now();
    while !threads.iter().all(|thread| is_traced(thread)) {
        if strace.try_reap()?.is_some() || begin.elapsed() > SETTLING * 20 {
            return Err("strace could not attach to all threads".into());
        }
        pause(Duration::from_millis(20));
    }
    Ok(strace)
}

fn is_traced(thread: &Path) -> bool {
    let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// Lines of the log; a call whose line was cut by another one's has two, of which one counts.
fn calls(log: &Path) -> Outcome<usize> {
    let text = fs::read_to_string(log)?;
    Ok(text.lines().filter(|line| !line.contains(" resumed>")).count())
}
