//! Records what a pool's scheduler receives and decides, so that a run can be replayed without
//! processes: deterministic record and replay.
//!
//! `PoolBuilder::journal` records a journal. [`replay`] passes the recorded events to a new
//! scheduler and compares its decisions with the recorded ones, so a surprising decision can be
//! repeated at will. The journal contains neither the arguments of tasks nor their results.
//!
//! A journal is a sequence of postcard frames, each after its length (four bytes, little-endian).
//! The first frame holds the version of Brigade and the scheduler's settings. Each other frame
//! holds an event with its time, and the actions that followed.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use brigade_base::{Monotonic, TaskId};
use serde::{Deserialize, Serialize};

use crate::{Event, Outbox, Scheduler, Settings, TaskData};

/// The result of [`replay`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// Number of events passed to the scheduler.
    pub events: u64,
    /// Number of resulting actions, all of which equal the recorded ones.
    pub actions: u64,
    /// `true` if the last frame is incomplete because the program was killed while it recorded.
    /// Everything before it was replayed.
    pub torn: bool,
}

/// The error of [`replay`].
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The journal could not be read.
    #[error("cannot read the journal")]
    Read(#[source] io::Error),
    /// The file is not a journal, or one of another version.
    #[error(
        "frame {frame} is not one that this version of Brigade ({}) records: {problem}",
        VERSION
    )]
    Format {
        /// Index of the frame. Frame 0 holds the settings.
        frame: u64,
        /// Description of the problem.
        problem: String,
    },
    /// The scheduler's decisions differ from the recorded ones.
    #[error(
        "after event {number}, {event}, the scheduler requests {replayed}, which differs from the journal"
    )]
    Differs {
        /// Index of the event, counted from 1.
        number: u64,
        /// The event itself.
        event: String,
        /// The actions that the scheduler requests now.
        replayed: String,
    },
}

impl fmt::Debug for ReplayError {
    /// Writes the text of the error and that of its source, which a `main` that returns it prints.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(cause) => write!(out, "{self}: {cause}"),
            Self::Format { .. } | Self::Differs { .. } => write!(out, "{self}"),
        }
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Far longer than any event, so that a file with a longer frame is not a journal.
const MAX_FRAME: u32 = 1 << 24;

#[derive(Serialize, Deserialize)]
struct Head {
    version: String,
    settings: Settings,
}

/// A journal that is being written. It grows by a few hundred bytes per task, without a limit.
#[derive(Debug)]
pub struct Journal {
    file: BufWriter<File>,
    frame: Vec<u8>,
}

impl Journal {
    /// Creates the file, or truncates it, and writes the settings.
    pub fn create(path: &Path, settings: &Settings) -> io::Result<Self> {
        let mut journal = Self { file: BufWriter::new(File::create(path)?), frame: Vec::new() };
        let head = Head { version: VERSION.to_owned(), settings: settings.clone() };
        encode(&head, &mut journal.frame)?;
        journal.finish_frame()?;
        Ok(journal)
    }

    /// Passes an event to the scheduler, and records the event and the resulting actions. The event
    /// is handled even if recording fails.
    pub fn record<T: TaskData>(
        &mut self,
        scheduler: &mut Scheduler<T>,
        now: Monotonic,
        event: Event<T>,
        outbox: &mut Outbox<T>,
    ) -> io::Result<()> {
        self.frame.clear();
        let encoded = encode(&(now, &event), &mut self.frame);
        scheduler.handle(now, event, outbox);
        encoded?;
        encode_actions(outbox, &mut self.frame)?;
        self.finish_frame()
    }

    fn finish_frame(&mut self) -> io::Result<()> {
        let length = u32::try_from(self.frame.len()).map_err(io::Error::other)?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&self.frame)
    }
}

/// Replays a journal that `PoolBuilder::journal` recorded, without a
/// pool.
///
/// # Errors
/// Fails if the journal cannot be read, is not a journal of this version, or if the scheduler
/// decides differently.
pub fn replay(journal: impl Read) -> Result<Replay, ReplayError> {
    let mut frames =
        JournalFrames { source: io::BufReader::new(journal), frame: Vec::new(), number: 0 };
    let mut played = Replay { events: 0, actions: 0, torn: false };
    if !frames.next()? {
        return Err(frames.format("the journal is empty"));
    }
    let head: Head = postcard::from_bytes(&frames.frame)
        .map_err(|_| frames.format("the journal does not begin with a version and settings"))?;
    if head.version != VERSION {
        return Err(frames.format(format!("the journal was recorded by version {}", head.version)));
    }
    let mut scheduler = Scheduler::new(head.settings, |first: &TaskId, at| {
        // The id of the first item that is split off.
        TaskId::new(first.get() + u64::from(at))
    });
    let mut outbox = Outbox::default();
    let mut decided = Vec::new();
    loop {
        match frames.next() {
            Ok(true) => {}
            Ok(false) => return Ok(played),
            Err(ReplayError::Read(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(Replay { torn: true, ..played });
            }
            Err(error) => return Err(error),
        }
        let ((now, event), recorded): ((Monotonic, Event<TaskId>), _) =
            postcard::take_from_bytes(&frames.frame)
                .map_err(|error| frames.format(error.to_string()))?;
        let event_text = format!("{event:?}");
        scheduler.handle(now, event, &mut outbox);
        played.events += 1;
        decided.clear();
        encode_actions(&outbox, &mut decided).map_err(ReplayError::Read)?;
        if decided != recorded {
            return Err(ReplayError::Differs {
                number: played.events,
                event: event_text,
                replayed: format!("{:?}", outbox.actions().collect::<Vec<_>>()),
            });
        }
        while outbox.pop().is_some() {
            played.actions += 1;
        }
    }
}

struct JournalFrames<R> {
    source: R,
    frame: Vec<u8>,
    number: u64,
}

impl<R: Read> JournalFrames<R> {
    /// Reads the next frame. Returns `false` at the end; an incomplete frame is an error of kind
    /// `UnexpectedEof`.
    fn next(&mut self) -> Result<bool, ReplayError> {
        let mut length = [0; 4];
        if self.source.read(&mut length[..1]).map_err(ReplayError::Read)? == 0 {
            return Ok(false);
        }
        self.source.read_exact(&mut length[1..]).map_err(ReplayError::Read)?;
        let length = u32::from_le_bytes(length);
        if length > MAX_FRAME {
            return Err(self.format(format!("no event is as long as {length} bytes")));
        }
        self.frame.resize(length as usize, 0);
        self.source.read_exact(&mut self.frame).map_err(ReplayError::Read)?;
        self.number += 1;
        Ok(true)
    }

    fn format(&self, problem: impl Into<String>) -> ReplayError {
        ReplayError::Format { frame: self.number.saturating_sub(1), problem: problem.into() }
    }
}

fn encode_actions<T>(outbox: &Outbox<T>, out: &mut Vec<u8>) -> io::Result<()> {
    outbox.actions().try_for_each(|action| encode(action, out))
}

fn encode(value: &impl Serialize, out: &mut Vec<u8>) -> io::Result<()> {
    postcard::to_io(value, out).map(|_| ()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
