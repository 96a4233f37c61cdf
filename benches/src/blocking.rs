//! Measures calls on the threads that tokio keeps for blocking code, the usual way to run such code
//! in an async program without isolation.

use tokio::task::spawn_blocking;

use crate::awaiting;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::section::Section;
use crate::service;

pub(crate) fn measure(section: Section, load: &Load, report: &mut Report) -> Outcome<()> {
    match section {
        Section::Async => {
            awaiting::one_task(load, report, async || Ok(spawn_blocking(|| ()).await?));
            awaiting::many_tasks(load, report, || async { Ok(spawn_blocking(|| ()).await?) });
        }
        Section::Service => service::measure(&["--in-process"], "", load, report),
        _ => return Err("not measured for tokio".into()),
    }
    Ok(())
}
