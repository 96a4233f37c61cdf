//! The log of finished jobs in GNU parallel's format. A crash costs at most one line.
//!
//! Each line is appended with one `write` when its job is over. After a kill at any moment, all
//! lines are complete except, at worst, the last one, which then has no newline. Such a line is
//! removed before the file is written again.
//!
//! A tenth column, `# cores=… attempts=… user=… system=… memory=… job=…`, is our addition. GNU
//! parallel takes it for a part of the command; if it runs that command again, the shell takes the
//! column for a comment.

mod resume;

pub use resume::{Resume, ResumeRule};

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use brigade_base::stable_hash;
use brigade_cores::CpuSet;
use brigade_sys::file_lock;

use crate::error::ResumeError;
use crate::job::Job;
use crate::outcome::{Ending, Outcome};

/// The log of a run's finished jobs, in GNU parallel's format.
///
/// ```no_run
/// use brigade::runner::{Event, Job, Joblog, Runner};
///
/// let jobs = (1..=1000).map(|seed| Job::new("./simulate").arg(seed.to_string()));
/// let (mut joblog, resume) = Joblog::resume("simulate.log")?;
/// let runner = Runner::builder().build()?;
/// let stopper = runner.stopper();
/// let mut logged = Ok(());
/// runner.run(resume.remaining(jobs)?, |event| {
///     if let Event::Finished(outcome) = event
///         && logged.is_ok()
///     {
///         logged = joblog.write(&outcome);
///         if logged.is_err() {
///             stopper.stop();
///         }
///     }
/// })?;
/// logged?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Joblog {
    file: File,
}

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// The text before the name of the batch, behind the header.
const BATCH: &str = "\t# batch=";

/// GNU parallel's exit value of a job that was killed because it took too long.
const NO_EXIT: i32 = -1;
/// The signal that it records for such a job.
const SIGTERM: i32 = 15;
/// The signal by which the kernel ends a job that exceeds its memory.
const SIGKILL: i32 = 9;

impl Joblog {
    /// Creates a log, or removes the lines of an existing one. No other run can write to it
    /// meanwhile. If the jobs run on a cluster, it has the name of their [batch](Resume::batch).
    ///
    /// # Errors
    /// Returns an error if the file cannot be written, or another run writes to it.
    pub fn create(path: impl AsRef<Path>, batch: Option<&str>) -> io::Result<Self> {
        let mut file = create_alone(path.as_ref())?;
        let batch = batch.map(|batch| format!("{BATCH}{batch}")).unwrap_or_default();
        file.write_all(format!("{}{batch}\n", HEADER.trim_end()).as_bytes())?;
        Ok(Self { file })
    }

    /// Opens the log of an earlier run to continue it, and returns what that run has done. Creates
    /// the log if there is none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read and written, another run writes to it, or it is
    /// not a log.
    pub fn resume(path: impl AsRef<Path>) -> Result<(Self, Resume), ResumeError> {
        Self::resume_with(path, ResumeRule::Same)
    }

    /// Opens a log as [`resume`](Self::resume) does, with another rule of what is done.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_with(
        path: impl AsRef<Path>,
        rule: ResumeRule,
    ) -> Result<(Self, Resume), ResumeError> {
        let mut file = open_alone(path.as_ref())?;
        let (resume, length) = Resume::read(&file, rule)?;
        if length < file.metadata()?.len() {
            file.set_len(length)?;
        }
        if length == 0 {
            file.write_all(HEADER.as_bytes())?;
        }
        Ok((Self { file }, resume))
    }

    /// Returns the jobs that have failed at last, made of the commands in a log. Their directories,
    /// variables and inputs are not in it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a log.
    pub fn failed(path: impl AsRef<Path>) -> Result<Vec<Job>, ResumeError> {
        resume::failed(&File::open(path)?)
    }

    /// Appends the line of a job that is over. A job that never started has none.
    ///
    /// Call this when the job's output is where it belongs: a job that is logged as successful does
    /// not run again.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&mut self, outcome: &Outcome) -> io::Result<()> {
        if outcome.attempts == 0 {
            return Ok(());
        }
        let length = self.file.metadata()?.len();
        // The next line would continue a part of this one.
        self.file.write_all(&line(outcome)).inspect_err(|_| drop(self.file.set_len(length)))
    }
}

/// The time for which the last jobs of an earlier run may hold its files: until they have replaced
/// their program.
const PATIENCE: Duration = Duration::from_secs(1);

/// Opens a file to append to it, or creates it. An error if another run writes to it.
pub(crate) fn open_alone(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    // Neither pipes nor terminals are locked. Some file systems have no locks.
    if file.metadata()?.is_file()
        && matches!(file_lock::try_lock(&file), Ok(false))
        && !(file_lock::may_be_inherited(&file) && file_lock::lock_within(&file, PATIENCE)?)
    {
        let holder = file_lock::holder(&file)
            .map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        return Err(io::Error::other(format!("it is in use by {holder}")));
    }
    Ok(file)
}

/// Opens a file like [`open_alone`], and removes what it has.
pub(crate) fn create_alone(path: &Path) -> io::Result<File> {
    let file = open_alone(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// The columns of GNU parallel's log that differ between jobs, except the number and the command.
pub(crate) struct LogColumns {
    /// The time of day at the start, and the duration, in seconds.
    pub(crate) started: f64,
    pub(crate) wall: f64,
    /// Number of bytes of standard output.
    pub(crate) received: u64,
    pub(crate) exit: i32,
    pub(crate) signal: i32,
}

impl LogColumns {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let (exit, signal) = match &outcome.ending {
            Ending::Exited(code) => (*code, 0),
            Ending::Signalled(signal) => (0, *signal),
            Ending::NotStarted(failure) => (failure.code, 0),
            Ending::TimedOut { .. } => (NO_EXIT, SIGTERM),
            Ending::LimitExceeded { .. } => (NO_EXIT, SIGKILL),
            _ => (NO_EXIT, 0),
        };
        Self {
            started: outcome
                .started_at
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs_f64(),
            wall: outcome.wall.as_secs_f64(),
            received: outcome.stdout.len().unwrap_or(0) + outcome.stdout.dropped(),
            exit,
            signal,
        }
    }
}

fn line(outcome: &Outcome) -> Vec<u8> {
    let LogColumns { started, wall, received, exit, signal } = LogColumns::of(outcome);
    let cores: CpuSet = outcome.cores.iter().copied().collect();
    let cores = if cores.is_empty() { "-".to_owned() } else { cores.to_string() };
    let memory = outcome.peak_memory.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    let command = outcome.command().to_line();
    // GNU parallel also writes a newline within a command like this.
    let command = command.as_bytes().iter().map(|byte| if *byte == b'\n' { 0 } else { *byte });
    let number = outcome.number;
    let host = outcome.host_column();
    let before =
        format!("{number}\t{host}\t{started:.3}\t{wall:10.3}\t0\t{received}\t{exit}\t{signal}\t");
    let after = format!(
        "\t# cores={cores} attempts={} user={:.3} system={:.3} memory={memory} job={:016x}\n",
        outcome.attempts,
        outcome.user.as_secs_f64(),
        outcome.system.as_secs_f64(),
        job_hash(&outcome.job),
    );
    before.into_bytes().into_iter().chain(command).chain(after.into_bytes()).collect()
}

/// Returns a hash of everything a job does, independent of its slot.
fn job_hash(job: &Job) -> u64 {
    let command = job.with_slot("{%}").to_line().into_vec();
    stable_hash(command.into_iter().chain([0]).chain(job.context_bytes()))
}
