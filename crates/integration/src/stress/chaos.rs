//! One pool and very many tasks, with every fault that is possible.
//!
//! Accounts are settled as the run goes on, because nothing may grow with the number of tasks:
//! neither here nor in the pool, whose memory is measured at regular intervals.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use brigade::{Pool, journal};
use brigade_testkit::{Random, processes};

use super::behavior::MESSAGE_LIMIT;
use super::intruder::{self, Intrusions};
use super::ledger::{Circumstances, Summary};
use super::plan::Mix;
use super::round::{GRACE, SetAtEnd};
use super::sampler;
use super::submitter::{Account, Submitter};
use crate::watch::Watch;

/// Number of submitting threads.
const SUBMITTERS: u64 = 3;

/// Looks of a thousand that the intruder uses: about ten processes a second.
const INTRUSIONS: u64 = 40;

/// Number of tasks for which there must be a snapshot, up to a thousand snapshots.
const TASKS_PER_SNAPSHOT: u64 = 100;

/// Number of measurements of the memory.
const SAMPLES: u64 = 20;

/// Bytes by which the memory in the second half may exceed that in the first: three times the
/// difference in 20 runs of a million tasks, and some bytes per task.
const SLACK: u64 = 6 << 20;

/// The accounts of all submitters so far.
pub(super) struct Books<'a> {
    intrusions: &'a Intrusions,
    ledger: Mutex<Ledger>,
    tasks: u64,
    accepted: AtomicU64,
}

#[derive(Default)]
struct Ledger {
    summary: Summary,
    problem: Option<String>,
    /// Memory of the host in bytes, at regular intervals.
    memory: Vec<u64>,
}

impl Books<'_> {
    /// Counts a task that a pool has accepted.
    pub(super) fn one_more(&self) {
        let accepted = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        if accepted.is_multiple_of((self.tasks / SAMPLES).max(1)) {
            self.ledger().memory.push(processes::resident_memory());
        }
    }

    /// Returns `false` once there were enough tasks, or something went wrong.
    pub(super) fn goes_on(&self) -> bool {
        self.accepted.load(Ordering::Relaxed) < self.tasks
    }

    /// Settles the closed part of an account.
    pub(super) fn settle(&self, account: &mut Account) {
        let part = Account {
            closed: std::mem::take(&mut account.closed),
            dropped: std::mem::take(&mut account.dropped),
            refused: std::mem::take(&mut account.refused),
            open: Vec::new(),
        };
        self.enter(part);
    }

    fn enter(&self, part: Account) {
        let circumstances = Circumstances {
            stopped_any: self.intrusions.stopped() > 0,
            may_cancel: false,
            may_kill: false,
            killed: self.intrusions.killed(),
            surroundings: None,
        };
        let mut ledger = self.ledger();
        if let Err(problem) = ledger.summary.settle(part, &circumstances) {
            ledger.problem.get_or_insert(problem);
            drop(ledger);
            self.accepted.fetch_max(self.tasks, Ordering::Relaxed);
        }
    }

    fn ledger(&self) -> std::sync::MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run of chaos.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chaos<'a> {
    pub(super) tasks: u64,
    pub(super) workers: usize,
    /// Each task gets a process of its own.
    pub(super) is_fresh: bool,
    pub(super) journal: Option<&'a Path>,
}

/// Plays until a pool has accepted the tasks, and drains it.
pub(super) fn run(
    random: &mut Random,
    chaos: &Chaos<'_>,
    watch: &Watch,
) -> Result<Summary, String> {
    let Chaos { tasks, workers, is_fresh, journal } = *chaos;
    let mut builder = Pool::builder();
    if let Some(path) = journal {
        builder = builder.journal(path);
    }
    builder = if is_fresh {
        builder.fresh_process_per_task()
    } else {
        builder.max_tasks_per_worker(5_000).max_worker_age(Duration::from_secs(2))
    };
    let pool = builder
        .workers(workers)
        .name("chaos")
        .queue_limit(500)
        .message_limit(MESSAGE_LIMIT)
        .stop_grace(GRACE)
        // All victims of the intruder may be without a task.
        .restart_budget(u32::MAX, Duration::from_secs(1))
        .build()
        .map_err(|error| format!("no pool: {error}"))?;
    let intrusions = Intrusions::default();
    let books = Books {
        intrusions: &intrusions,
        ledger: Mutex::default(),
        tasks,
        accepted: AtomicU64::new(0),
    };
    let (open, snapshots) = play(random, workers, watch, &pool, &books)?;
    let needed = (tasks / TASKS_PER_SNAPSHOT).min(1_000);
    if snapshots < needed {
        return Err(format!("only {snapshots} snapshots were taken, less than {needed}"));
    }
    watch.during("the drop of the pool", || drop(pool));
    for account in open {
        books.enter(account);
    }
    let Ledger { mut summary, problem, memory } =
        books.ledger.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(problem) = problem {
        return Err(problem);
    }
    summary.rounds += 1;
    summary.killed += intrusions.killed().len() as u64;
    summary.stopped += intrusions.stopped();
    summary.snapshots += snapshots;
    summary.memory = memory;
    stays_flat(&summary.memory)?;
    if let Some(path) = journal {
        summary.replayed = Some(replay(path)?);
    }
    Ok(summary)
}

/// Returns the accounts that are still open after the pool was drained, and the number of snapshots
/// that were taken.
fn play(
    random: &mut Random,
    workers: usize,
    watch: &Watch,
    pool: &Pool,
    books: &Books<'_>,
) -> Result<(Vec<Account>, u64), String> {
    let (closing, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let _done = SetAtEnd(&done);
        let own = Random::new(random.number());
        scope.spawn(|| intruder::run(pool, own, (INTRUSIONS, true), &done, books.intrusions));
        let own = Random::new(random.number());
        let sampler = scope.spawn(|| sampler::run(pool, own, &done));
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|_| {
                let submitter = Submitter {
                    pool,
                    random: Random::new(random.number()),
                    operations: u64::MAX,
                    mix: Mix::CALM,
                    books: Some(books),
                    may_hang: false,
                    resizes: Some(workers),
                    closing: &closing,
                    watch,
                    blocking_wakers: false,
                    may_break: false,
                };
                scope.spawn(|| submitter.run())
            })
            .collect();
        let mut accounts = Vec::new();
        for submitter in submitters {
            accounts.push(submitter.join().map_err(|_| "a submitter panicked".to_owned())??);
        }
        closing.store(true, Ordering::Release);
        watch
            .during("the drain", || pool.shutdown())
            .map_err(|error| format!("the pool did not end well: {error}"))?;
        done.store(true, Ordering::Release);
        let snapshots = sampler.join().map_err(|_| "the sampler panicked".to_owned())??;
        Ok((accounts, snapshots))
    })
}

fn stays_flat(memory: &[u64]) -> Result<(), String> {
    let (first, second) = memory.split_at(memory.len() / 2);
    match (first.iter().max(), second.iter().max()) {
        (Some(first), Some(second)) if *second > first + SLACK => {
            Err(format!("the host's memory has grown from {first} to {second} bytes: {memory:?}"))
        }
        _ => Ok(()),
    }
}

/// Repeats the pool's decisions without the pool. Returns the number of events.
fn replay(path: &Path) -> Result<u64, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let played = journal::replay(file)
        .map_err(|error| format!("the journal does not play as it was recorded: {error}"))?;
    if played.torn {
        return Err(format!("the journal is not whole: {played:?}"));
    }
    Ok(played.events)
}
