//! What is kept of each finished job for the report and the trace: in a file, so that memory stays flat.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

use brigade::runner::{Ending, Outcome};
use serde::{Deserialize, Serialize};

/// One finished job. Serialized as a list, to be short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) slot: usize,
    /// Microseconds since the start of the run.
    pub(crate) start: u64,
    /// Microseconds.
    pub(crate) wall: u64,
    pub(crate) end: End,
    pub(crate) attempts: u32,
    /// Microseconds of processor time.
    pub(crate) busy: u64,
    /// Bytes.
    pub(crate) memory: u64,
    pub(crate) cores: Vec<u32>,
    pub(crate) name: String,
    /// How it failed, in words; empty if it did not.
    pub(crate) failure: String,
}

/// How a job has ended, as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    #[serde(rename = "ok")]
    Succeeded,
    #[serde(rename = "fail")]
    Failed,
    #[serde(rename = "late")]
    TimedOut,
    #[serde(rename = "stop")]
    Stopped,
}

/// A name longer than this tells nobody more.
const LONGEST_NAME: usize = 120;

impl Record {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let micros =
            |duration: std::time::Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let name = match outcome.job.label_text() {
            Some(label) => label.to_owned(),
            None => crate::joblog::command(outcome),
        };
        Self {
            number: outcome.number,
            slot: outcome.slot,
            start: micros(outcome.started),
            wall: micros(outcome.wall),
            end: match outcome.ending {
                Ending::Exited(0) => End::Succeeded,
                Ending::TimedOut { .. } => End::TimedOut,
                Ending::Stopped => End::Stopped,
                _ => End::Failed,
            },
            attempts: outcome.attempts,
            busy: micros(outcome.user + outcome.system),
            memory: outcome.peak_memory,
            cores: outcome.cores.clone(),
            name: name.chars().take(LONGEST_NAME).collect(),
            failure: if outcome.ending.is_success() {
                String::new()
            } else {
                outcome.ending.to_string()
            },
        }
    }
}

/// The finished jobs of a run, in a file without a name.
#[derive(Debug)]
pub(crate) struct Records {
    file: BufWriter<File>,
}

impl Records {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?) })
    }

    pub(crate) fn push(&mut self, record: &Record) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, record)?;
        self.file.write_all(b"\n")
    }

    /// All of them, in the order in which they were pushed.
    pub(crate) fn each(
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
