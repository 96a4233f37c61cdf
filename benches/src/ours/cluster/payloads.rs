//! Measures large arguments and results, which travel through the object store.

use super::{ECHO, Queue};
use crate::cluster::OBJECT_SIZE;
use crate::report::Outcome;
use crate::sample::{number, timed};

/// Returns the payloads per second; each task has one as its argument and one as its result.
pub(super) fn measure(queue: &Queue, tasks: usize) -> Outcome<f64> {
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
    Ok(number(2 * tasks) / time.as_secs_f64())
}
