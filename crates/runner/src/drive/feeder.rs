//! Feeds jobs with parts of files through pipes, on a thread of its own.
//!
//! The runner's thread must not do it: reading a file may take long, on a file server even forever.
//! One thread serves all jobs. It waits for room in any pipe, moves pages of the file there without
//! copying them, and never waits for a single job. A job that ends closes its pipe, which ends its
//! feed.
//!
//! A failure to read a file fails the run: its job got less than its input, and cannot know it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use brigade_sys::poller::{Interest, Poller};
use brigade_sys::sync::Mutex;
use brigade_sys::wait::Waker;
use brigade_sys::{pipes, signals};

use crate::file_part::FilePart;
use crate::stopper::Stopper;

/// The runner's side of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Feeder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waker: Waker,
    state: Mutex<State>,
    /// Woken when there is a failure.
    stopper: Stopper,
}

#[derive(Debug, Default)]
struct State {
    new: Vec<Feed>,
    failure: Option<(PathBuf, io::Error)>,
    is_over: bool,
}

/// The input of one attempt.
#[derive(Debug)]
struct Feed {
    pipe: OwnedFd,
    part: FilePart,
    file: File,
    /// Number of bytes of the part's header that were written.
    written: usize,
    /// The position in the file.
    at: u64,
}

/// The state of a feed after a turn.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    Waiting,
    Over,
}

/// The token of the waker; feeds count from 0.
const WAKER: u64 = u64::MAX;
/// The most bytes that are moved in one turn, so that every job gets one.
const TURN_BYTES: u64 = 1 << 20;

impl Feeder {
    pub(super) fn start(stopper: Stopper) -> io::Result<Self> {
        let mut poller = Poller::new()?;
        let waker = Waker::new()?;
        poller.add(&waker, WAKER)?;
        let shared = Arc::new(Shared { waker, state: Mutex::default(), stopper });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("feeder".to_owned());
        // Not joined: nobody can end a read from a file server that does not answer.
        drop(thread.spawn(move || {
            signals::block_in_thread();
            theirs.run(poller);
        })?);
        Ok(Self(shared))
    }

    /// Returns a pipe through which an attempt gets its input.
    pub(super) fn feed(&self, part: &FilePart) -> io::Result<OwnedFd> {
        let file = File::open(&part.path)?;
        let (theirs, pipe) = pipes::input_pipe()?;
        let feed = Feed { pipe, part: part.clone(), file, written: 0, at: part.range.start };
        self.0.state.lock().new.push(feed);
        self.0.waker.wake();
        Ok(theirs)
    }

    /// Takes the first failure.
    pub(super) fn take_failure(&self) -> Option<(PathBuf, io::Error)> {
        self.0.state.lock().failure.take()
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.waker.wake();
    }
}

impl Shared {
    fn run(&self, mut poller: Poller) {
        let mut feeds: HashMap<u64, Feed> = HashMap::new();
        let (mut next, mut ready) = (0, Vec::new());
        while poller.ready(true, &mut ready).is_ok() {
            for token in ready.drain(..) {
                if token == WAKER {
                    self.waker.drain();
                    let mut state = self.state.lock();
                    if state.is_over {
                        return;
                    }
                    let new = std::mem::take(&mut state.new);
                    drop(state);
                    for feed in new {
                        match poller.add(&feed.pipe, next).and_then(|()| {
                            poller.set_interest(&feed.pipe, next, Interest::Writable)
                        }) {
                            Ok(()) => drop(feeds.insert(next, feed)),
                            Err(error) => self.fail(feed, error),
                        }
                        next += 1;
                    }
                    continue;
                }
                let Some(feed) = feeds.get_mut(&token) else { continue };
                let turn = feed.turn();
                if matches!(turn, Ok(Turn::Waiting)) {
                    continue;
                }
                poller.remove(&feed.pipe);
                if let Some(feed) = feeds.remove(&token)
                    && let Err(error) = turn
                {
                    self.fail(feed, error);
                }
            }
        }
    }

    fn fail(&self, feed: Feed, error: io::Error) {
        self.state.lock().failure.get_or_insert((feed.part.path, error));
        self.stopper.wake();
    }
}

impl Feed {
    /// Moves as much as the pipe takes now.
    fn turn(&mut self) -> io::Result<Turn> {
        if self.at == self.part.range.end && self.written == self.part.header.len() {
            return Ok(Turn::Over);
        }
        match self.move_some() {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) if self.at == self.part.range.end => Ok(Turn::Over),
            Ok(_) => Ok(Turn::Waiting),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Turn::Waiting),
                // The job has closed its input, or is over.
                io::ErrorKind::BrokenPipe => Ok(Turn::Over),
                _ => Err(error),
            },
        }
    }

    fn move_some(&mut self) -> io::Result<usize> {
        let header = &self.part.header[self.written..];
        if !header.is_empty() {
            let count = pipes::write(&self.pipe, header)?;
            self.written += count;
            return Ok(count);
        }
        let rest = (self.part.range.end - self.at).min(TURN_BYTES);
        match pipes::splice(&self.file, &mut self.at, &self.pipe, rest) {
            // Some file systems cannot.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.copy_some(rest),
            result => result,
        }
    }

    fn copy_some(&mut self, most: u64) -> io::Result<usize> {
        const COPIED: usize = 64 * 1024;
        let mut buffer = vec![0; COPIED.min(usize::try_from(most).unwrap_or(COPIED))];
        let read = self.file.read_at(&mut buffer, self.at)?;
        if read == 0 {
            return Ok(0);
        }
        let count = pipes::write(&self.pipe, &buffer[..read])?;
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn part(text: &str, range: std::ops::Range<u64>) -> (tempfile::TempPath, FilePart) {
        let path = tempfile::NamedTempFile::new().expect("disk").into_temp_path();
        std::fs::write(&path, text).expect("disk");
        let part = FilePart::new(path.to_path_buf(), range).header(b"head ".to_vec());
        (path, part)
    }

    #[test]
    fn a_feed_is_the_header_and_the_part() {
        let feeder = Feeder::start(Stopper::new().expect("descriptors")).expect("a thread");
        let text = "0123456789".repeat(500_000);
        let (_path, part) = part(&text, 3..4_999_999);
        let readers = [(); 3].map(|()| {
            let mut pipe = File::from(feeder.feed(&part).expect("a pipe"));
            thread::spawn(move || {
                let mut read = String::new();
                pipe.read_to_string(&mut read).expect("a pipe");
                read
            })
        });
        // Nobody reads this one.
        let _unread = feeder.feed(&part).expect("a pipe");
        // This one is closed early.
        drop(feeder.feed(&part).expect("a pipe"));
        for reader in readers {
            let read = reader.join().expect("no panic");
            assert!(read.strip_prefix("head ") == Some(&text[3..4_999_999]));
        }
        assert!(feeder.take_failure().is_none());
    }

    #[test]
    fn a_file_that_has_become_shorter_is_a_failure() {
        let stopper = Stopper::new().expect("descriptors");
        let feeder = Feeder::start(stopper.clone()).expect("a thread");
        let (path, part) = part("abc", 1..9);
        let mut read = String::new();
        let mut pipe = File::from(feeder.feed(&part).expect("a pipe"));
        pipe.read_to_string(&mut read).expect("a pipe");
        assert_eq!(read, "head bc");
        let mut poller = Poller::new().expect("descriptors");
        poller.add(stopper.waker(), 0).expect("descriptors");
        poller.wait(None).expect("a failure");
        let (failed, error) = feeder.take_failure().expect("too short");
        assert_eq!((failed.as_path(), error.kind()), (&*path, io::ErrorKind::UnexpectedEof));
    }
}
