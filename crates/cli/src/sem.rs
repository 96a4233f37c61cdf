//! `brigade sem`: commands that take turns, as with GNU parallel's `sem`.
//!
//! Each of the N places of a name is a file, and who holds the lock on it has the place. The kernel
//! releases the lock with the end of the process that holds it, so a command that was killed never
//! blocks others. In the background that process is another `brigade sem`, whose standard input is
//! the locked file.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use brigade::runner::{self, Event, Job, Output, Runner};
use brigade_sys::file_lock;
use brigade_sys::private_folder::PrivateFolder;
use brigade_sys::process::Process;
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
    let places = Places::open(&sem.id).into_diagnostic().wrap_err("cannot open the semaphore")?;
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
    Process::detach(&mut command).map(drop)
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

/// The places of the commands with one name.
#[derive(Debug)]
struct Places {
    folder: PrivateFolder,
    name: String,
}

impl Places {
    fn open(id: &OsStr) -> io::Result<Self> {
        // Any name is possible, but not every file name.
        let escaped = |byte: &u8| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(*byte).to_string(),
            byte => format!("_{byte:02x}"),
        };
        let name = format!("sem-{}", id.as_bytes().iter().map(escaped).collect::<String>());
        Ok(Self { folder: PrivateFolder::open(&PrivateFolder::default_path())?, name })
    }

    fn file(&self, place: usize) -> String {
        format!("{}-{place}", self.name)
    }

    /// Takes one of the first `count` places when it is free. Returns `None` if none is before the
    /// limit.
    fn take(&self, count: usize, limit: Option<Duration>) -> io::Result<Option<File>> {
        let files = (1..=count).map(|place| self.folder.file(&self.file(place)));
        let files: Vec<File> = files.collect::<io::Result<_>>()?;
        let (sender, receiver) = mpsc::channel();
        for file in &files {
            if file_lock::try_lock(file)? {
                return file.try_clone().map(Some);
            }
        }
        for file in files {
            let sender = sender.clone();
            // The first place wins. Threads that get theirs later give it back at once: nobody
            // receives it.
            thread::Builder::new().spawn(move || {
                let locked = file_lock::lock(&file).map(|()| file);
                let _ = sender.send(locked);
            })?;
        }
        match limit {
            Some(limit) => receiver.recv_timeout(limit).ok().transpose(),
            None => receiver.recv().ok().transpose(),
        }
    }

    /// Waits until each place was free once.
    fn wait(&self) -> io::Result<()> {
        for place in 1.. {
            let Some(file) = self.folder.existing_file(&self.file(place))? else { break };
            file_lock::lock(&file)?;
        }
        Ok(())
    }
}
