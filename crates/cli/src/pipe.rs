//! `--pipe`: cuts standard input into blocks of whole records, the standard input of jobs.
//!
//! A thread reads, because a read may block forever. It copies each block into a file in memory,
//! which the job reads itself: a slow job delays no other one, and a job that does not read
//! disturbs nobody. The block is there until its job is over, for another attempt. A [`Gate`]
//! bounds the number of blocks that exist; when it is reached, the thread stops reading.

mod boundary;
mod command;
mod cutter;
mod gate;
mod header;
mod options;
mod parts;
mod tee;

pub(crate) use command::PipedCommand;
pub(crate) use options::{parts, whole};
pub(crate) use parts::Parts;
pub(crate) use tee::Teed;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use brigade::runner::{BlockStreams, InputBlock, Stdin, Stopper};
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};

use crate::descriptors::{most_blocks, most_streams};
use crate::input::{Fetch, Fetched, Input, ReadAhead, receive};
use boundary::Boundary;
use cutter::{Amount, Cutter};
use gate::Gate;
use header::Header;

/// The way in which a stream is cut.
#[derive(Debug, Clone)]
pub(crate) struct Cut {
    amount: Amount,
    header: Header,
    /// Removed from blocks, if set.
    removed: Option<Boundary>,
    /// The size of a block that is aimed at.
    size: usize,
    /// `true` if a log records which blocks were done.
    is_logged: bool,
    sharing: Sharing,
}

/// Jobs whose standard input are blocks of a stream.
#[derive(Debug)]
pub(crate) struct Blocks {
    receiver: Receiver<io::Result<Stdin>>,
    command: PipedCommand,
    gate: Gate,
    /// The inputs of jobs that take turns, if they do.
    streams: Option<BlockStreams>,
    /// The jobs for which the thread has read.
    read_ahead: Arc<ReadAhead>,
}

/// The way in which blocks are shared out among jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// A job for each block.
    JobForEach,
    /// As many jobs as run at once. Each block goes to the next one that has room.
    ToTheNext,
    /// The same, but jobs get blocks strictly in turns.
    InTurns,
}

/// The blocks that wait for a job may take this much memory, or one block.
const AHEAD_BYTES: usize = 8 << 20;
/// Maximum number of blocks that wait for a job.
const AHEAD: usize = 8;

impl Blocks {
    /// Starts reading. `slots` is the number of jobs at once.
    pub(crate) fn new(
        reader: impl Read + Send + 'static,
        cut: Cut,
        command: PipedCommand,
        slots: usize,
        stopper: Stopper,
    ) -> Self {
        let ahead = (AHEAD_BYTES / cut.size).clamp(1, AHEAD);
        let is_shared = cut.sharing != Sharing::JobForEach;
        // All that take turns must run at once.
        let slots = if is_shared { slots.min(most_streams()) } else { slots };
        // A stream has a block that is read and one that waits.
        let most = if is_shared { 2 * slots + 1 } else { most_blocks().min(slots + ahead) };
        let gate = Gate::new(most);
        let read_ahead = Arc::<ReadAhead>::default();
        // Bounded by the gate.
        let (sender, receiver) = unbounded();
        let streams = match cut.sharing {
            Sharing::JobForEach => None,
            Sharing::ToTheNext => Some(BlockStreams::new(slots)),
            Sharing::InTurns => Some(BlockStreams::in_step(slots)),
        };
        let share = streams.clone().map(|streams| SharedBlocks { streams, slots, given: 0 });
        let (theirs, ahead) = (gate.clone(), Arc::clone(&read_ahead));
        let thread = PipeReader { gate: theirs, ahead, sender, stopper, share };
        thread::spawn(move || thread.run(reader, cut));
        Self { receiver, command, gate, streams, read_ahead }
    }
}

impl Input for Blocks {
    fn next(&mut self, waits: bool) -> Fetched {
        // The thread may wait for more of a stream that nobody needs.
        let are_over = || self.streams.as_ref().is_some_and(BlockStreams::are_over);
        match receive(&self.receiver, waits) {
            Ok(stdin) => self.command.job(stdin?),
            Err(TryRecvError::Empty) if !are_over() => Ok(Fetch::Later),
            Err(_) => Ok(Fetch::End),
        }
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.read_ahead.total()?.saturating_sub(self.command.jobs()))
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(None)
    }

    fn close(&mut self) {
        if let Some(streams) = &self.streams {
            // Those that take turns with the running jobs.
            streams.abandon_from(usize::try_from(self.command.jobs()).unwrap_or(usize::MAX));
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.gate.close();
        if let Some(streams) = &self.streams {
            streams.abandon_from(0);
        }
    }
}

/// The state of the thread that reads.
struct PipeReader {
    gate: Gate,
    ahead: Arc<ReadAhead>,
    sender: Sender<io::Result<Stdin>>,
    stopper: Stopper,
    share: Option<SharedBlocks>,
}

/// The state of blocks that are shared out among a number of jobs.
struct SharedBlocks {
    streams: BlockStreams,
    slots: usize,
    /// Number of blocks given to jobs.
    given: usize,
}

impl PipeReader {
    fn run(mut self, reader: impl Read, cut: Cut) {
        match self.read(reader, cut) {
            Ok(()) => self.ahead.is_complete.store(true, Ordering::SeqCst),
            // Nobody to tell if the run is over.
            Err(error) => drop(self.sender.send(Err(error))),
        }
        let Self { sender, stopper, share, .. } = self;
        if let Some(SharedBlocks { streams, .. }) = share {
            streams.end();
        }
        drop(sender);
        stopper.wake();
    }

    /// Reads to the end, or until nobody wants more blocks.
    fn read(&mut self, mut reader: impl Read, cut: Cut) -> io::Result<()> {
        let Cut { amount, mut header, removed, size, is_logged, sharing } = cut;
        let mut cutter = Cutter::new(amount, size);
        let mut emit = |header: &[u8], block: &[u8]| {
            let block = match &removed {
                Some(boundary) => boundary.remove_from(block),
                None => block.into(),
            };
            match sharing {
                Sharing::JobForEach => self.start(&[header, &block], is_logged),
                Sharing::ToTheNext | Sharing::InTurns => self.share(header, &block, sharing),
            }
        };
        loop {
            let count = match reader.read(cutter.room()) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let text = format!("cannot read standard input: {error}");
                    return Err(io::Error::new(error.kind(), text));
                }
            };
            let goes_on = if header.is_complete() {
                cutter.read(count, |block| emit(header.bytes(), block))
            } else {
                cutter.add(count);
                header.find(&mut cutter, false)?;
                !header.is_complete() || cutter.cut_early(|block| emit(header.bytes(), block))
            };
            if !goes_on {
                return Ok(());
            }
        }
        if !header.is_complete() {
            header.find(&mut cutter, true)?;
        }
        cutter.end(|block| emit(header.bytes(), block));
        Ok(())
    }

    /// Starts a job with a block of its own. Returns `false` if nobody wants more blocks.
    fn start(&self, parts: &[&[u8]], is_logged: bool) -> bool {
        let identity = if is_logged { hash(parts) } else { 0 };
        self.block(parts, identity).is_some_and(|block| self.send(Ok(Stdin::Block(block))))
    }

    /// Gives a block to one of several jobs, and starts it with its first block. Returns `false` if
    /// nobody wants more blocks.
    fn share(&mut self, header: &[u8], block: &[u8], sharing: Sharing) -> bool {
        let Some(block) = self.block(&[block], 0) else { return false };
        let Some(SharedBlocks { streams, slots, given }) = &mut self.share else { return false };
        let (index, is_first) = (*given % *slots, *given < *slots);
        *given += 1;
        let goes_on = if is_first || sharing == Sharing::InTurns {
            streams.give_to(index, block)
        } else {
            streams.give(block)
        };
        let stream = is_first.then(|| streams.stream(index, header.into()));
        goes_on && stream.is_none_or(|stream| self.send(Ok(Stdin::Stream(stream))))
    }

    /// Makes a block when there is room for it. Returns `None` if nobody wants more, and after a
    /// failure, which is sent.
    fn block(&self, parts: &[&[u8]], identity: u64) -> Option<InputBlock> {
        let made = self.gate.block(parts, identity)?;
        made.map_err(|error| self.send(Err(error))).ok()
    }

    fn send(&self, stdin: io::Result<Stdin>) -> bool {
        self.ahead.count.fetch_add(1, Ordering::SeqCst);
        let is_wanted = self.sender.send(stdin).is_ok();
        self.stopper.wake();
        is_wanted
    }
}

/// Returns a hash that is the same in every build: FNV-1a over words of eight bytes.
fn hash(parts: &[&[u8]]) -> u64 {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    let add = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    parts.iter().fold(START, |hash, part| {
        let (words, rest) = part.as_chunks::<8>();
        let hash = words.iter().fold(hash, |hash, word| add(hash, u64::from_le_bytes(*word)));
        rest.iter().fold(hash, |hash, byte| add(hash, u64::from(*byte)))
    })
}
