//! `--pipe`: cuts standard input into blocks of whole records, the standard input of jobs.
//!
//! A thread reads, because a read may block forever. It copies each block into a file in memory,
//! which the job reads itself: a slow job delays no other one, and a job that does not read
//! disturbs nobody. The block is there until its job is over, for another attempt. A [`Gate`]
//! bounds the number of blocks that exist; when it is reached, the thread stops reading.

mod boundary;
mod cutter;
mod gate;
mod header;
mod jobs;
mod options;
mod parts;

pub(crate) use jobs::{PipedJobs, SharedInput, Source};
pub(crate) use options::{parts, whole};

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::thread;

use brigade::runner::{BlockSharing, BlockStreams, InputBlock, Stdin, Stopper};
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::descriptors::{most_blocks, most_streams};
use crate::input::{Fetched, ReadAhead, receive};
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
    /// `None` for a job for each block; else there are as many jobs as run at once.
    sharing: Option<BlockSharing>,
}

/// Standard input, which a thread reads and hands out in blocks. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Blocks {
    receiver: Receiver<io::Result<Stdin>>,
    gate: Gate,
    /// The inputs of jobs that share the blocks, if they do.
    streams: Option<BlockStreams>,
    /// The jobs for which the thread has read.
    read_ahead: Arc<ReadAhead>,
}

/// The blocks that wait for a job may take this much memory, or one block.
const AHEAD_BYTES: usize = 8 << 20;
/// Maximum number of blocks that wait for a job.
const AHEAD: usize = 8;

/// A slow job has a block that it reads and one that waits; a third one is read meanwhile.
const BLOCKS_FOR_ALL: usize = 3;
/// The most that is read at once for all jobs. A pipe holds less by default.
const SHARED_SIZE: usize = 1 << 20;

impl Cut {
    /// Returns the cut for jobs that all get the whole stream.
    pub(crate) fn for_all() -> Self {
        Self {
            amount: Amount::Arrived,
            header: Header::lines(0),
            removed: None,
            size: SHARED_SIZE,
            is_logged: false,
            sharing: Some(BlockSharing::ToAll),
        }
    }
}

impl Blocks {
    /// Starts reading for this number of jobs at once.
    pub(crate) fn new(
        reader: impl Read + Send + 'static,
        cut: Cut,
        jobs: usize,
        stopper: Stopper,
    ) -> Self {
        let (jobs, most) = match cut.sharing {
            None => {
                let ahead = (AHEAD_BYTES / cut.size).clamp(1, AHEAD);
                (jobs, most_blocks().min(jobs + ahead))
            }
            Some(BlockSharing::ToAll) => (jobs, BLOCKS_FOR_ALL),
            Some(_) => {
                // All that take turns must run at once, each with two blocks.
                let jobs = jobs.min(most_streams());
                (jobs, 2 * jobs + 1)
            }
        };
        let gate = Gate::new(most);
        let read_ahead = Arc::<ReadAhead>::default();
        // Bounded by the gate.
        let (sender, receiver) = unbounded();
        let streams = cut.sharing.map(|sharing| BlockStreams::new(jobs, sharing));
        let thread = PipeReader {
            gate: gate.clone(),
            ahead: Arc::clone(&read_ahead),
            sender,
            stopper,
            streams: streams.clone(),
            starts: if cut.sharing == Some(BlockSharing::ToAll) { 0..0 } else { 0..jobs },
        };
        thread::spawn(move || thread.run(reader, cut));
        Self { receiver, gate, streams, read_ahead }
    }

    /// Returns the standard input of the next job to start; waits for it if `waits` is set.
    pub(crate) fn next(&mut self, waits: bool) -> Fetched<Stdin> {
        // The thread may wait for more of a stream that nobody needs.
        let are_over = || self.streams.as_ref().is_some_and(BlockStreams::are_over);
        match receive(&self.receiver, waits) {
            Poll::Ready(Some(stdin)) => Poll::Ready(Some(Ok(stdin?))),
            Poll::Pending if !are_over() => Poll::Pending,
            _ => Poll::Ready(None),
        }
    }

    /// Returns the stream of one of the jobs that share the blocks.
    pub(crate) fn stream(&self, index: usize) -> Stdin {
        let streams = self.streams.as_ref();
        streams.map_or(Stdin::Null, |streams| Stdin::Stream(streams.stream(index, [].into())))
    }

    /// Takes note that no jobs start but those that have: they do not wait for the others.
    pub(crate) fn close(&self, started: u64) {
        if let Some(streams) = &self.streams {
            streams.abandon_from(usize::try_from(started).unwrap_or(usize::MAX));
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.gate.close();
        self.close(0);
    }
}

/// The state of the thread that reads.
struct PipeReader {
    gate: Gate,
    ahead: Arc<ReadAhead>,
    sender: Sender<io::Result<Stdin>>,
    stopper: Stopper,
    /// The jobs that share the blocks, if they do.
    streams: Option<BlockStreams>,
    /// Those of them that start with their first block.
    starts: Range<usize>,
}

impl PipeReader {
    fn run(mut self, reader: impl Read, cut: Cut) {
        match self.read(reader, cut) {
            Ok(()) => self.ahead.is_complete.store(true, Ordering::SeqCst),
            // Nobody to tell if the run is over.
            Err(error) => drop(self.sender.send(Err(error))),
        }
        let Self { sender, stopper, streams, .. } = self;
        if let Some(streams) = streams {
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
                None => self.start(&[header, &block], is_logged),
                Some(_) => self.share(header, &block),
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

    /// Gives a block to jobs that share them, and starts one with its first block. Returns `false`
    /// if nobody wants more blocks.
    fn share(&mut self, header: &[u8], block: &[u8]) -> bool {
        let block = self.block(&[block], 0);
        let (Some(block), Some(streams)) = (block, &self.streams) else { return false };
        if !streams.give(&block) {
            return false;
        }
        let Some(index) = self.starts.next() else { return true };
        self.send(Ok(Stdin::Stream(streams.stream(index, header.into()))))
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
