//! Measures the same work on the threads of one process, the baseline for the cost of isolation.

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::timed;
use crate::tree;

pub(crate) fn measure(load: &Load, report: &mut Report) -> Outcome<()> {
    let paths = tree::paths(&load.list)?;
    let pool = ThreadPoolBuilder::new().num_threads(load.workers).build()?;
    // Start the threads before the clock, as the workers of all pools are.
    pool.broadcast(|_| ());
    let (time, digests) = timed(|| {
        let digests: Result<Vec<_>, _> =
            pool.install(|| paths.into_par_iter().map(tree::digest).collect());
        Ok(digests?)
    })?;
    report.record("files_seconds", time.as_secs_f64());
    report.checksum = Some(tree::checksum(&digests));
    Ok(())
}
