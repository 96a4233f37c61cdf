//! The life of one pool.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Pool, PoolError, Shutdown, Start};
use brigade_sys::fork::Origin;
use brigade_testkit::{Random, faults, pause};
use brigade_testkit_sys::misdeeds;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::behavior::MESSAGE_LIMIT;
use super::inside::{FewDescriptors, publish};
use super::intruder::{self, Intrusions};
use super::ledger::{Circumstances, Summary};
use super::plan::{Ending, Mix, Plan};
use super::sampler;
use super::submitter::{Account, Submitter};
use super::surroundings::Surroundings;
use crate::scribble::{Scribble, Target, Then, scribbles};
use crate::watch::Watch;

pub(super) const GRACE: Duration = Duration::from_millis(200);

/// Plays the plan and settles the ledger.
pub(super) fn run(
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let mut builder = Pool::builder();
    // A pool without `min_workers` starts workers when there is work.
    let min_workers = if plan.short_tasks.is_some() { 0 } else { plan.min_workers };
    if let Some(timeout) = plan.idle_timeout {
        builder = builder.idle_timeout(timeout);
    }
    if let Some(tasks) = plan.max_tasks {
        builder = builder.max_tasks_per_worker(tasks);
    }
    if let Some(age) = plan.max_age {
        builder = builder.max_worker_age(age);
    }
    if plan.is_in(Surroundings::DroppedPrivileges) {
        builder = builder.initializer(drops_privileges, ());
    }
    let pool = builder
        .workers(plan.workers)
        .min_workers(min_workers)
        .spare_workers(if plan.short_tasks.is_some() { 0 } else { plan.spare_workers })
        .start(plan.start)
        .name("stress")
        .queue_limit(plan.queue_limit)
        .message_limit(MESSAGE_LIMIT)
        .stop_grace(GRACE)
        // All victims of the intruder may be without a task.
        .restart_budget(u32::MAX, Duration::from_secs(1))
        .build()
        .map_err(|error| format!("no pool: {error}"))?;
    let pool = Arc::new(pool);
    let published = publish(&pool);
    if let Some(short) = plan.short_tasks {
        long_after_short(short, random, watch, &pool)?;
    }
    let intrusions = Intrusions::default();
    let (accounts, snapshots) = play(plan, random, watch, &pool, &intrusions)?;
    drop(published);
    watch.during("the drop of the pool", || drop(alone(pool)));
    let timed = matches!(plan.ending, Ending::Within(..));
    let circumstances = Circumstances {
        stopped_any: intrusions.stopped() > 0,
        // After its timeout every shutdown escalates.
        may_cancel: timed,
        may_kill: timed,
        killed: intrusions.killed(),
        surroundings: plan.surroundings,
    };
    for account in accounts {
        summary.settle(account, &circumstances)?;
    }
    summary.rounds += 1;
    summary.snapshots += snapshots;
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
) -> Result<(Vec<Account>, u64), String> {
    let (closing, done) = (AtomicBool::new(false), AtomicBool::new(false));
    // Without a server, a pool that only forks cannot start workers.
    let intrude = (plan.intrusions, plan.start != Start::Fork);
    thread::scope(|scope| {
        // Also set when this function fails; else the scope would wait for the intruder forever.
        let _done = SetAtEnd(&done);
        let own = Random::new(random.number());
        scope.spawn(|| intruder::run(pool, own, intrude, &done, intrusions));
        let own = Random::new(random.number());
        scope.spawn(|| disturb(plan, pool, own, &done, watch));
        let own = Random::new(random.number());
        let sampler = scope.spawn(|| sampler::run(pool, own, &done));
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
                    blocking_wakers: plan.is_in(Surroundings::BlockingWakers),
                    may_break: plan.is_in(Surroundings::FewDescriptors),
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
        done.store(true, Ordering::Release);
        let snapshots = sampler.join().map_err(|_| "the sampler panicked".to_owned())??;
        Ok((accounts, snapshots))
    })
}

/// An initializer that gives its worker other privileges than the host's.
fn drops_privileges((): ()) {
    misdeeds::drop_privileges();
}

/// Runs short tasks one by one, and then a task that hangs, which must not hold up those after it.
fn long_after_short(
    short: u64,
    random: &mut Random,
    watch: &Watch,
    pool: &Pool,
) -> Result<(), String> {
    let submit = |what, time| {
        pool.submit(faults::spins, time).map_err(|error| format!("{what} was refused: {error}"))
    };
    for _ in 0..short {
        let handle = submit("a short task", random.within(0..100))?;
        let outcome = watch.during("a short task", || handle.wait());
        outcome.map_err(|error| format!("a short task failed: {error}"))?;
    }
    let hanging = pool.submit(faults::hangs, ()).map_err(|error| error.to_string())?;
    let others: Vec<_> = (0..random.within(1..20))
        .map(|_| submit("a task behind one that hangs", 1_000))
        .collect::<Result<_, _>>()?;
    for handle in others {
        let outcome = watch.during("a task behind one that hangs", || handle.wait());
        outcome.map_err(|error| format!("a task behind one that hangs failed: {error}"))?;
    }
    hanging.kill();
    let outcome = watch.during("the task that hung", || hanging.wait());
    match outcome {
        Err(_) => Ok(()),
        Ok(()) => Err("a task that hangs has returned".to_owned()),
    }
}

/// Disturbs the process as its surroundings require, until `done`.
fn disturb(plan: &Plan, pool: &Pool, mut random: Random, done: &AtomicBool, watch: &Watch) {
    while !done.load(Ordering::Acquire) {
        match plan.surroundings {
            Some(Surroundings::FewDescriptors) => {
                let few = FewDescriptors::allow(random.within(0..24));
                pause(random.below(Duration::from_millis(5)));
                drop(few);
            }
            Some(Surroundings::Scribbler) => scribble(pool, &mut random),
            Some(Surroundings::Forks) => watch.during("the end of a copy", || copy(pool)),
            _ => return,
        }
        pause(random.below(Duration::from_millis(20)));
    }
}

/// Submits a task that writes over the memory that its worker shares with the host.
fn scribble(pool: &Pool, random: &mut Random) {
    let Ok(journal) = tempfile::NamedTempFile::new() else { return };
    let order = Scribble {
        target: *random.choose(&[
            Target::Positions,
            Target::Bells,
            Target::SlotTable,
            Target::Messages,
            Target::Everything,
        ]),
        then: *random.choose(&[Then::Returns, Then::Dawdles, Then::Aborts, Then::Hangs]),
        seed: random.number(),
        journal: journal.path().to_owned(),
    };
    let task = pool.task(scribbles).deadline(Duration::from_millis(200));
    if let Ok(handle) = task.try_submit(order) {
        // Any outcome is right, as long as there is one; a pool that ends yields one as well.
        drop(handle.wait());
    }
}

/// Makes a copy of this process that uses the pool, and waits for its end.
fn copy(pool: &Pool) {
    let origin = Origin::here();
    let Ok(copy) = misdeeds::fork() else { return };
    let Some(copy) = copy.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) else {
        let refused = pool.try_submit(faults::spins, 1).is_err()
            && pool.shutdown_with(Shutdown::Kill, GRACE).is_err()
            && pool.map(faults::spins, 0..3).all(|item| item.is_err());
        if !refused {
            // The original sees how its copy ends.
            std::process::abort();
        }
        return origin.end_copy();
    };
    let status = waitpid(Some(copy), WaitOptions::empty());
    if !matches!(status, Ok(Some((_, status))) if status.exit_status() == Some(0)) {
        let _ = writeln!(std::io::stdout(), "a copy of the host could use the pool: {status:?}");
        std::process::exit(101);
    }
}

/// Returns the pool once subscribers and wakers have dropped their references: none of them must be
/// the one that ends it.
fn alone(mut pool: Arc<Pool>) -> Pool {
    loop {
        match Arc::try_unwrap(pool) {
            Ok(pool) => return pool,
            Err(shared) => pool = shared,
        }
        thread::yield_now();
    }
}

/// Ends the pool as planned; a second call finds it ended. A pool that is to be dropped is left as
/// it is.
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
    let report = match report {
        Err(PoolError::Broken { .. }) if plan.is_in(Surroundings::FewDescriptors) => return Ok(()),
        other => other.map_err(|error| format!("the pool did not end well: {error}"))?,
    };
    // Twice the grace, plus the time that a busy machine may need.
    let bound = bound.map(|bound| bound + 2 * GRACE + Duration::from_secs(5));
    if bound.is_some_and(|bound| begin.elapsed() > bound) {
        return Err(format!(
            "the shutdown took {:?} instead of {bound:?}: {report:?}",
            begin.elapsed()
        ));
    }
    Ok(())
}

/// Sets a flag even if its owner fails or panics; else others would go on forever.
pub(super) struct SetAtEnd<'a>(pub(super) &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
