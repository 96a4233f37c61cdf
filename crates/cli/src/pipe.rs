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

pub(crate) use command::PipedCommand;
pub(crate) use options::parts;
pub(crate) use parts::Parts;

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use brigade::runner::{InputBlock, Stdin, Stopper};
use crossbeam_channel::{Receiver, Sender, TryRecvError, unbounded};

use crate::input::{Fetch, Input};
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
}

/// Jobs whose standard input are blocks of a stream.
#[derive(Debug)]
pub(crate) struct Blocks {
    receiver: Receiver<io::Result<InputBlock>>,
    command: PipedCommand,
    gate: Gate,
    read_ahead: Arc<ReadAhead>,
}

/// The blocks that the thread has read.
#[derive(Debug, Default)]
struct ReadAhead {
    blocks: AtomicU64,
    /// `true` once the thread has seen the end.
    is_complete: AtomicBool,
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
        let gate = Gate::new(slots + (AHEAD_BYTES / cut.size).clamp(1, AHEAD));
        let read_ahead = Arc::<ReadAhead>::default();
        // Bounded by the gate.
        let (sender, receiver) = unbounded();
        let thread = Reader { gate: gate.clone(), ahead: Arc::clone(&read_ahead), sender, stopper };
        thread::spawn(move || thread.run(reader, cut));
        Self { receiver, command, gate, read_ahead }
    }

    fn entry(&mut self, block: io::Result<InputBlock>) -> Fetch {
        let block = match block {
            Ok(block) => block,
            Err(error) => return Fetch::Failed(Box::new(error)),
        };
        self.command.job(Stdin::Block(block))
    }
}

impl Input for Blocks {
    fn fetch(&mut self) -> Fetch {
        match self.receiver.try_recv() {
            Ok(block) => self.entry(block),
            Err(TryRecvError::Empty) => Fetch::Later,
            Err(TryRecvError::Disconnected) => Fetch::End,
        }
    }

    fn fetch_blocking(&mut self) -> Fetch {
        match self.receiver.recv() {
            Ok(block) => self.entry(block),
            Err(_) => Fetch::End,
        }
    }

    fn remaining(&self) -> Option<u64> {
        let is_complete = self.read_ahead.is_complete.load(Ordering::SeqCst);
        let read = self.read_ahead.blocks.load(Ordering::SeqCst);
        is_complete.then(|| read.saturating_sub(self.command.jobs()))
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        Ok(None)
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        self.gate.close();
    }
}

/// The state of the thread that reads.
struct Reader {
    gate: Gate,
    ahead: Arc<ReadAhead>,
    sender: Sender<io::Result<InputBlock>>,
    stopper: Stopper,
}

impl Reader {
    fn run(self, mut reader: impl Read, cut: Cut) {
        let Cut { amount, mut header, removed, size, is_logged } = cut;
        let mut cutter = Cutter::new(amount, size);
        let emit = |header: &[u8], block: &[u8]| {
            let block = match &removed {
                Some(boundary) => boundary.remove_from(block),
                None => block.into(),
            };
            self.hand_over(&[header, &block], is_logged)
        };
        loop {
            let count = match reader.read(cutter.room()) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.fail(error);
                    return;
                }
            };
            let goes_on = if header.is_complete() {
                cutter.read(count, |block| emit(header.bytes(), block))
            } else {
                match header.find(&mut cutter, count) {
                    Ok(()) => true,
                    Err(error) => {
                        self.fail(error);
                        return;
                    }
                }
            };
            if !goes_on {
                return;
            }
        }
        cutter.end(|block| emit(header.bytes(), block));
        self.ahead.is_complete.store(true, Ordering::SeqCst);
        let Self { sender, stopper, .. } = self;
        drop(sender);
        stopper.wake();
    }

    /// Returns `false` if nobody wants more blocks.
    fn hand_over(&self, parts: &[&[u8]], is_logged: bool) -> bool {
        let identity = if is_logged { hash(parts) } else { 0 };
        let Some(mut permit) = self.gate.enter() else { return false };
        let block = loop {
            match InputBlock::new(parts, identity, permit) {
                Ok(block) => break Ok(block),
                // Descriptors or memory come back with another block.
                Err((returned, error)) => {
                    permit = returned;
                    if !permit.wait_for_another() {
                        break Err(error);
                    }
                }
            }
        };
        let is_held = block.is_ok();
        self.ahead.blocks.fetch_add(1, Ordering::SeqCst);
        let is_wanted = self.sender.send(block).is_ok();
        self.stopper.wake();
        is_held && is_wanted
    }

    fn fail(&self, error: io::Error) {
        // Nobody to tell if the run is over.
        let _ = self.sender.send(Err(error));
        self.stopper.wake();
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
