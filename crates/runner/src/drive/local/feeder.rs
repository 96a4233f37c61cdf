//! Feeds jobs with parts of files and streams of blocks through pipes, on a thread of its own.
//!
//! The runner's thread must not do it: reading a file may take long, on a file server even forever.
//! One thread serves all jobs. It waits for room in any pipe, moves pages of files there without
//! copying them, and never waits for a single job. A job that ends closes its pipe, which ends its
//! feed.
//!
//! A failure to read a file fails the run: its job got less than its input, and cannot know it. The
//! failure is recorded before the pipe is closed, so that such a job never counts as a success.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::Poll;
use std::thread;

use brigade_sys::poller::{Interest, Poller};
use brigade_sys::sync::Mutex;
use brigade_sys::wait::Waker;
use brigade_sys::{pipes, signals};

use crate::block_streams::BlockStream;
use crate::file_part::FilePart;
use crate::input_block::InputBlock;
use crate::stopper::Stopper;

/// The runner's side of the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Feeder {
    stopper: Stopper,
    /// `None` until there is something to feed.
    thread: Option<Arc<Shared>>,
    /// The feed of an attempt that is being started. It begins when the attempt has started: a
    /// stream's blocks would be lost with the pipe of one that has not.
    prepared: Option<Feed>,
}

#[derive(Debug)]
struct Shared {
    waker: Arc<Waker>,
    state: Mutex<State>,
    /// Woken when there is a failure.
    stopper: Stopper,
}

#[derive(Debug, Default)]
struct State {
    new: Vec<Feed>,
    failures: Vec<Failure>,
    is_over: bool,
}

/// A failure to read the input of a job.
#[derive(Debug)]
pub(super) struct Failure {
    /// The number of the job.
    pub(super) number: u64,
    pub(super) path: PathBuf,
    pub(super) error: io::Error,
}

/// The input of one attempt.
#[derive(Debug)]
struct Feed {
    /// The number of its job.
    number: u64,
    pipe: OwnedFd,
    /// The path of the file that is read, or another name for it.
    name: PathBuf,
    /// Has more files, if there may be some.
    stream: Option<BlockStream>,
    /// The block that is the file.
    block: Option<InputBlock>,
    header: Arc<[u8]>,
    /// Number of bytes of the header that were written.
    written: usize,
    /// The file that is being moved, and the rest of it.
    file: File,
    rest: Range<u64>,
    /// `true` if it waits for a block.
    is_parked: bool,
}

/// The state of a feed after a turn.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// It waits for room in the pipe.
    Waiting,
    /// It waits for a block.
    Parked,
    Over,
}

/// The token of the waker; feeds count from 0.
const WAKER: u64 = u64::MAX;
/// The most bytes that are moved in one turn, so that every job gets one.
const TURN_BYTES: u64 = 1 << 20;

impl Feeder {
    pub(super) fn new(stopper: Stopper) -> Self {
        Self { stopper, thread: None, prepared: None }
    }

    /// Returns what the thread knows, after starting it for the first feed.
    fn thread(&mut self) -> io::Result<&Arc<Shared>> {
        let thread = self.thread.take().map_or_else(|| self.start(), Ok)?;
        Ok(self.thread.insert(thread))
    }

    fn start(&self) -> io::Result<Arc<Shared>> {
        let poller = Poller::new()?;
        let waker = Arc::new(Waker::new()?);
        poller.add(&*waker, WAKER)?;
        let stopper = self.stopper.clone();
        let shared = Arc::new(Shared { waker, state: Mutex::default(), stopper });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new().name("feeder".to_owned());
        // Not joined: nobody can end a read from a file server that does not answer.
        drop(thread.spawn(move || {
            signals::block_in_thread();
            theirs.run(poller);
        })?);
        Ok(shared)
    }

    /// Returns a pipe through which an attempt gets a part of a file.
    pub(super) fn part(&mut self, number: u64, part: &FilePart) -> io::Result<OwnedFd> {
        let file = File::open(&part.path)?;
        self.feed(number, (part.path.clone(), None), (file, part.range.clone()), &part.header)
    }

    /// Returns a pipe through which an attempt gets blocks.
    pub(super) fn stream(&mut self, number: u64, stream: &BlockStream) -> io::Result<OwnedFd> {
        let nothing = File::open("/dev/null")?;
        stream.on_block(&self.thread()?.waker);
        let origin = ("a block".into(), Some(stream.clone()));
        self.feed(number, origin, (nothing, 0..0), &stream.header)
    }

    fn feed(
        &mut self,
        number: u64,
        (name, stream): (PathBuf, Option<BlockStream>),
        (file, rest): (File, Range<u64>),
        header: &Arc<[u8]>,
    ) -> io::Result<OwnedFd> {
        self.thread()?;
        let (theirs, pipe) = pipes::input_pipe()?;
        let (header, written, block, is_parked) = (Arc::clone(header), 0, None, false);
        let feed =
            Feed { number, pipe, name, stream, block, header, written, file, rest, is_parked };
        self.prepared = Some(feed);
        Ok(theirs)
    }

    /// Begins the feed that was prepared last, if it has not begun.
    pub(super) fn begin(&mut self) {
        if let (Some(feed), Some(thread)) = (self.prepared.take(), &self.thread) {
            thread.state.lock().new.push(feed);
            thread.waker.wake();
        }
    }

    /// Takes the failures so far.
    pub(super) fn take_failures(&self) -> Vec<Failure> {
        let thread = self.thread.as_ref();
        thread.map(|thread| mem::take(&mut thread.state.lock().failures)).unwrap_or_default()
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        if let Some(thread) = &self.thread {
            thread.state.lock().is_over = true;
            thread.waker.wake();
        }
    }
}

impl Shared {
    fn run(&self, mut poller: Poller) {
        let mut feeds: BTreeMap<u64, Feed> = BTreeMap::new();
        let (mut next, mut ready) = (0, Vec::new());
        loop {
            if let Err(error) = poller.ready(true, &mut ready) {
                // Dropping the feeds ends their inputs early, which their jobs would not notice.
                for feed in feeds.values() {
                    self.fail(feed, io::Error::new(error.kind(), error.to_string()));
                }
                return;
            }
            for token in ready.drain(..) {
                if token != WAKER {
                    self.turn(token, &mut feeds, &mut poller);
                    continue;
                }
                self.waker.drain();
                let mut state = self.state.lock();
                if state.is_over {
                    return;
                }
                let new = mem::take(&mut state.new);
                drop(state);
                for feed in new {
                    let watched = poller.add(&feed.pipe, next);
                    match watched.and_then(|()| feed.watch(next, &poller)) {
                        Ok(()) => drop(feeds.insert(next, feed)),
                        Err(error) => self.fail(&feed, error),
                    }
                    next += 1;
                }
                // A block may be there for any of them.
                let parked = feeds.iter().filter(|(_, feed)| feed.is_parked);
                let parked: Vec<u64> = parked.map(|(token, _)| *token).collect();
                for token in parked {
                    self.turn(token, &mut feeds, &mut poller);
                }
            }
        }
    }

    fn turn(&self, token: u64, feeds: &mut BTreeMap<u64, Feed>, poller: &mut Poller) {
        let Some(feed) = feeds.get_mut(&token) else { return };
        let turn = feed.turn().and_then(|turn| {
            let was_parked = mem::replace(&mut feed.is_parked, turn == Turn::Parked);
            if was_parked != feed.is_parked {
                feed.watch(token, poller)?;
            }
            Ok(turn)
        });
        if matches!(turn, Ok(Turn::Waiting | Turn::Parked)) {
            return;
        }
        poller.remove(&feed.pipe);
        let Some(feed) = feeds.remove(&token) else { return };
        if let Some(stream) = &feed.stream {
            stream.leave();
        }
        if let Err(error) = turn {
            self.fail(&feed, error);
        }
    }

    fn fail(&self, feed: &Feed, error: io::Error) {
        let failure = Failure { number: feed.number, path: feed.name.clone(), error };
        self.state.lock().failures.push(failure);
        self.stopper.wake();
    }
}

impl Feed {
    /// Sets the conditions for a turn. A pipe is never readable at this end, so a parked feed has
    /// one only when its job has closed the pipe.
    fn watch(&self, token: u64, poller: &Poller) -> io::Result<()> {
        let interest = if self.is_parked { Interest::Readable } else { Interest::Writable };
        poller.set_interest(&self.pipe, token, interest)
    }

    /// Moves as much as the pipe takes now.
    fn turn(&mut self) -> io::Result<Turn> {
        if self.rest.is_empty() && self.written == self.header.len() {
            let Some(stream) = &self.stream else { return Ok(Turn::Over) };
            // Frees the memory before the next block takes some.
            self.block = None;
            match stream.next() {
                Poll::Ready(None) => return Ok(Turn::Over),
                Poll::Pending if self.is_parked && pipes::is_closed(&self.pipe) => {
                    return Ok(Turn::Over);
                }
                Poll::Pending => return Ok(Turn::Parked),
                Poll::Ready(Some(next)) => {
                    self.file = next.open()?;
                    self.rest = 0..next.len();
                    self.block = Some(next);
                }
            }
        }
        match self.move_some() {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
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
        let header = &self.header[self.written..];
        if !header.is_empty() {
            let count = pipes::write(&self.pipe, header)?;
            self.written += count;
            return Ok(count);
        }
        let most = (self.rest.end - self.rest.start).min(TURN_BYTES);
        match pipes::splice(&self.file, &mut self.rest.start, &self.pipe, most) {
            // Some file systems cannot.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => self.copy_some(most),
            result => result,
        }
    }

    fn copy_some(&mut self, most: u64) -> io::Result<usize> {
        const COPIED: usize = 64 * 1024;
        let mut buffer = vec![0; COPIED.min(usize::try_from(most).unwrap_or(COPIED))];
        let read = self.file.read_at(&mut buffer, self.rest.start)?;
        if read == 0 {
            return Ok(0);
        }
        let count = pipes::write(&self.pipe, &buffer[..read])?;
        self.rest.start += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
