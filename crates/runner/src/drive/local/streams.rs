//! Reads the pipes of running jobs as soon as data arrives, so that no job waits for us.

use std::mem;
use std::sync::Arc;

use brigade_supervisor::{Capture, MAX_REST, OutputPipe};

use super::Local;
use super::attempt::Live;
use crate::drive::Drive;
use crate::event::{Event, Stream};
use crate::machine::Attempt;

/// The state of one output stream of a running attempt.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub(super) pipe: Option<OutputPipe>,
    pub(super) capture: Capture,
    /// The start of an unfinished line, kept if lines are reported as they arrive.
    pub(super) line: Vec<u8>,
}

/// The subject of a poller's event: generation, slot and descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(pub(super) u64);

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

/// The descriptor number that stands for the process itself.
pub(super) const PIDFD: usize = 2;

/// Lines longer than this are reported in fragments.
const MAX_LINE: usize = 1 << 20;

/// Enough for a pipe that is read again whenever it is ready.
const ONE_PIECE: usize = 1;

impl StreamState {
    pub(super) fn of(capture: Capture) -> Self {
        Self { capture, ..Self::default() }
    }
}

impl Token {
    pub(super) const WAKER: Self = Self(u64::MAX);
    /// Like the waker's, outside the range of slots.
    pub(super) const GUARDIAN: Self = Self(u64::MAX - 1);

    pub(super) fn new(slot: usize, generation: u32, descriptor: usize) -> Self {
        Self(u64::from(generation) << 32 | ((slot << 2) | descriptor) as u64)
    }

    pub(super) fn is_pidfd(self) -> bool {
        self.0 & 3 == PIDFD as u64
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

impl Drive<'_, Local> {
    /// Handles a pipe that has data, or whose last writer is gone.
    pub(super) fn readable(&mut self, token: Token) {
        let slot = token.slot();
        let current = self.place.live.get(slot).and_then(Option::as_ref);
        if current.is_some_and(|live| live.generation == token.generation()) {
            self.read(slot, token.index(), ONE_PIECE);
        }
    }

    /// Reads the rest of the output of a job that has ended, and closes its pipes.
    pub(super) fn drain(&mut self, slot: usize) {
        for index in 0..STREAMS.len() {
            self.read(slot, index, MAX_REST);
            self.close(slot, index);
        }
    }

    /// Reads at least `limit` bytes, if as many have arrived.
    fn read(&mut self, slot: usize, index: usize, limit: usize) {
        let Self { place, client, .. } = self;
        let Local { live, buffer, config, .. } = place;
        let Some(Live { attempt, streams, .. }) = &mut live[slot] else { return };
        let StreamState { pipe: Some(pipe), capture, line } = &mut streams[index] else { return };
        let reports_lines = config.live && !attempt.is_canary;
        let read = pipe.read(limit, buffer, |bytes| {
            capture.push(bytes);
            if reports_lines {
                let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                let (lines, rest) = bytes.split_at(end);
                line.extend_from_slice(lines);
                if end > 0 || line.len() + rest.len() > MAX_LINE {
                    client.event(output(attempt, slot, index, mem::take(line)));
                }
                line.extend_from_slice(rest);
            }
        });
        match read {
            Ok(false) => {}
            // Closed by all writers. The job may continue without its output.
            Ok(true) => self.close(slot, index),
            Err(error) => {
                tracing::warn!(%error, "a job's output cannot be read");
                self.close(slot, index);
            }
        }
    }

    fn close(&mut self, slot: usize, index: usize) {
        let Some(live) = &mut self.place.live[slot] else { return };
        let state = &mut live.streams[index];
        if let Some(pipe) = state.pipe.take() {
            self.place.poller.remove(&pipe);
        }
        if !state.line.is_empty() {
            let lines = mem::take(&mut state.line);
            self.client.event(output(&live.attempt, slot, index, lines));
        }
    }
}

/// Returns the event of lines that an attempt has printed.
fn output(attempt: &Attempt, slot: usize, index: usize, lines: Vec<u8>) -> Event {
    let (number, job, stream) = (attempt.number, Arc::clone(&attempt.job), STREAMS[index]);
    Event::Output { number, job, slot: slot + 1, stream, lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_returns_its_parts() {
        for (slot, generation) in [(0, 0), (7, 1), (0x3fff_ffff, u32::MAX - 1)] {
            let token = Token(Token::new(slot, generation, PIDFD).0);
            assert!(token.is_pidfd() && token != Token::WAKER);
            assert_eq!((token.slot(), token.generation()), (slot, generation));
            for index in [0, 1] {
                let token = Token::new(slot, generation, index);
                assert!(!token.is_pidfd());
                assert_eq!((token.slot(), token.index()), (slot, index));
            }
        }
    }
}
