//! The messages of a link: a head of little-endian words, then an opaque payload.
//!
//! ```text
//! word 0   bits 0..8 kind, 8..16 flags, 16..32 ring index, 32..64 attempt (of an item: its index)
//! word 1   task                                            (all but Stop and Item)
//! word 2   function offset, length of a name, or run time in nanoseconds  (Run and Finished)
//! word 3   start of the run, in nanoseconds of the monotonic clock     (Finished)
//! then     hash of the types, 0 if they are unknown      (Run of a function by its name)
//! then     bits 0..32 items, 32..64 budget in microseconds                (Run of a chunk)
//! then     soft and hard limit in nanoseconds, all ones for none          (Run with limits)
//! then     offset in an arena, and length there        (Run with its argument in the arena)
//! then     length of a trace context                   (Run with a trace context)
//! then     length of a text of granted resources       (Run with resources)
//!
//! Flags of a Run: 1 a chunk, 2 argument in the arena, 4 with limits, 8 with segments, 16 with a
//! trace context, 32 with resources. The bytes of a name, then of a trace context, and then of the
//! resources end the head.
//! Flag of a Stop: 1 the worker stops after the next task, which it runs in its own process.
//! Flag of a finished task: 1 the worker asks to be replaced.
//! ```
//! Words are written and read as whole words: a processor stalls when it reads a word that it has
//! just written in smaller parts.
//!
//! Decoding borrows from the input, never allocates more than the input's size, and returns an
//! error for anything that is not a message.

mod from_worker;
mod inline;
mod limits;
mod outcome;
mod words;

use std::time::Duration;

use brigade_sys::clock::Monotonic;

use crate::error::MessageError;
use crate::location::Location;
use crate::outcome::Outcome;
use brigade_base::{Attempt, TaskId};
pub use inline::{FinishedInline, RunInline};
pub use limits::RunLimits;
use words::{
    NAME_LIMIT, Reader, chunk_word, first_word, push, push_location, split_chunk_word,
    split_first_word,
};

/// A message from the host to a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToWorker<'a> {
    /// Run a task, unless its state word says that it is revoked.
    Run(Run<'a>),
    /// Exit after all earlier messages were handled.
    Stop,
    /// Run the next task in the worker's own process, which the host limits.
    Yourself,
}

/// The name of a function across processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function<'a> {
    /// Its offset in the executable that both sides run.
    Offset(u64),
    /// A name that the worker's program has registered.
    Name {
        /// The name.
        name: &'a str,
        /// A hash of the types that the host gives the function; 0 if it does not know them.
        types: u64,
    },
}

/// A task to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run<'a> {
    /// The task's number.
    pub task: TaskId,
    /// The attempt's number.
    pub attempt: Attempt,
    /// Position of the task's state word in the shared table.
    pub ring_index: u16,
    /// The function to call.
    pub function: Function<'a>,
    /// Set if the argument holds several items, each of which is run separately.
    pub chunk: Option<Chunk>,
    /// The task's deadlines, as durations.
    pub limits: RunLimits,
    /// Set if the encoded argument lies in the pool's arena of arguments and not in the message.
    pub location: Option<Location>,
    /// `true` if the argument, or each item of a chunk, ends with a [list of
    /// segments](crate::segments). Numbers that are apart from an argument are copied by the host
    /// when the task begins.
    pub has_segments: bool,
    /// The caller's [trace context](TRACE_CONTEXT_LIMIT).
    pub trace_context: Option<&'a str>,
    /// The resources that the attempt has taken, as a text of less than 64 KiB.
    pub granted: Option<&'a str>,
    /// The encoded argument; for a chunk, its [items](crate::items).
    pub argument: &'a [u8],
}

/// Several items in one frame. The worker reports an outcome for each item, then
/// [`FromWorker::Finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Number of items.
    pub items: u32,
    /// Time after which the worker finishes without the remaining items. It is checked when an item
    /// ends and is sent in whole microseconds. From 71 minutes on there is no limit.
    pub budget: Duration,
}

/// A message from a worker to its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromWorker<'a> {
    /// The outcome of a task. For a chunk: no more items follow, and the value is empty.
    Finished(Finished<'a>),
    /// The outcome of one item of the running chunk.
    Item(Item<'a>),
    /// The task was revoked before it started, so the worker skipped it.
    Skipped {
        /// The task's number.
        task: TaskId,
        /// The attempt's number.
        attempt: Attempt,
        /// Position of the task's state word in the shared table.
        ring_index: u16,
    },
    /// The worker has begun a task, and waits for the next numbers that are apart from its
    /// argument.
    Wants(Wanted),
    /// The [shared buffers](crate::segments) of the task that finishes next which the worker
    /// continues to use after its end.
    Keeps(&'a [u8]),
    /// The buffers that the worker kept and no longer uses.
    Releases(&'a [u8]),
}

/// Memory of a worker for numbers: see [`Landing`](brigade_sys::arena::Landing).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Position of the task's state word in the shared table.
    pub ring_index: u16,
    /// Offset of the block in the arena of results.
    pub block: u64,
    /// Address of the memory in the worker; 0 if the block has the room.
    pub address: u64,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished<'a> {
    /// The task's number.
    pub task: TaskId,
    /// The attempt's number.
    pub attempt: Attempt,
    /// Position of the task's state word in the shared table.
    pub ring_index: u16,
    /// Time from start to end, measured in the worker.
    pub run_time: Duration,
    /// Time of the start.
    pub began: Monotonic,
    /// `true` if the worker exceeds its memory limit and asks to be replaced.
    pub worn: bool,
    /// The outcome of the attempt.
    pub outcome: Outcome<'a>,
}

/// The end of one item of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item<'a> {
    /// Ring index of the chunk.
    pub ring_index: u16,
    /// Position in the chunk, from 0. Items are run and reported in this order.
    pub index: u32,
    /// The outcome of the item.
    pub outcome: Outcome<'a>,
}

/// Maximum number of bytes of a trace context, the text with which tracing systems link spans of
/// two processes. W3C's `traceparent` has 55, and its `tracestate` usually less than 512.
pub const TRACE_CONTEXT_LIMIT: usize = 1024;

/// Maximum number of bytes of the text that names the resources of an attempt.
const GRANT_LIMIT: usize = NAME_LIMIT - 1;

const RUN_OFFSET: u8 = 1;
const RUN_NAME: u8 = 2;
const STOP: u8 = 3;
const YOURSELF: u8 = 1;
const KEEPS: u8 = 4;
const RELEASES: u8 = 5;
const WANTS: u8 = 6;
const SKIPPED: u8 = 21;
/// Added to the kind of an outcome if the outcome belongs to an item.
const ITEM: u8 = 32;

/// Flags of a run.
const IS_CHUNK: u8 = 1;
const IN_ARENA: u8 = 2;
const IS_LIMITED: u8 = 4;
const HAS_SEGMENTS: u8 = 8;
const HAS_CONTEXT: u8 = 16;
const HAS_GRANT: u8 = 32;
const FLAGS: u8 = 63;

/// Flag of a finished task.
const IS_WORN: u8 = 1;

impl<'a> ToWorker<'a> {
    /// Appends everything but the payload to `head`.
    ///
    /// # Panics
    /// If a function's name has 64 KiB or more; registration limits names to far less. If a trace
    /// context or the text of the resources is too long.
    #[inline]
    pub fn encode_head(&self, head: &mut Vec<u8>) {
        let run = match self {
            Self::Run(run) => run,
            Self::Stop => return push(head, first_word(STOP, 0, 0, 0)),
            Self::Yourself => return push(head, first_word(STOP, YOURSELF, 0, 0)),
        };
        let (kind, function) = match run.function {
            Function::Offset(offset) => (RUN_OFFSET, offset),
            Function::Name { name, .. } => (RUN_NAME, name.len() as u64),
        };
        let flags = if run.chunk.is_some() { IS_CHUNK } else { 0 }
            | if run.location.is_some() { IN_ARENA } else { 0 }
            | if run.limits.are_some() { IS_LIMITED } else { 0 }
            | if run.has_segments { HAS_SEGMENTS } else { 0 }
            | if run.trace_context.is_some() { HAS_CONTEXT } else { 0 }
            | if run.granted.is_some() { HAS_GRANT } else { 0 };
        push(head, first_word(kind, flags, run.ring_index, run.attempt.get()));
        push(head, run.task.get());
        push(head, function);
        if let Function::Name { types, .. } = run.function {
            push(head, types);
        }
        if let Some(chunk) = &run.chunk {
            push(head, chunk_word(chunk));
        }
        if run.limits.are_some() {
            push(head, run.limits.soft);
            push(head, run.limits.hard);
        }
        if let Some(location) = run.location {
            push_location(head, location);
        }
        if let Some(context) = run.trace_context {
            assert!(context.len() <= TRACE_CONTEXT_LIMIT, "a trace context is at most 1 KiB long");
            push(head, context.len() as u64);
        }
        if let Some(granted) = run.granted {
            assert!(granted.len() <= GRANT_LIMIT, "resources are described in less than 64 KiB");
            push(head, granted.len() as u64);
        }
        if let Function::Name { name, .. } = run.function {
            assert!(name.len() < NAME_LIMIT, "a function's name is shorter than 64 KiB");
            head.extend_from_slice(name.as_bytes());
        }
        if let Some(context) = run.trace_context {
            head.extend_from_slice(context.as_bytes());
        }
        if let Some(granted) = run.granted {
            head.extend_from_slice(granted.as_bytes());
        }
    }

    /// Returns the payload, which follows the head.
    pub fn payload(&self) -> &'a [u8] {
        match self {
            Self::Run(run) => run.argument,
            Self::Stop | Self::Yourself => &[],
        }
    }

    /// Decodes the message in `bytes`.
    ///
    /// # Errors
    /// [`MessageError`] if `bytes` is not a message.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, MessageError> {
        let mut reader = Reader(bytes);
        let (kind, flags, ring_index, attempt) = split_first_word(reader.word()?);
        if kind == STOP {
            return match (reader.0, flags) {
                ([], 0) => Ok(Self::Stop),
                ([], YOURSELF) => Ok(Self::Yourself),
                _ => Err(MessageError::Decode("malformed stop message")),
            };
        }
        let task = TaskId::new(reader.word()?);
        let function = reader.word()?;
        let mut run = Run {
            task,
            attempt: Attempt::new(attempt),
            ring_index,
            function: Function::Offset(function),
            chunk: None,
            limits: RunLimits::NONE,
            location: None,
            has_segments: flags & HAS_SEGMENTS != 0,
            trace_context: None,
            granted: None,
            argument: reader.0,
        };
        // By far the most common message has nothing else; see `RunInline`.
        if (kind, flags) != (RUN_OFFSET, 0) {
            run.decode_rest(kind, flags, function)?;
        }
        Ok(Self::Run(run))
    }
}

impl Run<'_> {
    /// Decodes what precedes the argument. `function` is an offset or the length of a name.
    fn decode_rest(&mut self, kind: u8, flags: u8, function: u64) -> Result<(), MessageError> {
        let mut reader = Reader(self.argument);
        if flags & !FLAGS != 0 {
            return Err(MessageError::Decode("unknown flags"));
        }
        let types = if kind == RUN_NAME { reader.word()? } else { 0 };
        if flags & IS_CHUNK != 0 {
            self.chunk = Some(split_chunk_word(reader.word()?));
        }
        if flags & IS_LIMITED != 0 {
            self.limits = RunLimits { soft: reader.word()?, hard: reader.word()? };
        }
        if flags & IN_ARENA != 0 {
            self.location = Some(reader.location()?);
        }
        let context = if flags & HAS_CONTEXT != 0 { Some(reader.word()?) } else { None };
        let granted = if flags & HAS_GRANT != 0 { Some(reader.word()?) } else { None };
        match kind {
            RUN_OFFSET => {}
            RUN_NAME => self.function = Function::Name { name: reader.name(function)?, types },
            _ => return Err(MessageError::Decode("unknown message kind")),
        }
        if context.is_some_and(|length| length > TRACE_CONTEXT_LIMIT as u64) {
            return Err(MessageError::Decode("trace context too long"));
        }
        self.trace_context = context.map(|length| reader.name(length)).transpose()?;
        self.granted = granted.map(|length| reader.name(length)).transpose()?;
        self.argument = reader.0;
        Ok(())
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
