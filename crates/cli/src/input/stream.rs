//! Lines that come while jobs run: from standard input or a file, of any length, in little memory.
//!
//! A thread reads, because a read may wait for ever, and hands over what it has; it waits in turn when the runner is
//! behind. So there is never more in memory than [`WAITING`] pieces.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::thread;

use brigade::runner::Stopper;
use crossbeam_channel::{Receiver, TryRecvError, bounded};

use super::{Entry, Fetch, Input, jobs_of_json_line};
use crate::line;
use crate::template::Template;

/// What a line is.
#[derive(Debug)]
pub(crate) enum Meaning {
    /// A command, for the shell.
    Command,
    /// The argument of a command.
    Argument(Template),
    /// A job, in JSON.
    Json,
}

/// The jobs of a stream of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    pieces: Receiver<Piece>,
    ready: VecDeque<Vec<u8>>,
    meaning: Meaning,
    next_number: u64,
    total: Option<u64>,
}

/// Some lines, or why there are no more.
type Piece = Result<Vec<Vec<u8>>, std::io::Error>;

/// How many pieces may wait.
const WAITING: usize = 4;
/// How much is read at once.
const PIECE_BYTES: usize = 64 * 1024;

impl Lines {
    /// Starts to read. `total` is how many lines there are, if that is known.
    pub(crate) fn new(
        reader: impl Read + Send + 'static,
        separator: u8,
        meaning: Meaning,
        total: Option<u64>,
        stopper: Stopper,
    ) -> Self {
        let (sender, pieces) = bounded(WAITING);
        thread::spawn(move || {
            read(reader, separator, |piece| {
                let is_wanted = sender.send(piece).is_ok();
                stopper.wake();
                is_wanted
            });
            drop(sender);
            stopper.wake();
        });
        Self { pieces, ready: VecDeque::new(), meaning, next_number: 1, total }
    }

    fn take_ready(&mut self) -> Option<Fetch> {
        // An empty line is an empty argument, but no command.
        let may_be_empty = matches!(self.meaning, Meaning::Argument(_));
        let line = loop {
            let line = self.ready.pop_front()?;
            if may_be_empty || !line.trim_ascii().is_empty() {
                break line;
            }
        };
        let number = self.next_number;
        self.next_number += 1;
        let argument = OsString::from_vec(line.clone());
        let job = match &self.meaning {
            Meaning::Command => line::job(line),
            Meaning::Argument(template) => template.job(number, std::slice::from_ref(&argument)),
            Meaning::Json => match jobs_of_json_line(number, &line) {
                Ok(job) => job,
                Err(error) => return Some(Fetch::Failed(Box::new(error))),
            },
        };
        let job = job.number(number);
        Some(Fetch::Entry(Box::new(Entry { number, job, arguments: vec![argument] })))
    }

    fn accept(&mut self, piece: Piece) -> Option<Fetch> {
        match piece {
            Ok(lines) => {
                self.ready.extend(lines);
                None
            }
            Err(error) => Some(Fetch::Failed(Box::new(error))),
        }
    }
}

impl Input for Lines {
    fn fetch(&mut self) -> Fetch {
        loop {
            if let Some(fetch) = self.take_ready() {
                return fetch;
            }
            let failed = match self.pieces.try_recv() {
                Ok(piece) => self.accept(piece),
                Err(TryRecvError::Empty) => return Fetch::Later,
                Err(TryRecvError::Disconnected) => return Fetch::End,
            };
            if let Some(failed) = failed {
                return failed;
            }
        }
    }

    fn fetch_blocking(&mut self) -> Fetch {
        loop {
            if let Some(fetch) = self.take_ready() {
                return fetch;
            }
            let failed = match self.pieces.recv() {
                Ok(piece) => self.accept(piece),
                Err(_) => return Fetch::End,
            };
            if let Some(failed) = failed {
                return failed;
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.total.map(|total| total.saturating_sub(self.next_number - 1))
    }
}

/// Hands over whole lines as soon as they are there, until nobody wants more.
fn read(mut reader: impl Read, separator: u8, mut hand_over: impl FnMut(Piece) -> bool) {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut line = Vec::new();
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                hand_over(Err(error));
                return;
            }
        };
        let mut lines = Vec::new();
        for piece in buffer[..count].split_inclusive(|byte| *byte == separator) {
            line.extend_from_slice(piece);
            if line.last() == Some(&separator) {
                line.pop();
                lines.push(std::mem::take(&mut line));
            }
        }
        if !lines.is_empty() && !hand_over(Ok(lines)) {
            return;
        }
    }
    if !line.is_empty() {
        hand_over(Ok(vec![line]));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives out its bytes a few at a time.
    struct Dribble(Vec<u8>, usize);

    impl Read for Dribble {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    proptest! {
        #[test]
        fn lines_are_the_same_however_they_come(text in "[a\n]{0,40}", step in 1_usize..9) {
            let mut lines = Vec::new();
            read(Dribble(text.clone().into_bytes(), step), b'\n', |piece| {
                lines.extend(piece.expect("no error"));
                true
            });
            let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(lines, expected);
        }
    }
}
