//! Measures calls on the threads that tokio keeps for blocking code, the usual way to run such code
//! in an async program without isolation.

use tokio::task::spawn_blocking;

use crate::awaiting;
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::section::Section;

pub(crate) fn measure(section: Section, load: &Load, report: &mut Report) -> Outcome<()> {
    if section != Section::Async {
        return Err("not measured for tokio".into());
    }
    awaiting::one_task(load, report, async || Ok(spawn_blocking(|| ()).await?));
    awaiting::many_tasks(load, report, || async { Ok(spawn_blocking(|| ()).await?) });
    Ok(())
}
