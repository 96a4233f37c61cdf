//! The log of finished jobs in GNU parallel's format. A crash costs at most one line.
//!
//! Each line is appended with one `write` when its job is over. After a kill at any moment, all
//! lines are complete except, at worst, the last one, which then has no newline. Such a line is
//! removed before the file is written again.
//!
//! A tenth column, `# cores=… attempts=… user=… system=… memory=… deed=…`, is our addition. GNU
//! parallel takes it for a part of the command; if it runs that command again, the shell takes the
//! column for a comment.

mod resume;

pub use resume::Resume;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use brigade_cores::CpuSet;
use brigade_sys::file_lock;

use crate::error::ResumeError;
use crate::job::Job;
use crate::outcome::{Ending, Outcome};

/// The log of finished jobs.
#[derive(Debug)]
pub struct Joblog {
    file: File,
}

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// GNU parallel's exit value of a job that was killed because it took too long.
const NO_EXIT: i32 = -1;
/// The signal that it records for such a job.
const SIGTERM: i32 = 15;

impl Joblog {
    /// Opens or creates a log, and locks it. Its content stays as it is.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        // Neither pipes nor terminals are locked. Some file systems have no locks.
        if file.metadata()?.is_file() && matches!(file_lock::try_lock(&file), Ok(false)) {
            let holder = file_lock::holder(&file)
                .map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
            return Err(io::Error::other(format!("it is in use by {holder}")));
        }
        Ok(Self { file })
    }

    /// Reads the jobs that have succeeded.
    pub fn resume(&self) -> Result<Resume, ResumeError> {
        Resume::read(&self.file)
    }

    /// Removes an incomplete last line, so that lines can be added.
    pub fn continue_after(&mut self) -> io::Result<()> {
        let whole = resume::whole_lines(&self.file)?;
        if whole < self.file.metadata()?.len() {
            self.file.set_len(whole)?;
        }
        if whole == 0 {
            self.file.write_all(HEADER.as_bytes())?;
        }
        Ok(())
    }

    /// Removes all lines.
    pub fn begin(&mut self) -> io::Result<()> {
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.file.write_all(HEADER.as_bytes())
    }

    /// Appends a job's line.
    pub fn write(&mut self, outcome: &Outcome, received: u64) -> io::Result<()> {
        let line = line(outcome, received);
        self.file.write_all(&line)
    }
}

fn line(outcome: &Outcome, received: u64) -> Vec<u8> {
    let (exit, signal) = match &outcome.ending {
        Ending::Exited(code) => (*code, 0),
        Ending::Signalled(signal) => (0, *signal),
        Ending::NotStarted(failure) => (failure.code, 0),
        Ending::TimedOut { .. } => (NO_EXIT, SIGTERM),
        _ => (NO_EXIT, 0),
    };
    let cores: CpuSet = outcome.cores.iter().copied().collect();
    let cores = if cores.is_empty() { "-".to_owned() } else { cores.to_string() };
    let memory = outcome.peak_memory.map_or_else(|| "-".to_owned(), |bytes| bytes.to_string());
    let command = outcome.command().to_line();
    // GNU parallel also writes a newline within a command like this.
    let command = command.as_bytes().iter().map(|byte| if *byte == b'\n' { 0 } else { *byte });
    let started = seconds(outcome.started_at.duration_since(UNIX_EPOCH).unwrap_or_default());
    let (number, wall) = (outcome.number, seconds(outcome.wall));
    let before =
        format!("{number}\t:\t{started:.3}\t{wall:10.3}\t0\t{received}\t{exit}\t{signal}\t");
    let after = format!(
        "\t# cores={cores} attempts={} user={:.3} system={:.3} memory={memory} deed={:016x}\n",
        outcome.attempts,
        seconds(outcome.user),
        seconds(outcome.system),
        job_hash(&outcome.job),
    );
    before.into_bytes().into_iter().chain(command).chain(after.into_bytes()).collect()
}

/// Returns a hash of everything a job does, independent of its slot: FNV-1a, which is the same in
/// every build.
fn job_hash(job: &Job) -> u64 {
    let command = job.with_slot("{%}").to_line().into_vec();
    let bytes = command.into_iter().chain([0]).chain(job.context_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
