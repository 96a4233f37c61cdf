//! Counts system calls and context switches of an idle pool's threads and workers.
//!
//! The two are counted one after the other, because strace causes context switches. The measuring
//! thread is left out: it sleeps, wakes up and reads, and if it were traced, reading strace's log
//! would add to the log. A count of zero is trusted only from an instrument that has counted
//! something before, so each of them observes one task first.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use brigade::Link;
use brigade_sys::process::{Process, Signal, command};
use brigade_testkit::pause;
use tempfile::NamedTempFile;

use super::{BenchPool, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::number;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, WORKERS)?;
    let mut processes = pool.worker_pids();
    if processes.len() != WORKERS {
        return Err(format!("only {} of {WORKERS} workers are running", processes.len()).into());
    }
    processes.push(std::process::id());
    let window = Duration::from_secs(load.idle_seconds);
    report.attempt("context_switches_count", || {
        during(&pool, window, || context_switches(&processes))
    });
    report.attempt("system_calls_count", || {
        let log = NamedTempFile::new()?;
        let strace = trace(&processes, log.path())?;
        let count = during(&pool, window, || calls(log.path()));
        // strace detaches from the threads and leaves them running. It started with SIGINT blocked.
        strace.signal(Signal::Terminate)?;
        strace.reap()?;
        count
    });
    Ok(())
}

/// Returns the change of `count` over an idle `window`, after checking that it counts one task.
fn during(pool: &BenchPool, window: Duration, count: impl Fn() -> Outcome<usize>) -> Outcome<f64> {
    let before = count()?;
    pause(SETTLING);
    pool.submit(noop, ())?.wait()?;
    pause(SETTLING);
    let begin = count()?;
    if begin == before {
        return Err("the instrument did not count a task".into());
    }
    pause(window);
    Ok(number(count()? - begin))
}

const WORKERS: usize = 64;

/// Ample time for spinning and bookkeeping to end.
const SETTLING: Duration = Duration::from_secs(1);

/// Returns the `/proc` folders of all threads of the processes, except the measuring thread.
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

/// Returns the voluntary and involuntary context switches of all threads.
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

/// Returns the id of the measuring thread: the main thread, whose id is the process id.
fn measuring_thread() -> String {
    std::process::id().to_string()
}

/// Starts strace and waits until it is attached to all threads. It logs each call as it begins.
fn trace(processes: &[u32], log: &Path) -> Outcome<Process> {
    let threads = threads(processes)?;
    let mut strace = command("strace");
    strace.arg("-q").arg("-o").arg(log).stdin(Stdio::null());
    strace.stderr(OwnedFd::from(fs::File::create("/dev/null")?));
    for thread in &threads {
        strace.arg("-p").arg(thread.file_name().ok_or("a thread without an id")?);
    }
    let strace =
        Process::spawn(&mut strace).map_err(|error| format!("cannot start strace: {error}"))?;
    let begin = Instant::now();
    while !threads.iter().all(|thread| is_traced(thread)) {
        if strace.try_reap()?.is_some() || begin.elapsed() > SETTLING * 20 {
            return Err("strace cannot attach to all threads".into());
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

/// Returns the number of calls in the log. A call that strace has split into two lines counts once.
fn calls(log: &Path) -> Outcome<usize> {
    let text = fs::read_to_string(log)?;
    Ok(text.lines().filter(|line| !line.contains(" resumed>")).count())
}
