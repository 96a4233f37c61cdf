//! The pipes of running jobs: read whenever there is something, so that no job waits for us.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use super::Drive;
use crate::event::{Event, Stream};
use crate::output::Captured;

/// One output of a running attempt.
#[derive(Debug, Default)]
pub(super) struct Streaming {
    pub(super) pipe: Option<OwnedFd>,
    pub(super) captured: Captured,
    /// What came after the last end of a line, when lines are told as they come.
    pub(super) line: Vec<u8>,
}

/// What an epoll event is about: generation, slot and descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(u64);

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// The descriptor number of a token that means the process itself.
const PIDFD: u64 = 2;

/// A line longer than this is told in pieces.
const LONGEST_LINE: usize = 1 << 20;

/// How much is read of a job that has ended: what a pipe can hold at most by default. A process that has left its group
/// may write for ever.
const LEFT_BEHIND: usize = 1 << 20;

impl Streaming {
    pub(super) fn of(captured: Captured) -> Self {
        Self { captured, ..Self::default() }
    }
}

impl Token {
    pub(super) const WAKER: Self = Self(u64::MAX);
    /// Of slots that do not exist, like the waker's.
    pub(super) const GUARDIAN: Self = Self(u64::MAX - 1);

    fn new(slot: usize, generation: u32, descriptor: u64) -> Self {
        Self(u64::from(generation) << 32 | (slot as u64) << 2 | descriptor)
    }

    pub(super) fn pidfd(slot: usize, generation: u32) -> Self {
        Self::new(slot, generation, PIDFD)
    }

    pub(super) fn stream(slot: usize, generation: u32, index: usize) -> Self {
        Self::new(slot, generation, index as u64)
    }

    pub(super) fn is_pidfd(self) -> bool {
        self.0 & 3 == PIDFD
    }

    pub(super) fn slot(self) -> usize {
        usize::try_from(self.0 >> 2 & 0x3fff_ffff).unwrap_or(usize::MAX)
    }

    pub(super) fn generation(self) -> u32 {
        u32::try_from(self.0 >> 32).unwrap_or(u32::MAX)
    }

    fn index(self) -> usize {
        usize::from(self.0 & 1 == 1)
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

impl From<u64> for Token {
    fn from(token: u64) -> Self {
        Self(token)
    }
}

/// Closing is not enough: a copy of the descriptor in a fork of this process keeps what it waits for, and a dead process
/// or a closed pipe would wake this thread again and again.
pub(super) fn forget(epoll: &OwnedFd, descriptor: impl AsFd) {
    // Fails only for what was never waited for.
    let _ = epoll::delete(epoll, descriptor);
}

impl Drive<'_> {
    /// A pipe has something, or its last writer is gone.
    pub(super) fn readable(&mut self, token: Token) {
        let slot = token.slot();
        let current = self.live.get(slot).and_then(Option::as_ref);
        if current.is_some_and(|live| live.generation == token.generation()) {
            self.read(slot, token.index());
        }
    }

    /// Takes what is still in the pipes of a job that has ended, and closes them.
    pub(super) fn drain(&mut self, slot: usize) {
        for index in 0..STREAMS.len() {
            let mut left = LEFT_BEHIND;
            while left > 0 {
                match self.read(slot, index) {
                    0 => break,
                    count => left = left.saturating_sub(count),
                }
            }
            self.close(slot, index);
        }
    }

    /// Reads once. Answers how much there was.
    fn read(&mut self, slot: usize, index: usize) -> usize {
        let Some(live) = &mut self.live[slot] else { return 0 };
        let streaming = &mut live.streams[index];
        let Some(pipe) = &streaming.pipe else { return 0 };
        let count = match rustix::io::read(pipe, &mut *self.buffer) {
            Ok(0) => {
                // Closed by all writers. The job may live on without.
                self.close(slot, index);
                return 0;
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return 0,
            Err(error) => {
                tracing::warn!(%error, "a job's output cannot be read");
                self.close(slot, index);
                return 0;
            }
        };
        let bytes = &self.buffer[..count];
        streaming.captured.push(bytes);
        if self.conduct.live && !live.attempt.is_canary {
            let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
            let (lines, rest) = bytes.split_at(end);
            streaming.line.extend_from_slice(lines);
            if end > 0 || streaming.line.len() + rest.len() > LONGEST_LINE {
                let (number, stream) = (live.attempt.number, STREAMS[index]);
                (self.tell)(Event::Output { number, stream, lines: &streaming.line });
                streaming.line.clear();
            }
            streaming.line.extend_from_slice(rest);
        }
        count
    }

    /// Nothing of what runs on a slot is waited for any more.
    pub(super) fn ignore(&self, slot: usize) {
        if let Some(live) = &self.live[slot] {
            forget(&self.epoll, live.leader.pidfd());
        }
    }

    fn close(&mut self, slot: usize, index: usize) {
        let Some(live) = &mut self.live[slot] else { return };
        let streaming = &mut live.streams[index];
        if let Some(pipe) = streaming.pipe.take() {
            forget(&self.epoll, &pipe);
        }
        if !streaming.line.is_empty() {
            let (number, stream) = (live.attempt.number, STREAMS[index]);
            (self.tell)(Event::Output { number, stream, lines: &streaming.line });
            streaming.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_gives_back_what_it_was_made_of() {
        for (slot, generation) in [(0, 0), (7, 1), (0x3fff_ffff, u32::MAX - 1)] {
            let token = Token::from(u64::from(Token::pidfd(slot, generation)));
            assert!(token.is_pidfd() && token != Token::WAKER);
            assert_eq!((token.slot(), token.generation()), (slot, generation));
            for index in [0, 1] {
                let token = Token::stream(slot, generation, index);
                assert!(!token.is_pidfd());
                assert_eq!((token.slot(), token.index()), (slot, index));
            }
        }
    }
}
