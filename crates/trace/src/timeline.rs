//! The timeline of a pool, which a thread of its own writes to a file.
//!
//! Entries are added under the pool's lock, so that costs a few nanoseconds and never blocks on the
//! disk. The thread writes them a tenth of a second later, or earlier if they are many, so that the
//! file of a killed program lacks only the last moment. Entries that come faster than they are
//! written are lost, and counted.

mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, mem};

use brigade_base::{Attempt, TaskId, WorkerId};
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::process::Exit;
use brigade_sys::sync::{Condvar, Mutex};

use writer::EntryWriter;

/// Maximum number of entries that wait to be written, which take a few mebibytes.
const MAX: usize = 1 << 16;

/// With this number of entries, the thread does not wait for more.
const ENOUGH: usize = 1 << 12;

/// Time for which the thread waits for more entries.
const DELAY: Duration = Duration::from_millis(100);

/// The queue's length is recorded once in this time, and when it becomes 0.
const INTERVAL: Duration = Duration::from_millis(1);

/// The timeline of a pool.
#[derive(Debug)]
pub struct Timeline {
    buffer: Mutex<WriteBuffer>,
    /// Notified when there is something to do for the thread that writes.
    changed: Condvar,
    /// `true` if nobody wants entries anymore.
    closed: AtomicBool,
    file: Mutex<Option<File>>,
    begin: Monotonic,
}

#[derive(Debug)]
struct WriteBuffer {
    entries: Vec<Entry>,
    lost: u64,
    ended: bool,
    /// The last recorded length of the queue, and the time of that.
    queue: (usize, Monotonic),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A process was ordered.
    Ordered { worker: WorkerId, at: Monotonic },
    /// A worker takes tasks; its initializer began at `initializing`.
    Ready { worker: WorkerId, initializing: Option<Monotonic>, at: Monotonic },
    /// An attempt has ended.
    Ran(Ran),
    /// A process is gone. `interrupted` is `true` if it was running a task.
    Gone { worker: WorkerId, exit: Exit, interrupted: bool, at: Monotonic },
    /// A process could not be started.
    NotStarted { worker: WorkerId, at: Monotonic },
    /// The length of the queue.
    Queue { tasks: usize, at: Monotonic },
}

/// An attempt that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub worker: WorkerId,
    pub task: TaskId,
    pub attempt: Attempt,
    pub label: Option<Arc<str>>,
    /// Number of items of a chunk that have ended; `None` for another task.
    pub items: Option<u32>,
    pub outcome: &'static str,
    /// As the worker says.
    pub began: Monotonic,
    pub ended: Monotonic,
}

impl Timeline {
    /// Creates the file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            buffer: Mutex::new(WriteBuffer {
                entries: Vec::new(),
                lost: 0,
                ended: false,
                queue: (0, Monotonic::ZERO),
            }),
            changed: Condvar::new(),
            closed: AtomicBool::new(false),
            file: Mutex::new(Some(File::create(path)?)),
            begin: now(),
        })
    }

    /// Adds an entry.
    pub fn add(&self, entry: Entry) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let mut buffer = self.buffer.lock();
        if buffer.entries.len() >= MAX {
            buffer.lost += 1;
            return;
        }
        buffer.entries.push(entry);
        if matches!(buffer.entries.len(), 1 | ENOUGH) {
            self.changed.notify_one();
        }
    }

    /// Records the length of the queue, if it is time for that.
    pub fn queue(&self, tasks: usize, at: Monotonic) {
        let mut buffer = self.buffer.lock();
        let (recorded, time) = buffer.queue;
        if tasks == recorded || tasks > 0 && at.saturating_since(time) < INTERVAL {
            return;
        }
        buffer.queue = (tasks, at);
        drop(buffer);
        self.add(Entry::Queue { tasks, at });
    }

    /// Lets the thread write the rest and end.
    pub fn end(&self) {
        self.buffer.lock().ended = true;
        self.changed.notify_one();
    }

    /// Writes the entries until the end. Returns an error if that fails; later entries are dropped.
    pub fn run(&self, pool: &str) -> io::Result<()> {
        let written = self.write_all(pool);
        self.closed.store(true, Ordering::Relaxed);
        self.buffer.lock().entries = Vec::new();
        written
    }

    fn write_all(&self, pool: &str) -> io::Result<()> {
        let Some(file) = self.file.lock().take() else { return Ok(()) };
        let mut writer = EntryWriter::new(file, pool, self.begin)?;
        let mut entries = Vec::new();
        loop {
            let mut buffer = self.buffer.lock();
            while buffer.entries.is_empty() && !buffer.ended {
                buffer = self.changed.wait(buffer);
            }
            let is_more = |buffer: &mut WriteBuffer| !buffer.ended && buffer.entries.len() < ENOUGH;
            buffer = self.changed.wait_timeout_while(buffer, DELAY, is_more).0;
            mem::swap(&mut buffer.entries, &mut entries);
            let (lost, ended) = (mem::take(&mut buffer.lost), buffer.ended);
            drop(buffer);
            writer.write(entries.drain(..), lost)?;
            if ended {
                return writer.finish();
            }
        }
    }
}
