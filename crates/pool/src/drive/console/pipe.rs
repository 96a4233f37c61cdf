//! One stream of one worker.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_wire::WorkerId;
use tracing::info;

use super::CHUNK;
use super::lines::Lines;
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
    /// Locked while reading and passing on, so that two readers cannot swap what they read.
    passage: Mutex<Passage>,
    /// Nothing comes any more, or nobody wants it.
    closed: AtomicBool,
}

/// What happens to the bytes.
struct Passage {
    /// The last of them, of stderr only.
    tail: Option<VecDeque<u8>>,
    sink: Sink,
}

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
        let passage = Mutex::new(Passage { tail, sink });
        Self { end: File::from(end), passage, closed: AtomicBool::new(false) }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reads what is there, at most `limit` bytes, and passes it on.
    pub(super) fn carry_on(&self, limit: usize) {
        let mut passage = self.passage();
        if self.is_closed() {
            return;
        }
        let mut buffer = [0; CHUNK];
        let mut total = 0;
        while total < limit {
            match (&self.end).read(&mut buffer) {
                // Closed by the worker and all that inherited it.
                Ok(0) => return self.finish(&mut passage),
                Ok(count) => {
                    total += count;
                    passage.take(&buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// What comes from now on is not read.
    pub(super) fn close(&self) {
        self.finish(&mut self.passage());
    }

    fn finish(&self, passage: &mut Passage) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            passage.sink.finish();
        }
    }

    pub(super) fn tail(&self) -> String {
        let passage = self.passage();
        let bytes: Vec<u8> = passage.tail.iter().flatten().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn passage(&self) -> MutexGuard<'_, Passage> {
        // Nothing that panics runs under this lock uncaught.
        self.passage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

impl Passage {
    fn take(&mut self, bytes: &[u8]) {
        if let Some(tail) = &mut self.tail {
            tail.extend(bytes);
            let excess = tail.len().saturating_sub(TAIL);
            tail.drain(..excess);
        }
        match &mut self.sink {
            // Whoever closed our stderr does not want the workers' words either.
            Sink::OurStderr => drop(io::stderr().write_all(bytes)),
            Sink::Nowhere => {}
            Sink::Events { stream, writer, lines } => {
                lines.take(bytes, |line| tell(stream, writer, line));
            }
        }
    }
}

impl Sink {
    fn events(stream: &'static str, writer: &Arc<Writer>) -> Self {
        Self::Events { stream, writer: Arc::clone(writer), lines: Lines::default() }
    }

    fn finish(&mut self) {
        if let Self::Events { stream, writer, lines } = self {
            lines.finish(|line| tell(stream, writer, line));
        }
    }
}

fn tell(stream: &str, writer: &Writer, line: &str) {
    let Writer { pool, worker, pid } = writer;
    let tell = || info!(target: "brigade::output", pool = &**pool, %worker, pid, stream, line);
    // A subscriber that panics loses this line, as the panic hook says. It must not end the thread on which the output of
    // all workers depends, or they would block.
    let _ = catch_unwind(AssertUnwindSafe(tell));
}
