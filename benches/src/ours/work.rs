//! Measures digests of many small files through `map`.

use brigade::Link;

use super::BenchPool;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::timed;
use crate::tree;

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let paths = tree::paths(&load.list)?;
    let pool = BenchPool::warm(link, load.workers)?;
    let (time, digests) = timed(|| {
        let mut digests = Vec::with_capacity(paths.len());
        for digest in pool.map(tree::digest, paths) {
            digests.push(digest??);
        }
        Ok(digests)
    })?;
    report.record("files_seconds", time.as_secs_f64());
    report.checksum = Some(tree::checksum(&digests));
    Ok(())
}
