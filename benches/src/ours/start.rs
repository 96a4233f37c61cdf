//! From nothing to the first result of each worker.
//!
//! Each worker gets one task, because each task waits until as many have begun as there are
//! workers: the tasks meet at a word of shared memory.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use brigade::Link;
use brigade_sys::futex;
use brigade_sys::segment::Segment;

use super::Crew;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    for workers in [2, 16] {
        let mut sample = Sample::default();
        for _ in 0..load.starts {
            sample.add(start(link, workers)?);
        }
        report.record(format!("first_results_{workers}_seconds"), sample.median()?);
    }
    Ok(())
}

/// What takes longer is no start any more.
const BOUND: Duration = Duration::from_secs(20);

fn start(link: Link, workers: usize) -> Outcome<Duration> {
    let segment = Segment::create("brigade-bench", 1)?;
    let place = format!("/proc/{}/fd/{}", std::process::id(), segment.as_fd().as_raw_fd());
    let (time, (crew, pids)) = timed(|| {
        let crew = Crew::cold(link, workers)?;
        let handles = (0..workers)
            .map(|_| crew.submit(meet, (place.clone(), workers)))
            .collect::<Result<Vec<_>, _>>()?;
        let mut pids = BTreeSet::new();
        for mut handle in handles {
            let pid = handle.wait_timeout(BOUND).ok_or("the workers did not meet")??;
            pids.insert(pid?);
        }
        Ok((crew, pids))
    })?;
    // The end of the pool is not measured.
    drop(crew);
    if pids.len() == workers {
        Ok(time)
    } else {
        Err(format!("{} of {workers} workers answered", pids.len()).into())
    }
}

/// Returns the worker's pid when `count` tasks have come here. The host's bound ends a wait in vain.
fn meet((place, count): (String, usize)) -> Result<u32, String> {
    let open = || -> std::io::Result<Segment> {
        let file = OpenOptions::new().read(true).write(true).open(&place)?;
        Segment::open(file.into(), 1)
    };
    let segment = open().map_err(|error| format!("{place}: {error}"))?;
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
