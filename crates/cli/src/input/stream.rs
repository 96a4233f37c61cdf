//! Reads lines while jobs run, from a file or standard input of any length.
//!
//! A thread does the reading, because a read may block forever. When the runner is behind, the
//! thread waits for it, so little more than [`MAX_WAITING`] batches are in memory. A batch is cut
//! into lines only when they are needed: each line on its own would take ten times the memory of a
//! short one.

use std::fs::File;
use std::io::{self, Read};
use std::iter;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, ready};
use std::thread;

use brigade::runner::Stopper;
use crossbeam_channel::{Receiver, TryRecvError, bounded};

use super::{Ahead, Fetched};

/// The form of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Framing {
    /// The bytes that end a line.
    pub(crate) delimiter: Vec<u8>,
    /// `true` if blank lines are left out.
    pub(crate) skips_blank: bool,
}

/// The properties of lines, and who waits for them.
#[derive(Debug, Clone)]
pub(crate) struct LineOrigin {
    /// Names them in errors, such as `the jobs in FILE`.
    pub(crate) what: String,
    pub(crate) framing: Framing,
    /// Woken when there are more.
    pub(crate) stopper: Stopper,
}

/// The lines of a stream.
#[derive(Debug)]
pub(crate) struct Lines {
    batches: Receiver<LineBatch>,
    /// The last batch, and the number of its bytes that were returned.
    batch: Vec<u8>,
    position: usize,
    origin: LineOrigin,
    /// Number of lines returned.
    returned: u64,
    /// The number of the last line from 1, including those left out.
    pub(super) number: u64,
    /// The path of a file that can be read twice, and the number of its lines.
    file: Option<(PathBuf, u64)>,
    read_ahead: Arc<ReadAhead>,
}

/// The lines or jobs for which a thread has read.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    pub(crate) count: AtomicU64,
    /// `true` once the thread has seen the end.
    pub(crate) is_complete: AtomicBool,
}

impl ReadAhead {
    /// Returns the number of those after the first `taken`.
    pub(crate) fn after(&self, taken: u64) -> Ahead {
        // In this order: the thread counts before it sees the end.
        let is_all = self.is_complete.load(Ordering::SeqCst);
        Ahead { count: self.count.load(Ordering::SeqCst).saturating_sub(taken), is_all }
    }
}

/// Some whole lines with their delimiters, or the error that ended the stream. The last line of the
/// stream may lack its delimiter.
type LineBatch = Result<Vec<u8>, io::Error>;

/// Maximum number of batches that wait for the runner.
const MAX_WAITING: usize = 4;
/// Number of bytes read at once.
const READ_BYTES: usize = 64 * 1024;

impl Lines {
    /// Starts reading a file with this number of lines.
    ///
    /// It is read while jobs run: a long list is never in memory as a whole.
    pub(crate) fn of_file(path: &Path, total: u64, origin: LineOrigin) -> io::Result<Self> {
        let lines = Self::new(File::open(path)?, origin);
        Ok(Self { file: Some((path.to_owned(), total)), ..lines })
    }

    /// Starts reading lines whose number is not known.
    pub(crate) fn new(reader: impl Read + Send + 'static, origin: LineOrigin) -> Self {
        let (sender, batches) = bounded(MAX_WAITING);
        let read_ahead = Arc::<ReadAhead>::default();
        let theirs = Arc::clone(&read_ahead);
        let LineOrigin { what, framing, stopper } = origin.clone();
        thread::spawn(move || {
            let mut has_failed = false;
            read(reader, &framing.delimiter, |batch| {
                let count = batch.as_ref().map_or(0, |batch| framing.lines(batch).count() as u64);
                has_failed |= batch.is_err();
                let batch = batch.map_err(|error| {
                    io::Error::new(error.kind(), format!("cannot read {what}: {error}"))
                });
                theirs.count.fetch_add(count, Ordering::SeqCst);
                let is_wanted = sender.send(batch).is_ok();
                stopper.wake();
                is_wanted
            });
            theirs.is_complete.store(!has_failed, Ordering::SeqCst);
            drop(sender);
            stopper.wake();
        });
        Self {
            batches,
            batch: Vec::new(),
            position: 0,
            origin,
            returned: 0,
            number: 0,
            file: None,
            read_ahead,
        }
    }

    /// Returns the next line; waits for it if `waits` is set.
    pub(crate) fn next(&mut self, waits: bool) -> Fetched<Vec<u8>> {
        loop {
            while let Some((line, length)) = self.origin.framing.first(&self.batch[self.position..])
            {
                self.position += length;
                self.number += 1;
                if self.origin.framing.keeps(line) {
                    self.returned += 1;
                    return Poll::Ready(Some(Ok(line.to_vec())));
                }
            }
            let Some(batch) = ready!(receive(&self.batches, waits)) else {
                return Poll::Ready(None);
            };
            (self.batch, self.position) = (batch?, 0);
        }
    }

    /// Returns the number of lines still to come, as far as it is known.
    pub(crate) fn ahead(&self) -> Ahead {
        match &self.file {
            Some((_, total)) => Ahead { count: total.saturating_sub(self.returned), is_all: true },
            None => self.read_ahead.after(self.returned),
        }
    }

    /// Returns all lines from the first, if they can be read twice.
    pub(crate) fn again(&self) -> io::Result<Option<Self>> {
        let Some((path, total)) = &self.file else { return Ok(None) };
        Self::of_file(path, *total, self.origin.clone()).map(Some)
    }
}

/// Receives a message, and waits for it if `waits` is set. Returns `None` if there will be none.
pub(crate) fn receive<T>(from: &Receiver<T>, waits: bool) -> Poll<Option<T>> {
    match from.try_recv() {
        Err(TryRecvError::Empty) if !waits => Poll::Pending,
        Err(TryRecvError::Empty) => Poll::Ready(from.recv().ok()),
        received => Poll::Ready(received.ok()),
    }
}

impl Framing {
    /// Passes each line of `reader` to `take`, until it returns `false` or an error.
    pub(crate) fn each<E>(
        &self,
        reader: impl Read,
        mut take: impl FnMut(Vec<u8>) -> Result<bool, E>,
    ) -> io::Result<Result<(), E>> {
        let mut result = Ok(Ok(()));
        read(reader, &self.delimiter, |batch| match batch {
            Ok(batch) => self.lines(&batch).all(|line| {
                take(line.to_vec()).unwrap_or_else(|error| {
                    result = Ok(Err(error));
                    false
                })
            }),
            Err(error) => {
                result = Err(error);
                false
            }
        });
        result
    }

    fn keeps(&self, line: &[u8]) -> bool {
        !self.skips_blank || !line.trim_ascii().is_empty()
    }

    /// Returns the lines of a batch, without those left out.
    fn lines<'a>(&'a self, mut batch: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let all = iter::from_fn(move || {
            let (line, length) = self.first(batch)?;
            batch = &batch[length..];
            Some(line)
        });
        all.filter(|line| self.keeps(line))
    }

    /// Returns the first line of some bytes, and its length with the delimiter.
    fn first<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], usize)> {
        let last = self.delimiter.last()?;
        let mut length = 0;
        for piece in bytes.split_inclusive(|byte| byte == last) {
            length += piece.len();
            if let Some(line) = bytes[..length].strip_suffix(self.delimiter.as_slice()) {
                return Some((line, length));
            }
        }
        (length > 0).then_some((bytes, length))
    }
}

/// Hands over complete lines as soon as they arrive, until the receiver is gone.
fn read(mut reader: impl Read, delimiter: &[u8], mut hand_over: impl FnMut(LineBatch) -> bool) {
    let Some(last) = delimiter.last() else { return };
    let mut buffer = vec![0; READ_BYTES];
    let mut batch = Vec::new();
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
        batch.reserve(count);
        let mut whole = 0;
        for piece in buffer[..count].split_inclusive(|byte| byte == last) {
            batch.extend_from_slice(piece);
            if batch[whole..].ends_with(delimiter) {
                whole = batch.len();
            }
        }
        if whole > 0 {
            let rest = batch.split_off(whole);
            if !hand_over(Ok(mem::replace(&mut batch, rest))) {
                return;
            }
        }
    }
    if !batch.is_empty() {
        hand_over(Ok(batch));
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
        fn lines_do_not_depend_on_how_they_arrive(
            text in "[a:\n]{0,40}",
            step in 1_usize..9,
            delimiter in "\n|::|:\n:",
        ) {
            let mut lines = Vec::new();
            let framing = Framing { delimiter: delimiter.clone().into(), skips_blank: false };
            let reader = SlowReader(text.clone().into_bytes(), step);
            let taken = framing.each(reader, |line| { lines.push(line); Ok::<_, ()>(true) });
            assert!(matches!(taken, Ok(Ok(()))));
            let mut expected: Vec<Vec<u8>> =
                text.split(&delimiter).map(|line| line.as_bytes().to_vec()).collect();
            // What follows the last delimiter is a line only if there is something.
            expected.pop_if(|rest| rest.is_empty());
            prop_assert_eq!(lines, expected);
        }
    }
}
