//! One stream of one worker.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_wire::WorkerId;
use tracing::info;

use super::CHUNK;
use super::lines::Lines;
use crate::contained::contain;
use crate::surroundings::Stdio;

/// So much of a dead worker's stderr goes into the error.
const TAIL: usize = 4096;

/// Who writes.
pub(in crate::drive) struct Writer {
    pub(in crate::drive) pool: Box<str>,
    pub(in crate::drive) worker: WorkerId,
    pub(in crate::drive) pid: u32,
}

/// See the module's documentation.
pub(super) struct Pipe {
    // Non-blocking, so that reading what is there never waits.
    end: File,
    /// Locked while reading, so that two readers cannot swap what they read, and never while anything is passed on.
    tail: Mutex<Tail>,
    /// Where the bytes go. Locked by the console thread alone, for as long as it takes.
    sink: Mutex<Sink>,
    /// Nothing comes any more, or nobody wants it.
    closed: AtomicBool,
}

/// The last bytes, of stderr only.
struct Tail(Option<VecDeque<u8>>);

enum Sink {
    OurStderr,
    Nowhere,
    Events { stream: &'static str, writer: Arc<Writer>, lines: Lines },
}

impl Pipe {
    /// A stdout comes here to be captured.
    pub(super) fn of_stdout(end: OwnedFd, writer: &Arc<Writer>) -> Self {
        Self::new(end, None, Sink::events("stdout", writer))
    }

    pub(super) fn of_stderr(end: OwnedFd, stdio: Stdio, writer: &Arc<Writer>) -> Self {
        let sink = match stdio {
            Stdio::Inherit => Sink::OurStderr,
            Stdio::Null => Sink::Nowhere,
            Stdio::Capture => Sink::events("stderr", writer),
        };
        Self::new(end, Some(VecDeque::new()), sink)
    }

    fn new(end: OwnedFd, tail: Option<VecDeque<u8>>, sink: Sink) -> Self {
        Self {
            end: File::from(end),
            tail: Mutex::new(Tail(tail)),
            sink: Mutex::new(sink),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reads what is there, at most about `limit` bytes, and appends it; true when that was the end. Passing it on is left to
    /// the console thread.
    pub(super) fn read(&self, limit: usize, into: &mut Vec<u8>) -> bool {
        let mut tail = self.lock_tail();
        let mut buffer = [0; CHUNK];
        let mut total = 0;
        while total < limit && !self.is_closed() {
            match (&self.end).read(&mut buffer) {
                // Closed by the worker and all that inherited it.
                Ok(0) => {
                    self.closed.store(true, Ordering::Release);
                    return true;
                }
                Ok(count) => {
                    total += count;
                    tail.take(&buffer[..count]);
                    into.extend_from_slice(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        false
    }

    /// Reads the rest, at most about `limit` bytes; what comes from now on is not read.
    pub(super) fn read_rest(&self, limit: usize) -> Vec<u8> {
        let mut rest = Vec::new();
        self.read(limit, &mut rest);
        let _tail = self.lock_tail();
        self.closed.store(true, Ordering::Release);
        rest
    }

    /// Passes bytes on, and the end of the stream. On the console thread only: whoever takes them may block.
    pub(super) fn pass_on(&self, bytes: &[u8], is_end: bool) {
        // A subscriber that panics is contained below.
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        sink.take(bytes);
        if is_end {
            sink.finish();
        }
    }

    pub(super) fn tail(&self) -> String {
        let bytes: Vec<u8> = self.lock_tail().0.iter().flatten().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn lock_tail(&self) -> MutexGuard<'_, Tail> {
        // Nothing that panics runs under this lock.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Tail {
    fn take(&mut self, bytes: &[u8]) {
        if let Some(tail) = &mut self.0 {
            tail.extend(bytes);
            let excess = tail.len().saturating_sub(TAIL);
            tail.drain(..excess);
        }
    }
}

impl Sink {
    fn events(stream: &'static str, writer: &Arc<Writer>) -> Self {
        Self::Events { stream, writer: Arc::clone(writer), lines: Lines::default() }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self {
            // Whoever closed our stderr does not want the workers' words either.
            Self::OurStderr => drop(io::stderr().write_all(bytes)),
            Self::Nowhere => {}
            Self::Events { stream, writer, lines } => {
                lines.take(bytes, |line| tell(stream, writer, line));
            }
        }
    }

    fn finish(&mut self) {
        if let Self::Events { stream, writer, lines } = self {
            lines.finish(|line| tell(stream, writer, line));
        }
    }
}

fn tell(stream: &str, writer: &Writer, line: &str) {
    let Writer { pool, worker, pid } = writer;
    // A subscriber that panics loses this line, as the panic hook says. It must not end the thread on which the output of
    // all workers depends, or they would block.
    let _ =
        contain(|| info!(target: "brigade::output", pool = &**pool, %worker, pid, stream, line));
}
