//! Compares a pool with a strict sandbox and limits with the same pool without them, in turn: the
//! start of a worker, and the rate of no-ops. Then it lets tasks take too much, and measures when
//! they end.

use std::hint::black_box;
use std::time::{Duration, Instant};

use brigade::{Limit, Limits, Link, Pool, PoolBuilder, Sandbox, TaskError, TaskErrorKind};

use super::{BenchPool, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, throughput, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    starts(link, load, report)?;
    rates(link, load, report)?;
    bombs(link, load, report)?;
    late(link, load, report)
}

fn plain(link: Link) -> PoolBuilder {
    Pool::builder().link(link).workers(1)
}

fn sandboxed(link: Link) -> PoolBuilder {
    plain(link).sandbox(Sandbox::strict())
}

fn isolated(link: Link) -> PoolBuilder {
    plain(link).sandbox(Sandbox::strict().isolate())
}

fn limited(link: Link) -> PoolBuilder {
    plain(link).limits(Limits::new().memory(LIMIT).open_files(64).file_size(1 << 30).core_size(0))
}

/// The limit on memory.
const LIMIT: u64 = 512 << 20;

/// Workers that are started with each setting, for each start of other sections.
const MORE: usize = 20;

fn starts(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let builders = [plain, sandboxed, isolated, limited];
    let mut samples = <[Sample; 4]>::default();
    for _ in 0..MORE * load.starts {
        for (builder, sample) in builders.iter().zip(&mut samples) {
            sample.add(start(builder(link))?);
        }
    }
    let [open, closed, isolated, bounded] = samples.map(|mut sample| sample.median());
    let open = open?;
    report.record("start_plain_p50_seconds", open);
    report.record("start_more_in_a_sandbox_seconds", closed? - open);
    report.record("start_more_isolated_seconds", isolated? - open);
    report.record("start_more_with_limits_seconds", bounded? - open);
    Ok(())
}

/// Returns the time from the first task of a pool that was built to its result. To make the
/// sandbox is part of building the pool.
fn start(builder: PoolBuilder) -> Outcome<Duration> {
    let pool = BenchPool(builder.build()?);
    let (time, ()) = timed(|| Ok(pool.submit(noop, ())?.wait()?))?;
    Ok(time)
}

fn rates(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let (mut open, mut closed) = (Sample::default(), Sample::default());
    let pools = [BenchPool(plain(link).build()?), BenchPool(sandboxed(link).build()?)];
    for _ in 0..LAPS {
        open.push(rate(&pools[0], load)?);
        closed.push(rate(&pools[1], load)?);
    }
    let (open, closed) = (open.median()?, closed.median()?);
    report.record("plain_per_second", open);
    report.record("sandboxed_per_second", closed);
    report.record("sandboxed_rate_percent", 100.0 * closed / open);
    Ok(())
}

/// The pools take turns this many times.
const LAPS: usize = 9;

fn rate(pool: &Pool, load: &Load) -> Outcome<f64> {
    throughput(load, load.most_submitted, |tasks| {
        let handles = (0..tasks).map(|_| pool.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
        handles.into_iter().try_for_each(|handle| Ok(handle.wait()?))
    })
}

/// Returns the number of blocks of a mebibyte that it could take.
fn bomb(mebibytes: usize) -> usize {
    let blocks: Vec<_> = (0..mebibytes).map(|_| black_box(vec![1_u8; 1 << 20])).collect();
    blocks.len()
}

fn bombs(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool(plain(link).limits(Limits::new().memory(LIMIT)).build()?);
    let mut sample = Sample::default();
    for _ in 0..load.crashes {
        let (time, outcome) = timed(|| Ok(pool.submit(bomb, 10 << 10)?.wait()))?;
        exceeded(outcome)?;
        sample.add(time);
        pool.submit(noop, ())?.wait()?;
    }
    report.record("bomb_of_10_gib_p50_seconds", sample.median()?);
    Ok(())
}

fn computes((): ()) {
    loop {
        black_box(0);
    }
}

fn late(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let busy = BenchPool(Pool::builder().link(link).workers(BUSY).build()?);
    for (name, is_busy) in [("idle", false), ("busy", true)] {
        if is_busy {
            (0..BUSY).try_for_each(|_| busy.submit(computes, ()).map(drop))?;
        }
        let pool = BenchPool(plain(link).limits(Limits::new().cpu_time(TIME)).build()?);
        let (mut early, mut latest) = (0_u32, Duration::ZERO);
        let begin = Instant::now();
        for _ in 0..load.starts {
            let (limit, used) = exceeded(pool.submit(computes, ())?.wait())?;
            let (Limit::CpuTime(limit), Some(Limit::CpuTime(used))) = (limit, used) else {
                return Err("another limit was exceeded".into());
            };
            early += u32::from(used < limit);
            latest = latest.max(used.saturating_sub(limit));
            if begin.elapsed() > BOUND {
                break;
            }
        }
        report.record(format!("{name}_early_count"), f64::from(early));
        report.record(format!("{name}_latest_seconds"), latest.as_secs_f64());
    }
    Ok(())
}

/// Processes that compute beside the one with a limit.
const BUSY: usize = 20;

/// The limit on processor time.
const TIME: Duration = Duration::from_millis(100);

/// Time after which no further task is measured.
const BOUND: Duration = Duration::from_secs(30);

fn exceeded<T>(outcome: Result<T, TaskError>) -> Outcome<(Limit, Option<Limit>)> {
    match outcome {
        Ok(_) => Err("a task did not reach its limit".into()),
        Err(error) => match *error.kind() {
            TaskErrorKind::LimitExceeded { limit, used } => Ok((limit, used)),
            _ => Err(error.into()),
        },
    }
}
