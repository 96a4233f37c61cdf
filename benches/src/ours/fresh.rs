//! Runs each task in a process of its own, and shares large preloaded memory.

use std::fs;
use std::time::{Duration, Instant};

use brigade::{Link, Pool, Start, worker};

use super::{BenchPool, noop};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    for (name, start) in [("", Start::Auto), ("executed_", Start::Exec)] {
        let builder = Pool::builder().link(link).workers(load.workers).start(start);
        let pool = BenchPool(builder.fresh_process_per_task().build()?);
        each(&pool, load.workers * 20)?;
        let mut laps = Sample::default();
        for _ in 0..load.laps {
            laps.add(each(&pool, load.fresh_tasks)?);
        }
        let rate = number(load.fresh_tasks) / laps.median()?;
        report.record(format!("{name}tasks_per_second"), rate);
        let mut trips = Sample::default();
        for _ in 0..load.fresh_tasks / 4 {
            trips.add(timed(|| Ok(pool.submit(noop, ())?.wait()?))?.0);
        }
        report.record(format!("{name}one_p50_seconds"), trips.median()?);
    }
    preloaded(link, report)
}

fn each(pool: &Pool, count: usize) -> Outcome<Duration> {
    let (time, ()) = timed(|| {
        let handles = (0..count).map(|_| pool.submit(noop, ())).collect::<Result<Vec<_>, _>>()?;
        handles.into_iter().try_for_each(|handle| Ok(handle.wait()?))
    })?;
    Ok(time)
}

/// Memory that all workers share.
const PRELOADED: usize = 500 << 20;

const WORKERS: usize = 16;

/// Measures what one more worker takes beside a large value that all of them share.
fn preloaded(link: Link, report: &mut Report) -> Outcome<()> {
    let builder = Pool::builder().link(link).workers(1).start(Start::Fork);
    let pool = BenchPool(builder.preload(|bytes: usize| vec![1_u8; bytes], PRELOADED).build()?);
    pool.warm_up()?;
    let mut more = Sample::default();
    for workers in 2..=WORKERS {
        let begin = Instant::now();
        pool.resize(workers)?;
        pool.warm_up()?;
        more.add(begin.elapsed());
    }
    report.record("with_500_mib_one_more_p50_seconds", more.median()?);
    for handle in pool.broadcast(sum, ())? {
        handle.wait()?.filter(|sum| *sum > 0).ok_or("nothing was preloaded")?;
    }
    let own = pool.worker_pids().into_iter().map(own_bytes).collect::<Outcome<Vec<_>>>()?;
    let most = own.into_iter().max().ok_or("no workers")?;
    report.record("with_500_mib_own_bytes_count", number(most));
    Ok(())
}

/// Reads a part of each page.
fn sum((): ()) -> Option<u64> {
    let bytes: &Vec<u8> = worker::preloaded()?;
    Some(bytes.iter().step_by(4096).map(|byte| u64::from(*byte)).sum())
}

/// Returns the memory that a process shares with no other one.
fn own_bytes(pid: u32) -> Outcome<usize> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let mut kibibytes = 0;
    for line in text.lines().filter(|line| line.starts_with("Private_")) {
        let (_, value) = line.split_once(':').ok_or("not a line of smaps")?;
        kibibytes += value.trim().trim_end_matches(" kB").parse::<usize>()?;
    }
    Ok(kibibytes * 1024)
}
