//! The life of one pool.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use brigade::Pool;
use brigade_testkit::{BOUND, LeakCheck, Random, processes, wait_until};

use super::notes::{FOLDER, Notes};
use super::plan::Plan;
use super::submitter::Submitter;
use super::summary::Summary;
use crate::watch::Watch;

/// Deadline and queue deadline of an innocent task. Nothing else ends a task whose frame or outcome
/// a guilty task has hidden.
const LIMIT: Duration = Duration::from_secs(4);

/// Range of task numbers of each thread.
const NUMBERS: u64 = 1 << 32;

/// Memory that the host may take for a round: for tasks in flight, and for whatever garbage can
/// make it take.
const MEMORY: u64 = 300 << 20;

/// Plays the plan and judges the outcomes.
pub(super) fn run(
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let begin = Instant::now();
    let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
    let leaks = LeakCheck::new();
    forget_the_peak();
    let before = processes::resident_memory();
    let cookie = folder.path().to_string_lossy().into_owned();
    let pool = Pool::builder()
        .workers(plan.workers)
        .name("fuzz")
        .link(plan.link.link())
        .stdio(plan.stdio)
        .env(FOLDER, folder.path())
        .message_limit(2 << 20)
        .deadline(LIMIT)
        .queue_deadline(2 * LIMIT)
        .stop_grace(Duration::from_millis(500))
        // Guilty tasks may end any number of workers.
        .restart_budget(u32::MAX, Duration::from_secs(1))
        .quarantine_after(u32::MAX)
        .build()
        .map_err(|error| format!("no pool: {error}"))?;
    let played = play(plan, random, watch, &pool);
    watch.during("the drop of the pool", || drop(pool));
    let (cases, counted) = played?;
    summary.add(counted);
    let notes = Notes::read(folder.path());
    for case in cases {
        case.judge(&notes, plan.retries, summary)?;
    }
    wait_until("the end of what the pool has started", BOUND, || {
        processes::with_variable(FOLDER, &cookie).is_empty()
    });
    leaks.assert_none(BOUND);
    check_memory(before, summary)?;
    summary.rounds += 1;
    summary.longest_round = summary.longest_round.max(begin.elapsed());
    Ok(())
}

fn play(
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    pool: &Pool,
) -> Result<(Vec<super::verdict::Case>, Summary), String> {
    thread::scope(|scope| {
        let submitters = [0, NUMBERS].map(|number| {
            let random = Random::new(random.number());
            let submitter = Submitter {
                pool,
                plan,
                watch,
                random,
                number,
                cases: Vec::new(),
                summary: Summary::default(),
                innocent: Vec::new(),
                guilty: Vec::new(),
            };
            scope.spawn(|| submitter.run())
        });
        let (mut cases, mut summary) = (Vec::new(), Summary::default());
        for submitter in submitters {
            let (more, counted) =
                submitter.join().map_err(|_| "a submitter panicked".to_owned())??;
            cases.extend(more);
            summary.add(counted);
        }
        Ok((cases, summary))
    })
}

/// Checks the memory that the host has taken at most since the peak was forgotten.
pub(super) fn check_memory(before: u64, summary: &mut Summary) -> Result<(), String> {
    let peak = peak_memory();
    summary.peak = summary.peak.max(peak);
    let more = peak.saturating_sub(before);
    if more > MEMORY {
        return Err(format!("the host took {} MiB more at its peak", more >> 20));
    }
    Ok(())
}

/// Resets the peak of resident memory.
pub(super) fn forget_the_peak() {
    // If that fails, the peak of earlier rounds counts, which makes the bound less strict.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kibibytes.unwrap_or_default() << 10
}
