//! What goes over a link: a head of little-endian words, then an opaque payload.
//!
//! ```text
//! word 0   bits 0..8 kind, 8..16 flags, 16..32 slot, 32..64 attempt (of an item: its index)
//! word 1   task                              (all but Stop and Item)
//! word 2   function offset, length of a name, or run time in nanoseconds       (Run and Finished)
//! then     bits 0..32 items, 32..64 budget in microseconds                     (Run of a chunk)
//! then     soft and hard limit in nanoseconds, all ones for none                (Run with limits)
//! then     offset in an arena, and length there                                (Run with an argument that is placed)
//!
//! Flags of a Run: 1 a chunk, 2 placed, 4 with limits. Of a finished task: 1 the worker is to be replaced.
//! ```
//! Words are written and read as words: a processor that reads what it wrote in other pieces just before must wait.
//!
//! Decoding borrows from the input, never allocates more than the input's size, and answers anything that is no
//! message with an error.

mod limits;
mod words;

use std::time::Duration;

use crate::error::MessageError;
use crate::ids::{Attempt, TaskId};
use crate::outcome::{Outcome, PanicReport};
pub use limits::RunLimits;
use words::{
    NAME_LIMIT, Reader, chunk_word, first_word, push, push_place, split_chunk_word,
    split_first_word,
};

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
    /// Set when the argument holds several items, each of which is run by itself.
    pub chunk: Option<Chunk>,
    /// How long it may run.
    pub limits: RunLimits,
    /// Set when the encoded argument is not in here but in the pool's arena of arguments.
    pub placed: Option<Place>,
    /// The encoded argument; of a chunk its [items](crate::items).
    pub argument: &'a [u8],
}

/// Where encoded bytes lie in an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From the arena's beginning.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

/// Several items in one frame, answered one by one and then with [`FromWorker::Finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// How many.
    pub items: u32,
    /// When so much time has passed at the end of an item, the worker finishes without the rest; in whole microseconds.
    pub budget: Duration,
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
    /// A task was run, or could not be. Of a chunk: no more items follow, and the value is empty.
    Finished(Finished<'a>),
    /// An item of the chunk that runs was run.
    Item(Item<'a>),
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
    /// The worker uses more memory than it may, and asks to be replaced.
    pub worn: bool,
    /// What became of it.
    pub outcome: Outcome<'a>,
}

/// The end of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// The slot of its chunk.
    pub slot: u16,
    /// Its place in the chunk, from 0 on. Items are run, and answered, in this order.
    pub index: u32,
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
const PLACED: u8 = 22;
/// Added to the kind of an outcome when it is an item's.
const ITEM: u8 = 32;

/// In the flags of a run.
const IS_CHUNK: u8 = 1;
const IS_PLACED: u8 = 2;
const IS_LIMITED: u8 = 4;

/// In the flags of a finished task.
const IS_WORN: u8 = 1;

impl<'a> ToWorker<'a> {
    /// Appends everything but the payload.
    ///
    /// # Panics
    /// When a function's name has 64 KiB or more; whoever registers a name keeps it far below.
    #[inline]
    pub fn encode_head(&self, head: &mut Vec<u8>) {
        let Self::Run(run) = self else {
            return push(head, first_word(STOP, 0, 0, 0));
        };
        let (kind, function) = match run.function {
            Function::Offset(offset) => (RUN_OFFSET, offset),
            Function::Name(name) => (RUN_NAME, name.len() as u64),
        };
        let flags = if run.chunk.is_some() { IS_CHUNK } else { 0 }
            | if run.placed.is_some() { IS_PLACED } else { 0 }
            | if run.limits.are_some() { IS_LIMITED } else { 0 };
        push(head, first_word(kind, flags, run.slot, run.attempt.get()));
        push(head, run.task.get());
        push(head, function);
        if let Some(chunk) = &run.chunk {
            push(head, chunk_word(chunk));
        }
        if run.limits.are_some() {
            push(head, run.limits.soft);
            push(head, run.limits.hard);
        }
        if let Some(place) = run.placed {
            push_place(head, place);
        }
        if let Function::Name(name) = run.function {
            assert!(name.len() < NAME_LIMIT, "a function's name is shorter than 64 KiB");
            head.extend_from_slice(name.as_bytes());
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
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let (kind, flags, slot, attempt) = split_first_word(reader.word()?);
        if kind == STOP {
            return if reader.0.is_empty() {
                Ok(Self::Stop)
            } else {
                Err(MessageError::Decode("a stop with a payload"))
            };
        }
        let task = TaskId::new(reader.word()?);
        let function = reader.word()?;
        if flags & !(IS_CHUNK | IS_PLACED | IS_LIMITED) != 0 {
            return Err(MessageError::Decode("unknown flags"));
        }
        let chunk =
            if flags & IS_CHUNK != 0 { Some(split_chunk_word(reader.word()?)) } else { None };
        let limits = if flags & IS_LIMITED != 0 {
            RunLimits { soft: reader.word()?, hard: reader.word()? }
        } else {
            RunLimits::NONE
        };
        let placed = if flags & IS_PLACED != 0 { Some(reader.place()?) } else { None };
        let function = match kind {
            RUN_OFFSET => Function::Offset(function),
            RUN_NAME => Function::Name(reader.name(function)?),
            _ => return Err(MessageError::Decode("an unknown kind")),
        };
        let attempt = Attempt::new(attempt);
        Ok(Self::Run(Run {
            task,
            attempt,
            slot,
            function,
            chunk,
            limits,
            placed,
            argument: reader.0,
        }))
    }
}

impl<'a> FromWorker<'a> {
    /// Appends everything but the payload.
    #[inline]
    pub fn encode_head(&self, head: &mut Vec<u8>) {
        let outcome = match self {
            Self::Finished(finished) => {
                let kind = outcome_kind(&finished.outcome);
                let flags = if finished.worn { IS_WORN } else { 0 };
                push(head, first_word(kind, flags, finished.slot, finished.attempt.get()));
                push(head, finished.task.get());
                push(head, u64::try_from(finished.run_time.as_nanos()).unwrap_or(u64::MAX));
                &finished.outcome
            }
            Self::Item(item) => {
                let kind = outcome_kind(&item.outcome) + ITEM;
                push(head, first_word(kind, 0, item.slot, item.index));
                &item.outcome
            }
            Self::Skipped { task, attempt, slot } => {
                push(head, first_word(SKIPPED, 0, *slot, attempt.get()));
                return push(head, task.get());
            }
        };
        match outcome {
            Outcome::Panicked(report) => append_report(head, report),
            Outcome::Placed(place) => push_place(head, *place),
            _ => {}
        }
    }

    /// What follows the head.
    pub fn payload(&self) -> &[u8] {
        match self {
            Self::Finished(Finished { outcome, .. }) | Self::Item(Item { outcome, .. }) => {
                match outcome {
                    Outcome::Value(value) => value,
                    Outcome::ArgumentCodec(text)
                    | Outcome::ResultCodec(text)
                    | Outcome::UnknownFunction(text) => text.as_bytes(),
                    Outcome::Panicked(_) | Outcome::Placed(_) => &[],
                }
            }
            Self::Skipped { .. } => &[],
        }
    }

    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`MessageError`] when there is none.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let (kind, flags, slot, number) = split_first_word(reader.word()?);
        let is_finished = (VALUE..ITEM).contains(&kind) && kind != SKIPPED;
        if flags & !(if is_finished { IS_WORN } else { 0 }) != 0 {
            return Err(MessageError::Decode("unknown flags"));
        }
        if let Some(kind) = kind.checked_sub(ITEM) {
            let outcome = decode_outcome(kind, reader.0)?;
            return Ok(Self::Item(Item { slot, index: number, outcome }));
        }
        let (task, attempt) = (TaskId::new(reader.word()?), Attempt::new(number));
        if kind == SKIPPED {
            return if reader.0.is_empty() {
                Ok(Self::Skipped { task, attempt, slot })
            } else {
                Err(MessageError::Decode("a skip with a payload"))
            };
        }
        let run_time = Duration::from_nanos(reader.word()?);
        let outcome = decode_outcome(kind, reader.0)?;
        let worn = flags & IS_WORN != 0;
        Ok(Self::Finished(Finished { task, attempt, slot, run_time, worn, outcome }))
    }
}

fn outcome_kind(outcome: &Outcome<'_>) -> u8 {
    match outcome {
        Outcome::Value(_) => VALUE,
        Outcome::Placed(_) => PLACED,
        Outcome::Panicked(_) => PANICKED,
        Outcome::ArgumentCodec(_) => ARGUMENT_CODEC,
        Outcome::ResultCodec(_) => RESULT_CODEC,
        Outcome::UnknownFunction(_) => UNKNOWN_FUNCTION,
    }
}

#[inline]
fn decode_outcome(kind: u8, payload: &[u8]) -> Result<Outcome<'_>, MessageError> {
    if kind == VALUE { Ok(Outcome::Value(payload)) } else { decode_other(kind, payload) }
}

/// Apart from the values in the message, which are almost all there is.
#[cold]
fn decode_other(kind: u8, payload: &[u8]) -> Result<Outcome<'_>, MessageError> {
    let text = || {
        let text = std::str::from_utf8(payload);
        text.map(str::to_owned).map_err(|_| MessageError::Decode("a text that is not UTF-8"))
    };
    match kind {
        PLACED => {
            let mut reader = Reader(payload);
            let place = reader.place()?;
            if reader.0.is_empty() {
                Ok(Outcome::Placed(place))
            } else {
                Err(MessageError::Decode("a place with a payload"))
            }
        }
        PANICKED => match postcard::take_from_bytes(payload) {
            Ok((report, [])) => Ok(Outcome::Panicked(Box::new(report))),
            _ => Err(MessageError::Decode("a panic report that is none")),
        },
        ARGUMENT_CODEC => Ok(Outcome::ArgumentCodec(text()?)),
        RESULT_CODEC => Ok(Outcome::ResultCodec(text()?)),
        UNKNOWN_FUNCTION => Ok(Outcome::UnknownFunction(text()?)),
        _ => Err(MessageError::Decode("an unknown kind")),
    }
}

fn append_report(head: &mut Vec<u8>, report: &PanicReport) {
    let report = postcard::to_stdvec(report).expect("strings are encoded without fail");
    head.extend(report);
}

#[cfg(test)]
mod tests;
