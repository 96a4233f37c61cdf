//! `brigade sem`: commands that take turns, as with GNU parallel's `sem`.
//!
//! In the background another `brigade sem` has the place: its standard input is the file that a
//! [`Semaphore`] has locked.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use brigade::runner::{self, Event, Job, Output, Runner, Semaphore};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use crate::RUN_FAILED;
use crate::arguments::Sem;
use crate::parallel::shell;
use crate::run::job_status;

/// Runs the command in its turn. Returns the exit status.
pub(crate) fn run(sem: &Sem) -> Result<u8, Report> {
    if sem.held {
        return run_now(sem, runner::Stdin::Null);
    }
    let places =
        Semaphore::open(&sem.id).into_diagnostic().wrap_err("cannot open the semaphore")?;
    let cannot_lock = || "cannot lock the semaphore";
    if sem.wait {
        places.wait().into_diagnostic().wrap_err_with(cannot_lock)?;
        return Ok(0);
    }
    if sem.command.is_empty() {
        return Err(miette!(help = "brigade sem [OPTIONS] COMMAND", "no command"));
    }
    let limit = sem.st.map(|seconds| Duration::try_from_secs_f64(seconds.abs()));
    let limit = limit.transpose().into_diagnostic().wrap_err("wrong number for --st")?;
    let place = places.take(sem.jobs.get(), limit).into_diagnostic().wrap_err_with(cannot_lock)?;
    if place.is_none() && sem.st.is_some_and(f64::is_sign_negative) {
        return Ok(1);
    }
    if sem.fg {
        let status = run_now(sem, runner::Stdin::Inherit);
        drop(place);
        return status;
    }
    start(sem, place).into_diagnostic().wrap_err("cannot start the command")?;
    Ok(0)
}

/// Starts a process that runs the command in the background and has the place.
fn start(sem: &Sem, place: Option<File>) -> io::Result<()> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["sem", "--held", "--"]).args(&sem.command);
    command.env(shell::VARIABLE, shell::of_user());
    command.stdin(place.map_or_else(Stdio::null, Stdio::from));
    // It outlives this process, in a group of its own, and nobody reaps it.
    command.process_group(0).spawn().map(drop)
}

/// Runs the command as a job. Returns its status.
fn run_now(sem: &Sem, stdin: runner::Stdin) -> Result<u8, Report> {
    let job = Job::shell(sem.command.join(OsStr::new(" "))).in_shell(shell::of_user());
    let runner = Runner::builder().unpinned().output(Output::Inherit).build().into_diagnostic()?;
    let mut status = RUN_FAILED;
    let on_event = |event| {
        if let Event::Finished(outcome) = event {
            status = job_status(&outcome.ending);
        }
    };
    runner.run([job.stdin(stdin)], on_event).into_diagnostic()?;
    Ok(status)
}
