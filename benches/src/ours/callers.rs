//! Measures threads that each submit a no-op, wait for it, and repeat.

use brigade::Link;

use super::{BenchPool, noop};
use crate::callers;
use crate::load::Load;
use crate::report::{Outcome, Report};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, load.workers)?;
    callers::measure(load, report, |_| || Ok(pool.submit(noop, ())?.wait()?));
    Ok(())
}
