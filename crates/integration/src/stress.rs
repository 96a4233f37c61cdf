//! Random operations on pools, and a ledger of the outcome of each task.
//!
//! A run is a sequence of rounds, each with its own pool: a few submitters submit, cancel, wait and
//! drop, an `intruder` kills and stops workers from outside, and at some moment the pool is shut
//! down in one of the possible ways. Then the `ledger` is settled: every accepted task has exactly
//! one outcome, and that outcome fits what the task did and what was done to it. One seed decides
//! everything but the scheduling.
//!
//! If a number of tasks is given, there is a single pool that gets all of them (`chaos`).
//!
//! Now and then rounds are played in a child process with adverse [`Surroundings`]: a stderr that
//! nobody reads, subscribers that panic, stops by the terminal.
//!
//! A hang is a failure too: the `watch` ends the process and says what was awaited.

mod behavior;
mod chaos;
mod inside;
mod intruder;
mod ledger;
mod plan;
mod round;
mod sampler;
mod submitter;
mod surroundings;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade_testkit::{BOUND, LeakCheck, Random};

use crate::watch::Watch;
use chaos::Chaos;
pub use ledger::Summary;
pub use surroundings::Surroundings;

/// Settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Decides everything but the scheduling.
    pub seed: u64,
    /// No round begins after this time.
    pub time: Duration,
    /// Maximum number of workers of a pool.
    pub workers: usize,
    /// Number of tasks for a single pool, however long they take.
    pub tasks: Option<u64>,
    /// `true` if each of these tasks gets a process of its own.
    pub fresh: bool,
    /// File for the journal of that pool, which is replayed at the end.
    pub journal: Option<PathBuf>,
    /// The only surroundings in which rounds are played. `None` means ordinary ones most of the
    /// time, and all others in turn.
    pub surroundings: Option<Surroundings>,
    /// `true` if this process is the child with these surroundings.
    pub inside: bool,
}

/// Chance, in percent, that rounds are played in a child process next.
const CHILDREN: u64 = 8;

/// Time for which a child plays.
const CHILD_TIME: Duration = Duration::from_secs(1);

/// Runs rounds until the time is over.
///
/// # Errors
/// Returns the problem of the first round that failed.
pub fn run(settings: &Settings) -> Result<Summary, String> {
    match settings.surroundings {
        Some(surroundings) if settings.inside => inside::enter(surroundings)?,
        Some(surroundings) => {
            let mut summary = Summary::default();
            summary.children.insert(surroundings, 1);
            summary.printed = Some(surroundings::play(settings, surroundings)?);
            return Ok(summary);
        }
        None => {}
    }
    let watch = Watch::start(settings.to_string());
    let leaks = LeakCheck::new();
    let mut random = Random::new(settings.seed);
    let mut summary = Summary::default();
    if let Some(tasks) = settings.tasks {
        let journal = settings.journal.as_deref();
        let chaos = Chaos { tasks, workers: settings.workers, is_fresh: settings.fresh, journal };
        summary = chaos::run(&mut random, &chaos, &watch)?;
    } else {
        rounds(settings, &mut random, &watch, &mut summary)?;
    }
    drop(watch);
    leaks.assert_none(BOUND);
    Ok(summary)
}

fn rounds(
    settings: &Settings,
    random: &mut Random,
    watch: &Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let begin = Instant::now();
    while begin.elapsed() < settings.time {
        if settings.surroundings.is_none() && random.chance(CHILDREN) {
            let child = Settings { seed: random.number(), time: CHILD_TIME, ..settings.clone() };
            let surroundings = *random.choose(&Surroundings::ALL);
            surroundings::play(&child, surroundings)?;
            *summary.children.entry(surroundings).or_default() += 1;
        }
        let plan = plan::Plan::new(random, settings.workers, settings.surroundings);
        round::run(&plan, random, watch, summary).map_err(|problem| {
            format!("{problem}\nin round {} with {plan:?}", summary.rounds + 1)
        })?;
    }
    Ok(())
}

impl Settings {
    /// Returns the arguments of the program `stress` that repeat the run in a child process with
    /// its surroundings.
    fn arguments(&self) -> Vec<String> {
        let line = format!("{self} --inside");
        line.split(' ').skip(3).map(str::to_owned).collect()
    }
}

impl std::fmt::Display for Settings {
    /// Writes the line that repeats the run.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, time, workers, tasks, fresh, journal, surroundings, inside: _ } = self;
        write!(out, "cargo xtask stress --seed {seed} --workers {workers}")?;
        match tasks {
            None => write!(out, " --seconds {}", time.as_secs())?,
            Some(tasks) => write!(out, " --tasks {tasks}{}", if *fresh { " --fresh" } else { "" })?,
        }
        if let Some(surroundings) = surroundings {
            write!(out, " --surroundings {surroundings}")?;
        }
        match journal {
            None => Ok(()),
            Some(path) => write!(out, " --journal {}", path.display()),
        }
    }
}
