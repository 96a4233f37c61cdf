//! What goes over a link: a fixed little-endian head, then an opaque payload.
//!
//! Decoding borrows from the input, never allocates more than the input's size, and answers anything that is no
//! message with an error.

use std::time::Duration;

use crate::error::MessageError;
use crate::ids::{Attempt, TaskId};
use crate::outcome::{Outcome, PanicReport};

/// From the host to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToWorker<'a> {
    /// Run a task, unless its slot says that it is revoked.
    Run(Run<'a>),
    /// Leave once everything before this was handled.
    Stop,
}

/// One task to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<'a> {
    /// The task.
    pub task: TaskId,
    /// Which run of it.
    pub attempt: Attempt,
    /// Its slot in the table of task states.
    pub slot: u16,
    /// What to call.
    pub function: Function<'a>,
    /// The encoded argument.
    pub argument: &'a [u8],
}

/// How a function is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function<'a> {
    /// By its place in the executable that both sides run.
    Offset(u64),
    /// By a name that the worker's program registered.
    Name(&'a str),
}

/// From a worker to its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromWorker<'a> {
    /// A task was run, or could not be.
    Finished(Finished<'a>),
    /// A task was revoked before it began, and passed over.
    Skipped {
        /// The task.
        task: TaskId,
        /// Which run of it.
        attempt: Attempt,
        /// Its slot.
        slot: u16,
    },
}

/// The end of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<'a> {
    /// The task.
    pub task: TaskId,
    /// Which run of it.
    pub attempt: Attempt,
    /// Its slot.
    pub slot: u16,
    /// From the begin to the end, in the worker.
    pub run_time: Duration,
    /// What became of it.
    pub outcome: Outcome<'a>,
}

const RUN_OFFSET: u8 = 1;
const RUN_NAME: u8 = 2;
const STOP: u8 = 3;
const VALUE: u8 = 16;
const PANICKED: u8 = 17;
const ARGUMENT_CODEC: u8 = 18;
const RESULT_CODEC: u8 = 19;
const UNKNOWN_FUNCTION: u8 = 20;
const SKIPPED: u8 = 21;

impl<'a> ToWorker<'a> {
    /// Appends everything but the payload.
    ///
    /// # Panics
    /// When a function's name has 64 KiB or more; whoever registers a name keeps it far below.
    pub fn encode_head(&self, head: &mut Vec<u8>) {
        match self {
            Self::Run(run) => {
                let kind = match run.function {
                    Function::Offset(_) => RUN_OFFSET,
                    Function::Name(_) => RUN_NAME,
                };
                begin(head, kind, run.task, run.attempt, run.slot);
                match run.function {
                    Function::Offset(offset) => head.extend(offset.to_le_bytes()),
                    Function::Name(name) => {
                        let length = u16::try_from(name.len())
                            .expect("a function's name is shorter than 64 KiB");
                        head.extend(length.to_le_bytes());
                        head.extend(name.as_bytes());
                    }
                }
            }
            Self::Stop => head.push(STOP),
        }
    }

    /// What follows the head.
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Self::Run(run) => run.argument,
            Self::Stop => &[],
        }
    }

    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`MessageError`] when there is none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let kind = reader.byte()?;
        if kind == STOP {
            return if reader.0.is_empty() {
                Ok(Self::Stop)
            } else {
                Err(MessageError::Decode("a stop with a payload"))
            };
        }
        let (task, attempt, slot) = reader.ids()?;
        let function = match kind {
            RUN_OFFSET => Function::Offset(u64::from_le_bytes(reader.array()?)),
            RUN_NAME => {
                let length = u16::from_le_bytes(reader.array()?);
                let name = reader.take(usize::from(length))?;
                Function::Name(
                    std::str::from_utf8(name)
                        .map_err(|_| MessageError::Decode("a name that is not UTF-8"))?,
                )
            }
            _ => return Err(MessageError::Decode("an unknown kind")),
        };
        Ok(Self::Run(Run { task, attempt, slot, function, argument: reader.0 }))
    }
}

impl<'a> FromWorker<'a> {
    /// Appends everything but the payload.
    pub fn encode_head(&self, head: &mut Vec<u8>) {
        match self {
            Self::Finished(finished) => {
                let kind = match finished.outcome {
                    Outcome::Value(_) => VALUE,
                    Outcome::Panicked(_) => PANICKED,
                    Outcome::ArgumentCodec(_) => ARGUMENT_CODEC,
                    Outcome::ResultCodec(_) => RESULT_CODEC,
                    Outcome::UnknownFunction(_) => UNKNOWN_FUNCTION,
                };
                begin(head, kind, finished.task, finished.attempt, finished.slot);
                let nanos = u64::try_from(finished.run_time.as_nanos()).unwrap_or(u64::MAX);
                head.extend(nanos.to_le_bytes());
                if let Outcome::Panicked(report) = &finished.outcome {
                    append_report(head, report);
                }
            }
            Self::Skipped { task, attempt, slot } => begin(head, SKIPPED, *task, *attempt, *slot),
        }
    }

    /// What follows the head.
    pub fn payload(&self) -> &[u8] {
        match self {
            Self::Finished(finished) => match &finished.outcome {
                Outcome::Value(value) => value,
                Outcome::ArgumentCodec(text)
                | Outcome::ResultCodec(text)
                | Outcome::UnknownFunction(text) => text.as_bytes(),
                Outcome::Panicked(_) => &[],
            },
            Self::Skipped { .. } => &[],
        }
    }

    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`MessageError`] when there is none.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let kind = reader.byte()?;
        let (task, attempt, slot) = reader.ids()?;
        if kind == SKIPPED {
            return if reader.0.is_empty() {
                Ok(Self::Skipped { task, attempt, slot })
            } else {
                Err(MessageError::Decode("a skip with a payload"))
            };
        }
        let run_time = Duration::from_nanos(u64::from_le_bytes(reader.array()?));
        let payload = reader.0;
        let text = || {
            let text = std::str::from_utf8(payload);
            text.map(str::to_owned).map_err(|_| MessageError::Decode("a text that is not UTF-8"))
        };
        let outcome = match kind {
            VALUE => Outcome::Value(payload),
            PANICKED => match postcard::take_from_bytes(payload) {
                Ok((report, [])) => Outcome::Panicked(report),
                _ => return Err(MessageError::Decode("a panic report that is none")),
            },
            ARGUMENT_CODEC => Outcome::ArgumentCodec(text()?),
            RESULT_CODEC => Outcome::ResultCodec(text()?),
            UNKNOWN_FUNCTION => Outcome::UnknownFunction(text()?),
            _ => return Err(MessageError::Decode("an unknown kind")),
        };
        Ok(Self::Finished(Finished { task, attempt, slot, run_time, outcome }))
    }
}

fn append_report(head: &mut Vec<u8>, report: &PanicReport) {
    let report = postcard::to_stdvec(report).expect("strings are encoded without fail");
    head.extend(report);
}

fn begin(head: &mut Vec<u8>, kind: u8, task: TaskId, attempt: Attempt, slot: u16) {
    head.push(kind);
    head.extend(task.get().to_le_bytes());
    head.extend(attempt.get().to_le_bytes());
    head.extend(slot.to_le_bytes());
}

/// Takes bytes from the front and never runs over the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], MessageError> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(MessageError::Decode("a message that is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("as many as were taken"))
    }

    fn byte(&mut self) -> Result<u8, MessageError> {
        Ok(self.array::<1>()?[0])
    }

    fn ids(&mut self) -> Result<(TaskId, Attempt, u16), MessageError> {
        let task = TaskId::new(u64::from_le_bytes(self.array()?));
        let attempt = Attempt::new(u32::from_le_bytes(self.array()?));
        Ok((task, attempt, u16::from_le_bytes(self.array()?)))
    }
}

#[cfg(test)]
mod tests;
