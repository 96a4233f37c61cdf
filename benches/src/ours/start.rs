//! Measures the time from building a pool to the first result of each worker.
//!
//! Each task waits at a word of shared memory until all tasks have begun, so each worker gets
//! exactly one.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use brigade::Link;
use brigade_sys::futex;
use brigade_sys::segment::Segment;

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    for workers in [2, 16, 64, 256] {
        let mut sample = Sample::default();
        for _ in 0..load.starts.min(2 + 128 / workers) {
            sample.add(start(link, workers)?);
        }
        report.record(format!("first_results_{workers}_seconds"), sample.median()?);
    }
    Ok(())
}

/// Time after which a start counts as failed.
const BOUND: Duration = Duration::from_secs(20);

fn start(link: Link, workers: usize) -> Outcome<Duration> {
    let segment = Segment::create("brigade-bench", 1)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), segment.as_fd().as_raw_fd());
    let (time, (pool, pids)) = timed(|| {
        let pool = BenchPool::cold(link, workers)?;
        let handles = (0..workers)
            .map(|_| pool.submit(meet, (path.clone(), workers)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut pids = BTreeSet::new();
        for mut handle in handles {
            let pid = handle.wait_timeout(BOUND).ok_or("not all workers began a task")??;
            pids.insert(pid?);
        }
        Ok((pool, pids))
    })?;
    // Ending the pool is not measured.
    drop(pool);
    if pids.len() == workers {
        Ok(time)
    } else {
        Err(format!("only {} of {workers} workers ran a task", pids.len()).into())
    }
}

/// Waits until `count` tasks have begun, and returns the worker's pid. The host's timeout bounds
/// the wait.
fn meet((path, count): (String, usize)) -> Result<u32, String> {
    let open = || -> std::io::Result<Segment> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        Segment::open(file.into(), 1)
    };
    let segment = open().map_err(|error| format!("{path}: {error}"))?;
    let word = &segment.words()[0];
    let count = count as u64;
    if word.fetch_add(1, Ordering::SeqCst) + 1 == count {
        (0..count).for_each(|_| futex::wake(word));
    }
    loop {
        let arrived = word.load(Ordering::SeqCst);
        if arrived >= count {
            return Ok(std::process::id());
        }
        futex::wait(word, arrived);
    }
}
