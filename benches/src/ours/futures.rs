//! Measures handles that tasks of a tokio runtime await.

use std::sync::Arc;

use brigade::Link;

use super::{BenchPool, noop};
use crate::awaiting;
use crate::load::Load;
use crate::report::{Outcome, Report};

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let pool = BenchPool::warm(link, 1)?;
    awaiting::one_task(load, report, async || Ok(pool.submit(noop, ())?.await?));
    drop(pool);
    let pool = Arc::new(BenchPool::warm(link, load.workers)?);
    awaiting::many_tasks(load, report, move || {
        let pool = Arc::clone(&pool);
        async move { Ok(pool.submit_async(noop, ()).await?.await?) }
    });
    Ok(())
}
