//! One pool's life.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Pool, Shutdown};
use brigade_testkit::{Random, pause};

use super::deed::MESSAGE_LIMIT;
use super::intruder::{self, Intrusions};
use super::ledger::{Circumstances, Summary};
use super::plan::{Ending, Mix, Plan};
use super::submitter::{Account, Submitter};
use super::watch::Watch;

pub(super) const GRACE: Duration = Duration::from_millis(200);

/// Plays the plan and settles the ledger.
pub(super) fn run(
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let mut builder = Pool::builder();
    if let Some(timeout) = plan.idle_timeout {
        builder = builder.idle_timeout(timeout);
    }
    if let Some(tasks) = plan.max_tasks {
        builder = builder.max_tasks_per_worker(tasks);
    }
    if let Some(age) = plan.max_age {
        builder = builder.max_worker_age(age);
    }
    let pool = builder
        .workers(plan.workers)
        .min_workers(plan.min_workers)
        .name("stress")
        .queue_limit(plan.queue_limit)
        .message_limit(MESSAGE_LIMIT)
        .stop_grace(GRACE)
        // The intruder's victims may all be without a task.
        .restart_budget(u32::MAX, Duration::from_secs(1))
        .build()
        .map_err(|error| format!("no pool: {error}"))?;
    let intrusions = Intrusions::default();
    let accounts = play(plan, random, watch, &pool, &intrusions)?;
    watch.during("the drop of the pool", || drop(pool));
    let timed = matches!(plan.ending, Ending::Within(..));
    let circumstances = Circumstances {
        stopped_any: intrusions.stopped() > 0,
        // After its timeout every ending becomes stronger.
        may_cancel: timed,
        may_kill: timed,
        killed: intrusions.killed(),
    };
    for account in accounts {
        summary.settle(account, &circumstances)?;
    }
    summary.rounds += 1;
    summary.killed += circumstances.killed.len() as u64;
    summary.stopped += intrusions.stopped();
    Ok(())
}

fn play(
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    pool: &Pool,
    intrusions: &Intrusions,
) -> Result<Vec<Account>, String> {
    let (closing, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        // Set also when this function fails, or the scope would wait for the intruder for ever.
        let _done = SetAtEnd(&done);
        let own = Random::new(random.number());
        scope.spawn(|| intruder::run(pool, own, plan.intrusions, &done, intrusions));
        let submitters: Vec<_> = (0..plan.submitters)
            .map(|_| {
                let submitter = Submitter {
                    pool,
                    random: Random::new(random.number()),
                    operations: plan.operations,
                    mix: Mix::WILD,
                    books: None,
                    may_hang: plan.tasks_may_hang(),
                    resizes: plan.resizes.then_some(plan.workers),
                    closing: &closing,
                    watch,
                };
                scope.spawn(|| submitter.run())
            })
            .collect();
        if let Some(moment) = plan.moment {
            pause(moment);
            closing.store(true, Ordering::Release);
            end(plan, watch, pool)?;
        }
        let mut accounts = Vec::new();
        for submitter in submitters {
            accounts.push(submitter.join().map_err(|_| "a submitter panicked".to_owned())??);
        }
        closing.store(true, Ordering::Release);
        end(plan, watch, pool)?;
        Ok(accounts)
    })
}

/// Ends the pool as planned; a second time it has ended already. A pool that is to be dropped is left as it is.
fn end(plan: &Plan, watch: &Watch, pool: &Pool) -> Result<(), String> {
    let begin = Instant::now();
    let ended =
        watch.during(&format!("the end of the pool: {:?}", plan.ending), || match plan.ending {
            Ending::Drop => None,
            Ending::Drain => Some((pool.shutdown(), None)),
            Ending::Within(Shutdown::Kill, timeout) => {
                Some((pool.shutdown_with(Shutdown::Kill, timeout), Some(Duration::ZERO)))
            }
            Ending::Within(mode, timeout) => {
                Some((pool.shutdown_with(mode, timeout), Some(timeout)))
            }
        });
    let Some((report, bound)) = ended else { return Ok(()) };
    let report = report.map_err(|error| format!("the pool did not end well: {error}"))?;
    // Twice the grace, and as much as a busy machine may need.
    let bound = bound.map(|bound| bound + 2 * GRACE + Duration::from_secs(5));
    if bound.is_some_and(|bound| begin.elapsed() > bound) {
        return Err(format!(
            "the shutdown took {:?} instead of {bound:?}: {report:?}",
            begin.elapsed()
        ));
    }
    Ok(())
}

/// Set also when what sets it fails or panics, or others would go on for ever.
pub(super) struct SetAtEnd<'a>(pub(super) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
