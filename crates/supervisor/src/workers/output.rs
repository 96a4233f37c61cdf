//! Forwards the workers' output, and emits `tracing` events.
//!
//! Workers write to their own pipes: always for stderr, so that a death can be reported with the
//! worker's last words, and for stdout if it is captured, or if the worker is in a sandbox and must
//! not have the host's own. One thread forwards the bytes to the configured destination and emits
//! the pool's events. Only this thread writes to the host's streams and calls subscribers, so only
//! it waits if they block. The pipes then fill up and the workers
//! that write block too, as they would if they wrote directly. Nothing else is delayed, and memory
//! is bounded: each pipe keeps at most one line and its tail, and events and the last output of
//! dead workers wait in a bounded queue.
//!
//! Protocol:
//! - Any thread may read a pipe, which never blocks and keeps the tail, but only the output thread
//!   forwards what was read. A thread that handles a death reads what is left, closes the pipe, and
//!   queues the bytes for the output thread. That thread reads nothing between taking bytes and
//!   forwarding them, so the order is kept.
//! - Captured lines come before the outcome of the task: the death is reported once they are
//!   emitted, or after `EMIT_TIMEOUT` if the subscriber takes longer.
//! - Events that workers forward come through a pipe of their own, in the same way.
//! - At the pool's end the thread empties the queue and ends. A thread that is blocked at that
//!   point is left behind after a grace period.
//!
//! A pipe is closed once its worker is dead and its output has been read, even if other processes
//! have inherited the other end.

mod callsites;
mod forwarded;
mod lines;
mod pipe;
mod queue;
pub mod thread;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::poller::Poller;
use tracing::Level;

use crate::output_pipe::OutputPipe;
use crate::workers::alarm::ThreadAlarm;
use crate::workers::notes::{Note, Notes, is_wanted};
use crate::workers::process_env::Stdio;
use crate::workers::watch::WaitSet;
pub(crate) use pipe::{CHUNK, Pipe, Writer};
pub(crate) use queue::{Entry, LostEntries, OutputQueue};

/// Longest time that the report of a death waits for a subscriber to take the last lines.
pub(crate) const EMIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The output of a pool's workers, and its events.
pub struct OutputForwarder {
    stdio: Stdio,
    pub(crate) pipes: WaitSet<Arc<Pipe>>,
    pub(crate) queue: OutputQueue,
    pub(crate) alarm: ThreadAlarm,
}

/// The queue position that has to be done before the worker's death is reported.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastLines(u64);

/// The output streams of one worker that the pool reads.
pub(crate) struct WorkerStreams {
    stdout: Option<Arc<Pipe>>,
    stderr: Arc<Pipe>,
    /// Set in the handshake, if the worker forwards its events.
    events: OnceLock<Arc<Pipe>>,
    writer: Arc<Writer>,
}

/// The host's ends of a new worker's streams.
pub(crate) struct HostEnds {
    stdout: Option<OutputPipe>,
    stderr: OutputPipe,
}

/// The worker's ends of its streams.
pub(crate) struct WorkerEnds {
    /// `None` for the host's own.
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: OwnedFd,
}

impl HostEnds {
    /// Creates the pipes for a new worker. One in a sandbox shares no stream with the host.
    pub(crate) fn open(stdio: Stdio, is_confined: bool) -> io::Result<(Self, WorkerEnds)> {
        let (stdout, worker_stdout) = match stdio {
            Stdio::Inherit if !is_confined => (None, None),
            Stdio::Null => (None, Some(File::options().write(true).open("/dev/null")?.into())),
            Stdio::Inherit | Stdio::Capture => {
                let (ours, theirs) = OutputPipe::open()?;
                (Some(ours), Some(theirs))
            }
        };
        let (stderr, worker_stderr) = OutputPipe::open()?;
        let worker_ends = WorkerEnds { stdout: worker_stdout, stderr: worker_stderr };
        Ok((Self { stdout, stderr }, worker_ends))
    }
}

impl OutputForwarder {
    pub(crate) fn new(stdio: Stdio) -> io::Result<Self> {
        Ok(Self {
            stdio,
            pipes: WaitSet::new()?,
            queue: OutputQueue::default(),
            alarm: ThreadAlarm::new()?,
        })
    }

    /// Takes over the streams of a new worker.
    pub(crate) fn attach(&self, ends: HostEnds, writer: Writer) -> WorkerStreams {
        let writer = Arc::new(writer);
        let stdout = ends.stdout.map(|end| Arc::new(Pipe::of_stdout(end, self.stdio, &writer)));
        let stderr = Arc::new(Pipe::of_stderr(ends.stderr, self.stdio, &writer));
        stdout.iter().chain([&stderr]).for_each(|pipe| self.watch(pipe));
        WorkerStreams { stdout, stderr, events: OnceLock::new(), writer }
    }

    /// Creates the pipe through which a worker forwards its events, and returns the worker's end.
    pub(crate) fn open_events(&self, streams: &WorkerStreams) -> io::Result<OwnedFd> {
        let (ours, theirs) = OutputPipe::open_events()?;
        let pipe = Arc::new(Pipe::of_events(ours, &streams.writer));
        let _ = streams.events.set(Arc::clone(&pipe));
        self.watch(&pipe);
        Ok(theirs)
    }

    fn watch(&self, pipe: &Arc<Pipe>) {
        let watch = |pipe: &Arc<Pipe>, poller: &Poller, token| poller.add(&**pipe, token);
        if self.pipes.add(Arc::clone(pipe), watch) || self.alarm.is_parking() {
            self.alarm.wake();
        }
    }

    /// Reads what is left in a dead worker's pipes and closes them. Returns the end of its stderr,
    /// and the lines that have to be emitted before the death is reported.
    pub(crate) fn finish_streams(&self, streams: &WorkerStreams) -> (String, Option<LastLines>) {
        let events = streams.events.get();
        let pipes = streams.stdout.iter().chain([&streams.stderr]).chain(events);
        let is_awaited = self.stdio == Stdio::Capture || events.is_some();
        let rests: Vec<_> = pipes
            .filter_map(|pipe| {
                let (rest, is_end) = pipe.read_rest();
                // The end of a stream wakes the thread by itself.
                (is_awaited || !is_end || !rest.is_empty()).then(|| (Arc::clone(pipe), rest))
            })
            .collect();
        let is_needed = !rests.is_empty();
        let last = self.queue.push_rests(rests, is_awaited);
        if is_needed {
            self.alarm.wake();
        }
        (streams.stderr.tail(), is_awaited.then_some(LastLines(last)))
    }

    pub(crate) fn are_emitted(&self, lines: LastLines) -> bool {
        self.queue.is_done(lines.0)
    }

    /// Waits until the lines are emitted, for at most `EMIT_TIMEOUT`.
    pub(crate) fn wait_until_emitted(&self, lines: LastLines) {
        self.queue.wait_until_done(lines.0, EMIT_TIMEOUT);
    }

    /// Queues an event if any subscriber may want its level.
    pub fn note(&self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        if is_wanted(level) {
            self.push(Box::new(emit));
        }
    }

    /// Queues events.
    pub fn note_all(&self, notes: Notes) {
        notes.into_iter().for_each(|note| self.push(note));
    }

    fn push(&self, note: Note) {
        if self.queue.note(note) {
            self.alarm.wake();
        }
    }

    /// Queues work for the subscriber that must not be lost: closing a span. Once the output thread
    /// has ended, nothing depends on the current thread any more, and it does the work itself.
    pub fn keep(&self, pool: &str, note: Note) {
        match self.queue.keep(note) {
            Ok(true) => self.alarm.wake(),
            Ok(false) => {}
            Err(note) => run_note(pool, note),
        }
    }

    /// Does some of the work that must not be lost, if there is too much for the output thread.
    /// Called by threads that add to it and may call the subscriber: each does more than it adds.
    pub fn help(&self, pool: &str) {
        for note in std::iter::from_fn(|| self.queue.next_surplus()).take(2) {
            run_note(pool, note);
        }
    }

    /// Does the work that must not be lost. Called on the output thread.
    pub(crate) fn run_kept(&self, pool: &str) {
        while let Some(note) = self.queue.next_kept() {
            run_note(pool, note);
        }
    }
}

/// Calls the subscriber. If it panics, this event is lost, and the panic hook reports it.
pub(crate) fn run_note(pool: &str, note: Note) {
    let _ = catch_panic(|| note(pool));
}
