//! Measures large arguments and results, which travel through the object store.

use std::fs;

use super::{ECHO, Queue};
use crate::cluster::OBJECT_SIZE;
use crate::ours::kibibytes;
use crate::report::{Outcome, Report};
use crate::sample::{number, timed};

/// Records the payloads per second, of which each task has one as its argument and one as its
/// result, and how far the memory of client and node together grew.
pub(super) fn measure(queue: Outcome<Queue>, name: &str, tasks: usize, report: &mut Report) {
    let rate = format!("{name}_payloads_per_second");
    match queue.and_then(|queue| run(&queue, tasks)) {
        Ok((payloads_per_second, grown)) => {
            report.record(rate, payloads_per_second);
            report.record(format!("{name}_payloads_mebibytes_count"), grown);
        }
        Err(error) => report.miss(rate, error.to_string()),
    }
}

fn run(queue: &Queue, tasks: usize) -> Outcome<(f64, f64)> {
    // Resets the peak, so that it is not that of an earlier measurement.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = kibibytes("VmRSS:")?;
    let (time, ()) = timed(|| {
        let payloads = (0..tasks).map(|_| vec![1_u8; OBJECT_SIZE]);
        for result in queue.cluster.map_unordered(&ECHO, payloads) {
            let length = result?.len();
            if length != OBJECT_SIZE {
                return Err(format!("a result has {length} bytes").into());
            }
        }
        Ok(())
    })?;
    let grown = kibibytes("VmHWM:")?.saturating_sub(before);
    Ok((number(2 * tasks) / time.as_secs_f64(), number(grown) / 1024.0))
}
