//! Measures a long stream of large batches: what grows after the warm-up, and the rate.

use std::fs;
use std::hint::black_box;

use brigade::{Link, SharedBuf};

use super::BenchPool;
use super::pump::pump;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, load.workers)?;
    // How many buffers a worker uses at once depends on the order of events, which in a long run
    // is the most unfavorable one at some time. So each worker first uses as many as the stream
    // can hold: those of all its tasks, and the one that the consumer reads.
    let most = load.workers + OUTPUT + 1;
    for handle in pool.broadcast(batches, (load.batch_size, most))? {
        for batch in handle.wait()?? {
            black_box(batch.first() == batch.last());
        }
    }
    let stream = pool.stream(batch).output(OUTPUT).start()?;
    let run = |count: usize, watch: &mut dyn FnMut(usize) -> Outcome<()>| {
        let mut taken = 0;
        pump(&stream, std::iter::repeat_n(load.batch_size, count), |item| {
            let batch = item.result??;
            if batch.len() != load.batch_size || batch.first() != batch.last() {
                return Err("the host has not received what the worker wrote".into());
            }
            taken += 1;
            watch(taken)
        })
    };
    run(WARM, &mut |_| Ok(()))?;
    let mut pids = pool.worker_pids();
    pids.push(std::process::id());
    let before = Usage::of(&pids)?;
    let (mut most, interval) = (before, (load.batch_count / 100).max(1));
    let (time, ()) = timed(|| {
        run(load.batch_count, &mut |taken| {
            if taken % interval == 0 {
                most = most.or_more(Usage::of(&pids)?);
            }
            Ok(())
        })
    })?;
    let growth = |of: fn(&Usage) -> usize| number(of(&most) - of(&before));
    let faults = growth(|usage| usage.faults);
    report.record("rate_per_second", number(load.batch_count) / time.as_secs_f64());
    report.record("page_faults_per_1000_count", 1_000.0 * faults / number(load.batch_count));
    let resident = 100.0 * growth(|usage| usage.resident) / number(before.resident);
    report.record("resident_growth_percent", resident);
    report.record("descriptors_more_count", growth(|usage| usage.descriptors));
    report.record("mappings_more_count", growth(|usage| usage.mappings));
    Ok(())
}

/// Tasks that the stream may have beyond one for each worker: the default.
const OUTPUT: usize = 3;

/// Batches before the first count.
const WARM: usize = 500;

/// Returns several batches, which all exist at once.
fn batches((size, count): (usize, usize)) -> Result<Vec<SharedBuf>, String> {
    (0..count).map(|_| batch(size)).collect()
}

/// Writes all of a batch, as a loader does.
fn batch(size: usize) -> Result<SharedBuf, String> {
    let mut batch = brigade::worker::alloc(size).map_err(|error| error.to_string())?;
    batch.fill(1);
    Ok(batch.freeze())
}

/// Sums over some processes.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Resident pages; shared ones count in each process that has touched them.
    resident: usize,
    /// Page faults without access to a disk, since the start.
    faults: usize,
    descriptors: usize,
    mappings: usize,
}

impl Usage {
    fn of(pids: &[u32]) -> Outcome<Self> {
        let mut sum = Self { resident: 0, faults: 0, descriptors: 0, mappings: 0 };
        for pid in pids {
            let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}"));
            let field = |text: &str, index: usize| -> Outcome<usize> {
                Ok(text.split(' ').nth(index).ok_or("a field is missing")?.parse()?)
            };
            sum.resident += field(&read("statm")?, 1)?;
            let stat = read("stat")?;
            // The name of the program, in parentheses, may contain spaces.
            let (_, stat) = stat.rsplit_once(") ").ok_or("no program name")?;
            sum.faults += field(stat, 7)?;
            sum.descriptors += fs::read_dir(format!("/proc/{pid}/fd"))?.count();
            sum.mappings += read("maps")?.lines().count();
        }
        Ok(sum)
    }

    fn or_more(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            faults: self.faults.max(other.faults),
            descriptors: self.descriptors.max(other.descriptors),
            mappings: self.mappings.max(other.mappings),
        }
    }
}
