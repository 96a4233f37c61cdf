//! An output stream of a worker.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::now;
use brigade_sys::pipes;
use brigade_sys::sync::Mutex;
use brigade_sys::wait::wait_writable;
use brigade_wire::WorkerId;
use tracing::info;

use super::EMIT_TIMEOUT;
use super::forwarded::Forwarded;
use super::lines::IncompleteLine;
use crate::capture::Capture;
use crate::output_pipe::{MAX_REST, OutputPipe};
use crate::workers::process_env::Stdio;

/// Number of bytes forwarded at a time.
pub(crate) const CHUNK: usize = 16 * 1024;

/// Number of bytes of a dead worker's stderr that are kept for the error. Since Rust 1.96, a
/// backtrace may follow the message of an allocation that has failed.
const TAIL: usize = 16 * 1024;

/// The worker that writes to a stream.
pub(crate) struct Writer {
    pub(crate) pool: Box<str>,
    pub(crate) worker: WorkerId,
    pub(crate) pid: u32,
}

/// An output stream of a worker.
pub(crate) struct Pipe {
    end: OutputPipe,
    /// Locked while reading, so that two readers cannot swap their bytes, but never while bytes are
    /// forwarded.
    /// The last bytes are only kept for stderr.
    tail: Mutex<Capture>,
    /// Destination of the bytes. Locked only by the output thread, for as long as forwarding takes.
    sink: Mutex<OutputSink>,
    /// `true` if the stream has ended or is no longer wanted.
    closed: AtomicBool,
}

enum OutputSink {
    OurStdout,
    OurStderr,
    Nowhere,
    Events { stream: &'static str, writer: Arc<Writer>, lines: IncompleteLine },
    Forwarded(Box<Forwarded>),
}

impl Pipe {
    /// Creates the stream for a stdout that is not the host's own.
    pub(crate) fn of_stdout(end: OutputPipe, stdio: Stdio, writer: &Arc<Writer>) -> Self {
        Self::new(
            end,
            Capture::default(),
            OutputSink::new(stdio, OutputSink::OurStdout, "stdout", writer),
        )
    }

    pub(crate) fn of_stderr(end: OutputPipe, stdio: Stdio, writer: &Arc<Writer>) -> Self {
        let sink = OutputSink::new(stdio, OutputSink::OurStderr, "stderr", writer);
        Self::new(end, Capture::tail_of(TAIL), sink)
    }

    /// Creates the stream for the events that a worker forwards.
    pub(crate) fn of_events(end: OutputPipe, writer: &Arc<Writer>) -> Self {
        let sink = OutputSink::Forwarded(Box::new(Forwarded::new(writer)));
        Self::new(end, Capture::default(), sink)
    }

    fn new(end: OutputPipe, tail: Capture, sink: OutputSink) -> Self {
        Self { end, tail: Mutex::new(tail), sink: Mutex::new(sink), closed: AtomicBool::new(false) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Reads available bytes, at most about `limit`, and appends them to `into`. Returns `true` at
    /// the end of the stream. Forwarding the bytes is up to the output thread.
    pub(crate) fn read(&self, limit: usize, into: &mut Vec<u8>) -> bool {
        let mut tail = self.tail.lock();
        if self.is_closed() {
            return false;
        }
        let take = |bytes: &[u8]| {
            tail.push(bytes);
            into.extend_from_slice(bytes);
        };
        let is_end = self.end.read(limit, &mut [0; CHUNK], take).unwrap_or(false);
        if is_end {
            self.closed.store(true, Ordering::Release);
        }
        is_end
    }

    /// Reads the rest, at most about `MAX_REST` bytes, and closes the stream. Returns `true` if it
    /// has ended.
    pub(crate) fn read_rest(&self) -> (Vec<u8>, bool) {
        let mut rest = Vec::new();
        let is_end = self.is_closed() || self.read(MAX_REST, &mut rest);
        let _tail = self.tail.lock();
        self.closed.store(true, Ordering::Release);
        (rest, is_end)
    }

    /// Forwards bytes, and the end of the stream. Called only on the output thread, because the
    /// destination may block.
    pub(crate) fn forward(&self, bytes: &[u8], is_end: bool) {
        // A panic of the subscriber is caught below.
        let mut sink = self.sink.lock();
        sink.take(bytes);
        if is_end {
            sink.finish();
        }
    }

    pub(crate) fn tail(&self) -> String {
        // It is in memory, so reading does not fail.
        let bytes = self.tail.lock().captured().tail(TAIL).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

brigade_sys::as_fd!(Pipe, end);

impl OutputSink {
    fn new(stdio: Stdio, ours: Self, stream: &'static str, writer: &Arc<Writer>) -> Self {
        match stdio {
            Stdio::Inherit => ours,
            Stdio::Null => Self::Nowhere,
            Stdio::Capture => Self::Events {
                stream,
                writer: Arc::clone(writer),
                lines: IncompleteLine::default(),
            },
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self {
            Self::OurStdout => write_to_stdout(bytes),
            // If the host's stderr is closed, the workers' output is not wanted there either.
            Self::OurStderr => drop(io::stderr().write_all(bytes)),
            Self::Nowhere => {}
            Self::Events { stream, writer, lines } => {
                lines.take(bytes, |line| emit_line(stream, writer, line));
            }
            Self::Forwarded(events) => events.take(bytes),
        }
    }

    fn finish(&mut self) {
        if let Self::Events { stream, writer, lines } = self {
            lines.finish(|line| emit_line(stream, writer, line));
        }
    }
}

/// Writes to the host's stdout, past its buffer and its lock: another thread may hold that while it
/// waits for the worker. If the stream is closed, the output is not wanted there.
fn write_to_stdout(mut bytes: &[u8]) {
    let stdout = io::stdout();
    while !bytes.is_empty() {
        let written = match pipes::write(&stdout, bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait_writable(stdout.as_fd(), now().saturating_add(EMIT_TIMEOUT)).map(|_| 0)
            }
            written => written,
        };
        match written {
            Ok(count) => bytes = &bytes[count..],
            Err(_) => return,
        }
    }
}

fn emit_line(stream: &str, writer: &Writer, line: &str) {
    let Writer { pool, worker, pid } = writer;
    // A subscriber that panics loses this line; the panic hook reports it. It must not end the
    // thread that all workers' output depends on, or they would block.
    let _ = catch_panic(
        || info!(target: "brigade::output", pool = &**pool, %worker, pid, stream, line),
    );
}
