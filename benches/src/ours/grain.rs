//! Measures tasks that keep a core busy for a short time, one by one and mapped.

use std::iter::repeat_n;

use brigade::Link;

use super::BenchPool;
use crate::grain::{busy, grains};
use crate::load::Load;
use crate::report::{Outcome, Report};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, load.workers)?;
    for grain in grains(load) {
        grain.measure(load, report, "each", |tasks| {
            let handles =
                (0..tasks).map(|_| pool.submit(busy, grain.time)).collect::<Result<Vec<_>, _>>()?;
            for handle in handles {
                handle.wait()?;
            }
            Ok(())
        });
        grain.measure(load, report, "map", |tasks| {
            for result in pool.map(busy, repeat_n(grain.time, tasks)) {
                result?;
            }
            Ok(())
        });
    }
    Ok(())
}
