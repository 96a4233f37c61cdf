//! Measures tasks that keep a core busy for a short time: one by one, through a short queue, and
//! mapped.

use std::iter::repeat_n;

use brigade::{Link, Pool};

use super::BenchPool;
use crate::grain::{busy, grains};
use crate::load::Load;
use crate::report::{Outcome, Report};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, load.workers)?;
    let limited = Pool::builder().link(link).workers(load.workers).queue_limit(QUEUE).build()?;
    limited.warm_up()?;
    for grain in grains(load) {
        for (way, pool) in [("each", &*pool), ("limited", &limited)] {
            grain.measure(load, report, way, |tasks| {
                let submitted = (0..tasks).map(|_| pool.submit(busy, grain.time));
                let handles = submitted.collect::<Result<Vec<_>, _>>()?;
                for handle in handles {
                    handle.wait()?;
                }
                Ok(())
            });
        }
        grain.measure(load, report, "map", |tasks| {
            for result in pool.map(busy, repeat_n(grain.time, tasks)) {
                result?;
            }
            Ok(())
        });
    }
    Ok(())
}

/// Length of a queue that blocks the producer most of the time.
const QUEUE: usize = 100;
