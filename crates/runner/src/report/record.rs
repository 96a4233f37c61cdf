//! Keeps a record of each finished job for the report and the trace. The records are in a file, so
//! memory stays flat.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

use serde::{Deserialize, Serialize};

use crate::outcome::{Ending, Outcome};

/// One finished job or repeated attempt, written as one line of JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) number: u64,
    pub(super) slot: usize,
    /// Microseconds since the start of the run.
    pub(super) start: u64,
    /// Microseconds.
    pub(super) wall: u64,
    pub(super) status: Status,
    pub(super) attempts: u32,
    /// Microseconds of processor time.
    pub(super) busy: u64,
    /// Bytes, if known.
    pub(super) memory: Option<u64>,
    pub(super) cores: Vec<u32>,
    pub(super) name: String,
    /// The reason if it failed, else empty.
    pub(super) failure: String,
    /// The end of its output if it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) last_lines: Vec<String>,
    /// The number of running jobs after its start and after its end, if it started.
    pub(super) running: Option<(usize, usize)>,
}

/// The result of a job, as the report and the trace distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Status {
    #[serde(rename = "ok")]
    Succeeded,
    #[serde(rename = "fail")]
    Failed,
    /// An attempt failed, and another one was made.
    #[serde(rename = "retry")]
    Retried,
    #[serde(rename = "late")]
    TimedOut,
    #[serde(rename = "stop")]
    Stopped,
}

/// Longer names are cut.
const MAX_NAME: usize = 120;

impl Record {
    pub(super) fn of(outcome: &Outcome) -> Self {
        let micros =
            |duration: std::time::Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let name = outcome.job.label.clone();
        let name = name.unwrap_or_else(|| outcome.command().to_string());
        Self {
            number: outcome.number,
            slot: outcome.slot,
            start: micros(outcome.started),
            wall: micros(outcome.wall),
            status: match outcome.ending {
                Ending::Exited(0) => Status::Succeeded,
                Ending::TimedOut { .. } => Status::TimedOut,
                Ending::Stopped => Status::Stopped,
                _ => Status::Failed,
            },
            attempts: outcome.attempts,
            busy: micros(outcome.user + outcome.system),
            memory: outcome.peak_memory,
            cores: outcome.cores.clone(),
            name: name.chars().take(MAX_NAME).collect(),
            failure: if outcome.ending.is_success() {
                String::new()
            } else {
                outcome.ending.to_string()
            },
            last_lines: Vec::new(),
            running: None,
        }
    }
}

/// The records of a run, in an unnamed file.
#[derive(Debug)]
pub(super) struct Records {
    file: BufWriter<File>,
}

impl Records {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?) })
    }

    pub(super) fn push(&mut self, record: &Record) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, record)?;
        self.file.write_all(b"\n")
    }

    /// Passes all records to `take`, in the order in which they were pushed.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(Record) -> io::Result<()>,
    ) -> io::Result<()> {
        self.file.flush()?;
        let mut file = self.file.get_ref();
        file.rewind()?;
        for line in BufReader::new(file).lines() {
            take(serde_json::from_str(&line?)?)?;
        }
        let mut file = self.file.get_ref();
        file.seek(io::SeekFrom::End(0))?;
        Ok(())
    }
}
