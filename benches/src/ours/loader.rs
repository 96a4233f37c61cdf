//! Measures a loader of pictures, and the hand-over of its batches.

use brigade::{Link, SharedBuf};
use brigade_sys::clock::now;

use super::BenchPool;
use super::pump::pump;
use crate::images;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{Sample, number, time_to_read, timed};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, load.workers)?;
    let batches = images::batches(load)?;
    let inputs = |count: usize| -> Vec<_> {
        let some = batches.iter().take(count);
        some.map(|batch| (load.picture_side, batch.clone())).collect()
    };
    let stream = pool.stream(load_batch).start()?;
    pump(&stream, inputs(load.workers), |item| {
        item.result??;
        Ok(())
    })?;
    let mut handed_over = Sample::default();
    let (time, ()) = timed(|| {
        pump(&stream, inputs(batches.len()), |item| {
            let (sent, batch) = item.result??;
            handed_over.add(time_to_read(sent, &batch)?);
            Ok(())
        })
    })?;
    report.record("images_per_second", number(load.picture_count) / time.as_secs_f64());
    report.record("hand_over_p50_seconds", handed_over.median()?);
    Ok(())
}

/// Returns the time of the return, and the batch.
fn load_batch((side, paths): (u32, Vec<String>)) -> Result<(u64, SharedBuf), String> {
    let length = images::size(paths.len(), side).map_err(|error| error.to_string())?;
    let mut batch = brigade::worker::alloc(length).map_err(|error| error.to_string())?;
    images::load_all(&paths, side, &mut batch)?;
    Ok((now().as_nanos(), batch.freeze()))
}
