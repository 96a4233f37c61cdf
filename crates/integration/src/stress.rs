//! Random operations on pools, and a ledger of what came of each task.
//!
//! A run is a sequence of rounds, each with a pool of its own: a few submitters submit, cancel, wait and drop,
//! an `intruder` kills and stops workers from outside, and at some moment the pool is shut down in some
//! way. Then the `ledger` is settled: every accepted task has exactly one outcome, and one that fits what
//! the task did and what was done to it. One seed decides everything but the scheduling.
//!
//! With a number of tasks it is one pool instead, and as many tasks (`chaos`).
//!
//! Now and then rounds are played in a child process with adverse [`Surroundings`]: a stderr that nobody reads, subscribers
//! that panic, stops by the terminal.
//!
//! A hang is a failure too: the `watch` ends the process and says what was awaited.

mod chaos;
mod deed;
mod inside;
mod intruder;
mod ledger;
mod plan;
mod round;
mod submitter;
mod surroundings;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade_testkit::{LeakCheck, Random};

use crate::watch::Watch;
pub use ledger::Summary;
pub use surroundings::Surroundings;

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
    /// The only surroundings in which rounds are played; without them, all of them by turns and none most of the time.
    pub surroundings: Option<Surroundings>,
    /// Whether this process is the child that has these surroundings.
    pub inside: bool,
}

/// How often the next rounds are played in a child process, of a hundred times.
const CHILDREN: u64 = 8;

/// How long a child plays.
const CHILD_TIME: Duration = Duration::from_secs(1);

/// Runs rounds until the time is over.
///
/// # Errors
/// What went wrong in the first round that failed.
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
    /// The arguments of the program `stress` that repeat the run in a child process with its surroundings.
    fn arguments(&self) -> Vec<String> {
        let line = format!("{self} --inside");
        line.split(' ').skip(3).map(str::to_owned).collect()
    }
}

impl std::fmt::Display for Settings {
    /// The line that repeats the run.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, time, workers, tasks, journal, surroundings, inside: _ } = self;
        write!(out, "cargo xtask stress --seed {seed} --workers {workers}")?;
        match tasks {
            None => write!(out, " --seconds {}", time.as_secs())?,
            Some(tasks) => write!(out, " --tasks {tasks}")?,
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
