//! Random operations on pools, and a ledger of what came of each task.
//!
//! A run is a sequence of rounds, each with a pool of its own: a few submitters submit, cancel, wait and drop,
//! an `intruder` kills and stops workers from outside, and at some moment the pool is shut down in some
//! way. Then the `ledger` is settled: every accepted task has exactly one outcome, and one that fits what
//! the task did and what was done to it. One seed decides everything but the scheduling.
//!
//! With a number of tasks it is one pool instead, and as many tasks (`chaos`).
//!
//! A hang is a failure too: the `watch` ends the process and says what was awaited.

mod chaos;
mod deed;
mod intruder;
mod ledger;
mod plan;
mod round;
mod submitter;
mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade_testkit::{LeakCheck, Random};

pub use ledger::Summary;

/// What is run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Decides everything but the scheduling.
    pub seed: u64,
    /// No round begins after this time.
    pub time: Duration,
    /// The most workers of a pool.
    pub workers: usize,
    /// One pool that is given so many tasks, however long that takes.
    pub tasks: Option<u64>,
    /// Where that pool writes its journal, which is replayed in the end.
    pub journal: Option<PathBuf>,
}

/// Runs rounds until the time is over.
///
/// # Errors
/// What went wrong in the first round that failed.
pub fn run(settings: &Settings) -> Result<Summary, String> {
    let watch = watch::Watch::start(settings.to_string());
    let leaks = LeakCheck::new();
    let mut random = Random::new(settings.seed);
    let mut summary = Summary::default();
    if let Some(tasks) = settings.tasks {
        let journal = settings.journal.as_deref();
        summary = chaos::run(&mut random, tasks, settings.workers, journal, &watch)?;
    } else {
        rounds(settings, &mut random, &watch, &mut summary)?;
    }
    drop(watch);
    leaks.assert_none(Duration::from_secs(5));
    Ok(summary)
}

fn rounds(
    settings: &Settings,
    random: &mut Random,
    watch: &watch::Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < settings.time {
        let plan = plan::Plan::new(random, settings.workers);
        round::run(&plan, random, watch, summary).map_err(|problem| {
            format!("{problem}\nin round {} with {plan:?}", summary.rounds + 1)
        })?;
    }
    Ok(())
}

impl std::fmt::Display for Settings {
    /// The line that repeats the run.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, time, workers, tasks, journal } = self;
        write!(out, "cargo xtask stress --seed {seed} --workers {workers}")?;
        match tasks {
            None => write!(out, " --seconds {}", time.as_secs())?,
            Some(tasks) => write!(out, " --tasks {tasks}")?,
        }
        match journal {
            None => Ok(()),
            Some(path) => write!(out, " --journal {}", path.display()),
        }
    }
}
