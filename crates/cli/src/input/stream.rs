//! Reads jobs line by line while others run, from a file or standard input of any length.
//!
//! A thread does the reading, because a read may block forever. When the runner is behind, the
//! thread waits for it, so at most [`MAX_WAITING`] batches are in memory.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use brigade::runner::Stopper;
use crossbeam_channel::{Receiver, TryRecvError, bounded};

use super::{Entry, Fetch, Input, jobs_of_json_line};
use crate::line;
use crate::template::Template;

/// The meaning of a line.
#[derive(Debug, Clone)]
pub(crate) enum Meaning {
    /// A command, for the shell.
    Command,
    /// An argument of a command.
    Argument(Template),
    /// A job in JSON.
    Json,
}

impl Meaning {
    /// Returns `true` if an empty line is a job: it is an empty argument, but not a command.
    fn may_be_empty(&self) -> bool {
        matches!(self, Self::Argument(_))
    }
}

/// The jobs read from a stream of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    batches: Receiver<Batch>,
    ready: VecDeque<Vec<u8>>,
    meaning: Meaning,
    next_number: u64,
    /// The number of the next line, from 1.
    next_line: u64,
    source: Option<Source>,
    read_ahead: Arc<ReadAhead>,
}

/// The jobs that the thread has read.
#[derive(Debug, Default)]
struct ReadAhead {
    jobs: AtomicU64,
    /// `true` once the thread has seen the end.
    is_complete: AtomicBool,
}

/// A file whose lines can be read twice.
#[derive(Debug, Clone)]
struct Source {
    path: PathBuf,
    separator: u8,
    /// Number of jobs.
    total: u64,
    stopper: Stopper,
}

/// Some lines, or the error that ended the stream.
type Batch = Result<Vec<Vec<u8>>, io::Error>;

/// Maximum number of batches that wait for the runner.
const MAX_WAITING: usize = 4;
/// Number of bytes read at once.
const READ_BYTES: usize = 64 * 1024;

impl Lines {
    /// Starts reading a file with this number of jobs.
    ///
    /// It is read while jobs run: a long list is never in memory as a whole.
    pub(crate) fn of_file(
        path: &Path,
        separator: u8,
        meaning: Meaning,
        total: u64,
        stopper: Stopper,
    ) -> io::Result<Self> {
        let file = File::open(path)?;
        let source = Source { path: path.to_owned(), separator, total, stopper: stopper.clone() };
        let lines = Self::new(file, separator, meaning, stopper);
        Ok(Self { source: Some(source), ..lines })
    }

    /// Starts reading lines whose number is not known.
    pub(crate) fn new(
        reader: impl Read + Send + 'static,
        separator: u8,
        meaning: Meaning,
        stopper: Stopper,
    ) -> Self {
        let (sender, batches) = bounded(MAX_WAITING);
        let read_ahead = Arc::<ReadAhead>::default();
        let (theirs, may_be_empty) = (Arc::clone(&read_ahead), meaning.may_be_empty());
        thread::spawn(move || {
            let mut has_failed = false;
            read(reader, separator, |batch| {
                let is_job = |line: &&Vec<u8>| may_be_empty || !line.trim_ascii().is_empty();
                let jobs = batch.as_ref().map_or(0, |lines| lines.iter().filter(is_job).count());
                has_failed |= batch.is_err();
                theirs.jobs.fetch_add(jobs as u64, Ordering::SeqCst);
                let is_wanted = sender.send(batch).is_ok();
                stopper.wake();
                is_wanted
            });
            theirs.is_complete.store(!has_failed, Ordering::SeqCst);
            drop(sender);
            stopper.wake();
        });
        let (next_number, next_line, source) = (1, 1, None);
        let ready = VecDeque::new();
        Self { batches, ready, meaning, next_number, next_line, source, read_ahead }
    }

    fn take_ready(&mut self) -> Option<Fetch> {
        let may_be_empty = self.meaning.may_be_empty();
        let line = loop {
            let line = self.ready.pop_front()?;
            self.next_line += 1;
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
            Meaning::Json => match jobs_of_json_line(self.next_line - 1, &line) {
                Ok(job) => job,
                Err(error) => return Some(Fetch::Failed(Box::new(error))),
            },
        };
        let job = job.number(number);
        Some(Fetch::Entry(Box::new(Entry { number, job, arguments: vec![argument] })))
    }

    fn accept(&mut self, batch: Batch) -> Option<Fetch> {
        match batch {
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
            let failed = match self.batches.try_recv() {
                Ok(batch) => self.accept(batch),
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
            let failed = match self.batches.recv() {
                Ok(batch) => self.accept(batch),
                Err(_) => return Fetch::End,
            };
            if let Some(failed) = failed {
                return failed;
            }
        }
    }

    fn remaining(&self) -> Option<u64> {
        let total = match &self.source {
            Some(source) => source.total,
            None if self.read_ahead.is_complete.load(Ordering::SeqCst) => {
                self.read_ahead.jobs.load(Ordering::SeqCst)
            }
            None => return None,
        };
        Some(total.saturating_sub(self.next_number - 1))
    }

    fn read_ahead(&self) -> u64 {
        let read = self.read_ahead.jobs.load(Ordering::SeqCst);
        self.remaining().unwrap_or_else(|| read.saturating_sub(self.next_number - 1))
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input>>> {
        let Some(Source { path, separator, total, stopper }) = &self.source else {
            return Ok(None);
        };
        let meaning = self.meaning.clone();
        let lines = Self::of_file(path, *separator, meaning, *total, stopper.clone())?;
        Ok(Some(Box::new(lines)))
    }
}

/// Hands over complete lines as soon as they arrive, until the receiver is gone.
fn read(mut reader: impl Read, separator: u8, mut hand_over: impl FnMut(Batch) -> bool) {
    let mut buffer = vec![0; READ_BYTES];
    let mut line = Vec::new();
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
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

    /// A reader that returns a few bytes at a time.
    struct SlowReader(Vec<u8>, usize);

    impl Read for SlowReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(text in "[a\n]{0,40}", step in 1_usize..9) {
            let mut lines = Vec::new();
            read(SlowReader(text.clone().into_bytes(), step), b'\n', |batch| {
                lines.extend(batch.expect("no error"));
                true
            });
            let expected: Vec<Vec<u8>> = text.lines().map(|line| line.as_bytes().to_vec()).collect();
            prop_assert_eq!(lines, expected);
        }
    }
}
