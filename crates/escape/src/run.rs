//! Runs the attempts, and checks after each that nobody else has noticed.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use brigade::{Limits, Link, Pool, Sandbox, Stdio, TaskError};
use brigade_testkit::processes::is_alive;

use crate::attempt::{Attempt, Verdict, judge};
use crate::targets::{SECRET, Targets};
use crate::{bombs, files, kernel, levels, processes, protocol, streams};

/// Settings of a run.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The link between host and workers.
    pub(crate) link: Link,
    /// The workers have namespaces of their own.
    pub(crate) isolate: bool,
    /// Runs only the attempts whose name has this part.
    pub(crate) only: String,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// The attempts with their ends, in order.
    pub(crate) ends: Vec<(&'static str, Verdict)>,
}

impl Summary {
    /// Returns the number of attempts that were not refused.
    pub(crate) fn escaped(&self) -> usize {
        self.ends.iter().filter(|(_, end)| matches!(end, Verdict::Escaped(_))).count()
    }
}

/// Longer than an innocent task takes.
const BOUND: Duration = Duration::from_secs(20);

/// Longer than any attempt takes that the host does not have to end.
const DEADLINE: Duration = Duration::from_secs(5);

/// Runs one attempt.
fn attempt((index, targets): (usize, Targets)) -> Result<i32, String> {
    (all()[index].run)(&targets)
}

fn innocent(number: u64) -> u64 {
    number * number
}

/// Keeps an argument that others must not see.
fn keeps(argument: Vec<u8>) -> usize {
    argument.len()
}

/// Returns all attempts.
fn all() -> Vec<Attempt> {
    let strict = [
        files::ATTEMPTS,
        processes::ATTEMPTS,
        kernel::ATTEMPTS,
        bombs::ATTEMPTS,
        protocol::ATTEMPTS,
    ];
    [&strict.concat(), streams::ATTEMPTS].concat()
}

/// Runs all attempts.
///
/// # Errors
/// If the pools cannot be built or the targets cannot be made.
pub(crate) fn run(settings: &Settings) -> Result<Summary, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let host_secret = SECRET.to_owned();
    let neighbor = Pool::builder().workers(1).link(settings.link).build()?;
    neighbor.warm_up()?;
    let sibling = neighbor.worker_pids()[0];
    let targets = Targets::make(folder.path(), &host_secret, sibling)?;
    let mut summary = Summary::default();
    let pool = hostile_pool(strict(settings, &targets), settings, Stdio::Null)?;
    try_all(settings, &targets, &neighbor, &pool, |it| !is_of_streams(it), &mut summary)?;
    let below = |sandbox: Sandbox| sandbox.write(&targets.allowed);
    for (sandbox, names) in [
        (strict(settings, &targets), &[][..]),
        (below(Sandbox::read_only()), &[levels::AT_READ_ONLY, levels::AT_NO_NETWORK].concat()),
        (below(Sandbox::no_network()), levels::AT_NO_NETWORK),
    ] {
        let pool = hostile_pool(sandbox.connect(9), settings, Stdio::Inherit)?;
        let is_made = |it: &Attempt| {
            is_of_streams(it) || levels::WITH_PORTS.contains(&it.name) || names.contains(&it.name)
        };
        try_all(settings, &targets, &neighbor, &pool, is_made, &mut summary)?;
    }
    // With namespaces of its own, a strict worker has no `/proc`.
    if !settings.isolate {
        let sandbox = strict(settings, &targets).read("/proc/self");
        let pool = hostile_pool(sandbox, settings, Stdio::Null)?;
        let is_made = |it: &Attempt| it.name.contains("our entries in /proc");
        try_all(settings, &targets, &neighbor, &pool, is_made, &mut summary)?;
    }
    Ok(summary)
}

fn is_of_streams(attempt: &Attempt) -> bool {
    streams::ATTEMPTS.iter().any(|it| it.name == attempt.name)
}

/// Makes the attempts for which `is_made` returns `true` in a pool.
fn try_all(
    settings: &Settings,
    targets: &Targets,
    neighbor: &Pool,
    pool: &Pool,
    is_made: impl Fn(&Attempt) -> bool,
    summary: &mut Summary,
) -> Result<(), Box<dyn std::error::Error>> {
    // It lies in memory while the attempts run.
    let argument = SECRET.as_bytes().repeat(10_000);
    let mut output = output()?;
    for (index, it) in all().into_iter().enumerate() {
        if !it.name.contains(&settings.only) || !is_made(&it) {
            continue;
        }
        let kept = pool.submit(keeps, argument.clone())?;
        let task = pool.task(attempt).label(it.name).deadline(DEADLINE);
        let mut handle = task.submit((index, targets.clone()))?;
        let outcome = handle.wait_timeout(2 * BOUND).ok_or("an attempt has no outcome")?;
        let is_reported = outcome.as_ref().err().is_none_or(|error| is_reported(error, targets));
        let mut end = judge(it.ruins, settings.isolate, outcome);
        if !is_reported {
            end = Verdict::Escaped("the host opens what a module names".to_owned());
        }
        if let Some(damage) = damage(targets, neighbor, pool) {
            end = Verdict::Escaped(damage);
        }
        let before = std::mem::replace(&mut output, self::output()?);
        if before.0 != output.0 || before.1 > output.1 || before.2 > output.2 {
            end = Verdict::Escaped("the host's standard output has changed".to_owned());
        }
        if kept.wait()? != argument.len() {
            end = Verdict::Escaped("another task got a wrong argument".to_owned());
        }
        // The rule of the sandbox is for this very folder.
        for entry in std::fs::read_dir(&targets.allowed)?.flatten() {
            let _ = std::fs::remove_file(entry.path());
        }
        summary.ends.push((it.name, end));
    }
    Ok(())
}

/// Returns the flags of standard output, and its position and length, which only grow.
fn output() -> std::io::Result<(String, u64, u64)> {
    let state = std::fs::read_to_string("/proc/self/fdinfo/1")?;
    let line = |name| state.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let position = line("pos:").trim().parse().unwrap_or(0);
    Ok((line("flags:").to_owned(), position, std::fs::metadata("/proc/self/fd/1")?.len()))
}

/// Returns `true` if the whole report of an error comes in time. A host that waits for the pipe is
/// released.
fn is_reported(error: &TaskError, targets: &Targets) -> bool {
    let (send, receive) = mpsc::channel();
    let error = error.clone();
    thread::spawn(move || send.send(format!("{error:#}")));
    let is_reported = receive.recv_timeout(BOUND).is_ok();
    if !is_reported {
        drop(std::fs::File::options().write(true).open(&targets.pipe));
    }
    is_reported
}

/// Returns the sandbox from which most attempts are made.
fn strict(settings: &Settings, targets: &Targets) -> Sandbox {
    let readable = [&targets.readable, &targets.module];
    let sandbox = Sandbox::strict().write(&targets.allowed);
    let sandbox = readable.into_iter().fold(sandbox, Sandbox::read);
    if settings.isolate { sandbox.isolate() } else { sandbox }
}

fn hostile_pool(
    sandbox: Sandbox,
    settings: &Settings,
    stdio: Stdio,
) -> Result<Pool, brigade::PoolError> {
    let limits = Limits::new()
        .memory(64 << 20)
        .cpu_time(Duration::from_secs(1))
        .open_files(64)
        .file_size(16 << 20)
        .core_size(0);
    let build = |limits| {
        let pool = Pool::builder().workers(1).name("hostile").link(settings.link).stdio(stdio);
        pool.sandbox(sandbox.clone()).limits(limits).restart_budget(100_000, BOUND).build()
    };
    // Where there is no control group, threads are limited by memory.
    build(limits.processes(32)).or_else(|_| build(limits))
}

/// Returns what an attempt has done to others.
fn damage(targets: &Targets, neighbor: &Pool, pool: &Pool) -> Option<String> {
    let asked = |pool: &Pool| {
        let answer = pool.submit(innocent, 9).ok()?.wait_timeout(BOUND)?;
        answer.ok().filter(|answer| *answer == 81)
    };
    if asked(neighbor).is_none() || !is_alive(targets.sibling) {
        return Some("the worker of another pool is gone".to_owned());
    }
    // An attempt that ruins its worker ends it with the next task at the latest.
    if asked(pool).or_else(|| asked(pool)).is_none() {
        return Some("the next task did not run".to_owned());
    }
    targets.damage()
}
