//! Random operations on pools, and a ledger of what came of each task.
//!
//! A run is a sequence of rounds, each with a pool of its own: a few submitters submit, cancel, wait and drop,
//! an `intruder` kills and stops workers from outside, and at some moment the pool is shut down in some
//! way. Then the `ledger` is settled: every accepted task has exactly one outcome, and one that fits what
//! the task did and what was done to it. One seed decides everything but the scheduling.
//!
//! A hang is a failure too: the `watch` ends the process and says what was awaited.

mod deed;
mod intruder;
mod ledger;
mod plan;
mod round;
mod submitter;
mod watch;

use std::time::{Duration, Instant};

use brigade_testkit::{LeakCheck, Random};

pub use ledger::Summary;

/// What is run.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Decides everything but the scheduling.
    pub seed: u64,
    /// No round begins after this time.
    pub time: Duration,
    /// The most workers of a pool.
    pub workers: usize,
}

/// Runs rounds until the time is over.
///
/// # Errors
/// What went wrong in the first round that failed.
pub fn run(settings: Settings) -> Result<Summary, String> {
    let watch = watch::Watch::start(settings.to_string());
    let leaks = LeakCheck::new();
    let begin = Instant::now();
    let mut random = Random::new(settings.seed);
    let mut summary = Summary::default();
    while begin.elapsed() < settings.time {
        let plan = plan::Plan::new(&mut random, settings.workers);
        round::run(&plan, &mut random, &watch, &mut summary).map_err(|problem| {
            format!("{problem}\nin round {} with {plan:?}", summary.rounds + 1)
        })?;
    }
    drop(watch);
    leaks.assert_none(Duration::from_secs(5));
    Ok(summary)
}

impl std::fmt::Display for Settings {
    /// The line that repeats the run.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, time, workers } = self;
        write!(
            out,
            "cargo xtask stress --seed {seed} --seconds {} --workers {workers}",
            time.as_secs()
        )
    }
}
