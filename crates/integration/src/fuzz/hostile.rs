//! The life of one pool whose workers are attackers that know the protocol.
//!
//! Nothing that they send can be right or wrong in itself, so the round checks what an attacker
//! must not reach: each task has an outcome in time, whatever it is; a pool of honest workers
//! beside it gives right outcomes only; and the host neither panics nor takes much memory, nor
//! keeps anything.

mod attacker;
mod lies;

pub use attacker::attack;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Handle, Pool, Sandbox, SharedBuf, Stdio, SubmitError, SubmitErrorKind};
use brigade_testkit::{BOUND, LeakCheck, Random, processes, wait_until};

use super::Wire;
use super::innocent::{Innocent, answers};
use super::round::{check_memory, forget_the_peak};
use super::summary::Summary;
use crate::watch::Watch;

/// The variable that marks the attackers of a pool.
const MARK: &str = "BRIGADE_FUZZ_HOSTILE";

/// The deadline of a task that an attacker gets.
const LIMIT: Duration = Duration::from_millis(250);

/// The time that such a task may wait. Attackers die often, and many tasks wait for each.
const PATIENCE: Duration = Duration::from_secs(1);

/// The settings of a round, all from its seed.
#[derive(Debug)]
pub(super) struct Plan {
    seed: u64,
    link: Wire,
    workers: usize,
    operations: u64,
    /// Attackers lie in the handshake too. The host may give up the pool for that, because it takes
    /// them for another program.
    greets: bool,
    forwards: bool,
    captures: bool,
    retries: u32,
}

impl Plan {
    pub(super) fn new(seed: u64, random: &mut Random, link: Wire) -> Self {
        Self {
            seed,
            link,
            workers: usize::try_from(random.within(1..4)).unwrap_or(1),
            operations: random.within(20..80),
            greets: random.chance(20),
            forwards: random.chance(30),
            captures: random.chance(50),
            retries: u32::try_from(random.within(0..3)).unwrap_or(0),
        }
    }

    fn pool(&self, mark: &str) -> Result<Pool, String> {
        let program = std::env::current_exe().map_err(|error| format!("no program: {error}"))?;
        let mut command = Command::new(program);
        command.arg(attacker::WORD).arg(self.seed.to_string()).env(MARK, mark);
        command.args(self.greets.then_some(attacker::GREETS));
        let mut pool = Pool::builder()
            .interrupt_for_stacks(true)
            .workers(self.workers)
            .name("hostile")
            .link(self.link.link())
            .worker_command(&command)
            .stdio(if self.captures { Stdio::Capture } else { Stdio::Null })
            .message_limit(2 << 20)
            .start_timeout(Duration::from_secs(2 * brigade_testkit::PATIENCE))
            .deadline(LIMIT)
            .queue_deadline(PATIENCE)
            .stop_grace(LIMIT)
            .restart_budget(u32::MAX, Duration::from_secs(1))
            .quarantine_after(u32::MAX)
            // Attackers do not enter it. The host distrusts them for it.
            .sandbox(Sandbox::strict())
            .env(MARK, mark);
        if self.forwards {
            pool = pool.forward_events(tracing::Level::DEBUG);
        }
        pool.build().map_err(|error| format!("no hostile pool: {error}"))
    }
}

/// A function that an attacker is asked to run.
fn same(argument: Vec<u8>) -> Vec<u8> {
    argument
}

fn shares(buffer: SharedBuf) -> SharedBuf {
    buffer
}

/// Plays the plan.
pub(super) fn run(
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let begin = Instant::now();
    let leaks = LeakCheck::new();
    forget_the_peak();
    let before = processes::resident_memory();
    let mark = format!("{}-{}", std::process::id(), plan.seed);
    let hostile = plan.pool(&mark)?;
    let neighbor = Pool::builder().workers(1).link(plan.link.link()).build();
    let neighbor = neighbor.map_err(|error| format!("no pool beside it: {error}"))?;
    let seed = random.number();
    let played = thread::scope(|scope| {
        let beside = scope.spawn(|| undisturbed(&neighbor, Random::new(seed), watch));
        let played = attacked(&hostile, plan, random, watch, summary);
        let right = beside.join().map_err(|_| "the tasks beside it panicked".to_owned())??;
        summary.right += right;
        played
    });
    watch.during("the drop of the hostile pool", || drop(hostile));
    watch.during("the drop of the pool beside it", || drop(neighbor));
    played?;
    wait_until("the end of all attackers", BOUND, || {
        processes::with_variable(MARK, &mark).is_empty()
    });
    check_memory(before, summary)?;
    leaks.assert_none(BOUND);
    summary.rounds += 1;
    summary.longest_round = summary.longest_round.max(begin.elapsed());
    Ok(())
}

/// Runs tasks in the pool of honest workers, each of which has the right outcome in time.
fn undisturbed(pool: &Pool, mut random: Random, watch: &Watch) -> Result<u64, String> {
    let count = 100;
    for number in 0..count {
        let innocent = Innocent::new(&mut random, number, true);
        let handle = pool.submit(answers, innocent.argument());
        let handle = handle.map_err(|error| format!("not submitted beside it: {error}"))?;
        let value = watch.during("an outcome beside it", || handle.wait());
        let value = value.map_err(|error| format!("beside it: {error}"))?;
        if !innocent.is_right(&value) {
            return Err(format!("a wrong value beside it, of task {number}"));
        }
    }
    Ok(count)
}

/// A task whose outcome is awaited.
enum Awaited {
    Bytes(Handle<Vec<u8>>),
    Buffer(Handle<SharedBuf>),
}

/// Gives tasks to attackers. Each has an outcome in time.
fn attacked(
    pool: &Pool,
    plan: &Plan,
    random: &mut Random,
    watch: &Watch,
    summary: &mut Summary,
) -> Result<(), String> {
    let mut awaited = Vec::new();
    let size = |random: &mut Random| -> usize {
        let most = *random.choose(&[16, 1000, 100_000, 1 << 20]);
        usize::try_from(random.within(0..most)).unwrap_or(0)
    };
    for _ in 0..plan.operations {
        let bytes = vec![7; size(random)];
        match random.within(0..10) {
            0 => {
                let items =
                    (0..random.within(1..12)).map(|_| bytes[..bytes.len().min(99)].to_vec());
                let mut map = pool.map(same, items).retries(plan.retries);
                while let Some(outcome) = watch.during("an item of an attacker", || map.next()) {
                    count(outcome.is_ok(), summary);
                }
            }
            1 => {
                let Ok(mut buffer) = pool.alloc(bytes.len() + 1) else { continue };
                buffer.fill(7);
                let task = pool.task(shares).retries(plan.retries);
                match watch.during("room", || task.submit(buffer.freeze())) {
                    Ok(handle) => awaited.push(Awaited::Buffer(handle)),
                    Err(error) if plan.greets && is_broken(&error) => break,
                    Err(error) => return Err(format!("not submitted: {error}")),
                }
            }
            _ => {
                let task = pool.task(same).retries(plan.retries);
                let handle = match watch.during("room", || task.submit(bytes)) {
                    Ok(handle) => handle,
                    Err(error) if plan.greets && is_broken(&error) => break,
                    Err(error) => return Err(format!("not submitted: {error}")),
                };
                match random.within(0..12) {
                    0 => drop(handle),
                    1 => {
                        handle.cancel();
                        awaited.push(Awaited::Bytes(handle));
                    }
                    2 => {
                        // A sample that the attacker may forge.
                        let _ = watch.during("a sample", || handle.stack());
                        awaited.push(Awaited::Bytes(handle));
                    }
                    _ => awaited.push(Awaited::Bytes(handle)),
                }
            }
        }
        if random.chance(30) {
            await_all(&mut awaited, watch, summary);
        }
    }
    await_all(&mut awaited, watch, summary);
    Ok(())
}

fn is_broken<T>(error: &SubmitError<T>) -> bool {
    matches!(error.kind(), SubmitErrorKind::PoolBroken { .. })
}

fn await_all(awaited: &mut Vec<Awaited>, watch: &Watch, summary: &mut Summary) {
    for it in awaited.drain(..) {
        let what = "the outcome of an attacker";
        let is_value = match it {
            // All bytes are read, while the attacker may still write to them.
            Awaited::Bytes(handle) => watch.during(what, || handle.wait()).map(|it| sum(&it)),
            Awaited::Buffer(handle) => watch.during(what, || handle.wait()).map(|it| sum(&it)),
        };
        count(is_value.is_ok(), summary);
    }
}

fn sum(bytes: &[u8]) -> u64 {
    std::hint::black_box(bytes.iter().map(|byte| u64::from(*byte)).sum())
}

fn count(is_value: bool, summary: &mut Summary) {
    if is_value {
        summary.forged += 1;
    } else {
        summary.failed += 1;
    }
}
