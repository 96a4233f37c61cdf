//! What a pool was told and what it decided, step by step, so that a run can be played again without a process.
//!
//! [`Builder::journal`](crate::Builder::journal) records, [`replay`] gives the recorded events to a fresh machine and compares
//! what it decides with what was decided then. A decision that somebody wonders about can so be repeated at will; what tasks
//! were given and what they answered is not in it.
//!
//! A journal is a sequence of frames of postcard, each behind its length (four bytes, little-endian): first the version of
//! Brigade and the machine's settings, then for each event its time, itself, and the actions that followed.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::PoolError;
use crate::machine::{Action, Event, Machine, Now, Outbox, Settings};

/// What [`replay`] has played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Replay {
    /// Events that the machine was told.
    pub events: u64,
    /// Actions that it asked for, each the same as recorded.
    pub actions: u64,
    /// The last frame is not whole: the program was killed while it recorded. What is before it has been played.
    pub torn: bool,
}

/// Why a journal cannot be played, or does not play as it was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The journal could not be read.
    #[error("failed to read the journal")]
    Read(#[source] io::Error),
    /// It is no journal, or one of another version.
    #[error("frame {frame} is not what this version of Brigade ({}) records: {problem}", VERSION)]
    Format {
        /// Counted from 0, which is the frame of the settings.
        frame: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The machine decides something else than it did.
    #[error(
        "after event {number}, {event}, the machine asks for {replayed}, which is not what it asked for when that was recorded"
    )]
    Differs {
        /// The event, counted from 1.
        number: u64,
        /// The event itself.
        event: String,
        /// What the machine asks for now.
        replayed: String,
    },
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// No event is longer by far; what claims to be is not a journal.
const LONGEST_FRAME: u32 = 1 << 24;

#[derive(Serialize, Deserialize)]
struct Head {
    version: String,
    settings: Settings,
}

/// A journal that is being written. It is as long as the disk allows: some hundred bytes for each task.
#[derive(Debug)]
pub(crate) struct Journal {
    file: BufWriter<File>,
    frame: Vec<u8>,
}

impl Journal {
    pub(crate) fn create(path: &Path, settings: &Settings) -> Result<Self, PoolError> {
        let create = || {
            let mut journal = Self { file: BufWriter::new(File::create(path)?), frame: Vec::new() };
            let head = Head { version: VERSION.to_owned(), settings: settings.clone() };
            encode(&head, &mut journal.frame)?;
            journal.finish_frame()?;
            Ok(journal)
        };
        create().map_err(|error: io::Error| PoolError::Configuration {
            field: "journal",
            problem: format!("{} cannot be written: {error}", path.display()),
        })
    }

    /// Has the machine handle an event, in any case, and writes down both sides of it.
    pub(crate) fn record<T>(
        &mut self,
        machine: &mut Machine<T>,
        now: Now,
        event: Event<T>,
        outbox: &mut Outbox<T>,
    ) -> io::Result<()> {
        self.frame.clear();
        let encoded = encode(&(now, &event), &mut self.frame);
        machine.handle(now, event, outbox);
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

/// Plays a journal that [`Builder::journal`](crate::Builder::journal) has recorded to the machine of a pool, without a pool.
///
/// # Errors
/// When it cannot be read, is not a journal of this version, or the machine decides differently.
pub fn replay(journal: impl Read) -> Result<Replay, ReplayError> {
    let mut frames = Frames { source: io::BufReader::new(journal), frame: Vec::new(), number: 0 };
    let mut played = Replay { events: 0, actions: 0, torn: false };
    if !frames.next()? {
        return Err(frames.format("it is empty"));
    }
    let head: Head = postcard::from_bytes(&frames.frame)
        .map_err(|_| frames.format("it does not begin with a version and settings"))?;
    if head.version != VERSION {
        return Err(frames.format(format!("it was recorded by version {}", head.version)));
    }
    let mut machine = Machine::<()>::new(head.settings);
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
        let ((now, event), recorded): ((Duration, Event<()>), _) =
            postcard::take_from_bytes(&frames.frame)
                .map_err(|error| frames.format(error.to_string()))?;
        let told = format!("{event:?}");
        machine.handle(now, event, &mut outbox);
        played.events += 1;
        decided.clear();
        encode_actions(&outbox, &mut decided).map_err(ReplayError::Read)?;
        if decided != recorded {
            return Err(ReplayError::Differs {
                number: played.events,
                event: told,
                replayed: format!("{:?}", outbox.actions().collect::<Vec<_>>()),
            });
        }
        while let Some(action) = outbox.pop() {
            played.actions += 1;
            if let Action::Rearm = action {
                // As the driver does.
                machine.arm();
            }
        }
    }
}

struct Frames<R> {
    source: R,
    frame: Vec<u8>,
    number: u64,
}

impl<R: Read> Frames<R> {
    /// False at the end; a frame that is not whole is an error of kind `UnexpectedEof`.
    fn next(&mut self) -> Result<bool, ReplayError> {
        let mut length = [0; 4];
        if self.source.read(&mut length[..1]).map_err(ReplayError::Read)? == 0 {
            return Ok(false);
        }
        self.source.read_exact(&mut length[1..]).map_err(ReplayError::Read)?;
        let length = u32::from_le_bytes(length);
        if length > LONGEST_FRAME {
            return Err(self.format(format!("{length} bytes are more than any event takes")));
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
