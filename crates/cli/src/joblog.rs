//! The log of finished jobs, in GNU parallel's columns, written so that a crash costs one line at most.
//!
//! Each line is one `write`, appended when its job is over; so after a kill at any moment the file is whole but for, at
//! worst, the last line, which then has no end. Such a line is cut off before the file is written again.
//!
//! A tenth column, `# cores=… attempts=… user=… system=… memory=… deed=…`, is ours. GNU parallel takes it for a part of the
//! command; should it run that command again, a shell takes it for a comment.

mod resume;

pub(crate) use resume::Resume;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use brigade::runner::{Ending, Job, Outcome};

use crate::clock::StartTime;

/// The log of finished jobs.
#[derive(Debug)]
pub(crate) struct JobLog {
    file: File,
    start: StartTime,
}

const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// What GNU parallel writes for a job that was killed for taking too long.
const NO_EXIT: i32 = -1;

impl JobLog {
    /// A new log, in place of what was there.
    pub(crate) fn create(path: &Path, start: StartTime) -> io::Result<Self> {
        let mut file = File::create(path)?;
        file.write_all(HEADER.as_bytes())?;
        Ok(Self { file, start })
    }

    /// Goes on with a log, whose last line is cut off if it has no end.
    pub(crate) fn append(path: &Path, start: StartTime) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let whole = resume::whole_lines(&file)?;
        if whole < file.metadata()?.len() {
            file.set_len(whole)?;
        }
        if whole == 0 {
            file.write_all(HEADER.as_bytes())?;
        }
        Ok(Self { file, start })
    }

    /// Writes a job's line, at once.
    pub(crate) fn write(&mut self, outcome: &Outcome, received: u64) -> io::Result<()> {
        let line = line(outcome, received, self.start.at(outcome.started));
        self.file.write_all(line.as_bytes())
    }
}

fn line(outcome: &Outcome, received: u64, started: f64) -> String {
    let (exit, signal) = match &outcome.ending {
        Ending::Exited(code) => (*code, 0),
        Ending::Signalled(signal) => (0, *signal),
        Ending::NotStarted(failure) => (failure.code, 0),
        _ => (NO_EXIT, 0),
    };
    let cores = cores_list(&outcome.cores);
    // GNU parallel writes a line's end within a command so, too.
    let command = command(outcome).replace('\n', "\0");
    format!(
        "{}\t:\t{started:.3}\t{:10.3}\t0\t{received}\t{exit}\t{signal}\t{command}\t# cores={cores} attempts={} \
         user={:.3} system={:.3} memory={} deed={:016x}\n",
        outcome.number,
        seconds(outcome.wall),
        outcome.attempts,
        seconds(outcome.user),
        seconds(outcome.system),
        outcome.peak_memory,
        deed(&outcome.job),
    )
}

/// A hash of all that a job does, on whatever slot: FNV-1a, which is the same in every build.
fn deed(job: &Job) -> u64 {
    let command = job.with_slot("{%}").to_string();
    let bytes = command.bytes().chain([0]).chain(job.surroundings());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The command as it ran.
pub(crate) fn command(outcome: &Outcome) -> String {
    outcome.job.command_on(outcome.slot).to_string()
}

/// Cores as the kernel lists them; `-` for a job that was not pinned.
pub(crate) fn cores_list(cores: &[u32]) -> String {
    if cores.is_empty() {
        return "-".to_owned();
    }
    let runs: Vec<String> = cores
        .chunk_by(|a, b| *b == a + 1)
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run[0].to_string(),
        })
        .collect();
    runs.join(",")
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
