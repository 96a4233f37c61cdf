//! Runs the attempts, and checks after each that nobody else has noticed.

use std::time::Duration;

use brigade::{Limits, Link, Pool, Sandbox, Stdio};
use brigade_testkit::processes::is_alive;

use crate::attempt::{Attempt, Verdict, judge};
use crate::targets::{SECRET, Targets};
use crate::{bombs, files, kernel, processes, protocol};

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
    [files::ATTEMPTS, processes::ATTEMPTS, kernel::ATTEMPTS, bombs::ATTEMPTS, protocol::ATTEMPTS]
        .concat()
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
    let pool = hostile_pool(settings, &targets)?;
    // It lies in memory while the attempts run.
    let argument = SECRET.as_bytes().repeat(10_000);
    let mut summary = Summary::default();
    for (index, it) in all().into_iter().enumerate() {
        if !it.name.contains(&settings.only) {
            continue;
        }
        let kept = pool.submit(keeps, argument.clone())?;
        let task = pool.task(attempt).label(it.name).deadline(DEADLINE);
        let mut handle = task.submit((index, targets.clone()))?;
        let outcome = handle.wait_timeout(2 * BOUND).ok_or("an attempt has no outcome")?;
        let mut end = judge(it.ruins, settings.isolate, outcome);
        if let Some(damage) = damage(&targets, &neighbor, &pool) {
            end = Verdict::Escaped(damage);
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
    Ok(summary)
}

fn hostile_pool(settings: &Settings, targets: &Targets) -> Result<Pool, brigade::PoolError> {
    let mut sandbox = Sandbox::strict().write(&targets.allowed).read(&targets.readable);
    if settings.isolate {
        sandbox = sandbox.isolate();
    }
    let limits = Limits::new()
        .memory(64 << 20)
        .cpu_time(Duration::from_secs(1))
        .open_files(64)
        .file_size(16 << 20)
        .core_size(0);
    let build = |limits| {
        let pool =
            Pool::builder().workers(1).name("hostile").link(settings.link).stdio(Stdio::Null);
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
