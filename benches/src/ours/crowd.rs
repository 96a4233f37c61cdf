//! Measures no-ops with two workers and with far more workers than cores, in one turn.

use brigade::Link;

use super::throughput::each;
use crate::load::Load;
use crate::report::Report;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    for workers in [2, 256] {
        report.attempt(&format!("each_{workers}_workers_per_second"), || each(link, workers, load));
    }
}
