//! Printing, logging and drawing, on a thread of their own.
//!
//! Each of them may wait for ever: for somebody who reads standard output, for a terminal that Ctrl-S holds, for a disk.
//! The runner's thread must not wait with them: it kills what is over its limit, and hears Ctrl-C.
//!
//! - The runner's thread puts what happens into a queue; the desk's thread takes it out in the same order.
//! - While the queue is long, the source gives out no jobs. So no more waits than a bounded queue and the jobs that run.
//! - A job that runs may print without an end, and with `--line-buffer` its lines are in the queue. When that is full, the
//!   runner's thread does wait, until there is room again or the run is asked to stop. From then on lines for which there
//!   is no room are dropped: their job is stopped, and was no success.
//! - After a second request to stop, or one when all jobs are over, nobody waits any more for whoever does not read. What
//!   was not printed then is not in the log either.

use std::collections::VecDeque;
use std::io;
use std::panic;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade::runner::{Event, Stopper};

use super::happening::Happening;
use super::session::{Closing, Session};
use crate::descriptors::most_held;
use crate::printer::costs;

/// The queue of events for the thread that prints.
#[derive(Debug, Clone)]
pub(super) struct Desk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    stopper: Stopper,
    most_files: usize,
}

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Happening>,
    /// The number of events taken out so far.
    taken: u64,
    /// What the outputs in it take.
    bytes: usize,
    files: usize,
    /// Whether the source holds back.
    is_held: bool,
    /// Nothing more comes.
    is_closed: bool,
    /// How often somebody asked to stop.
    asked: u8,
    /// The thread has given out everything, or has panicked.
    is_over: bool,
}

/// How many events may wait.
const MOST_EVENTS: usize = 256;
/// How many bytes of outputs may wait.
const MOST_BYTES: usize = 8 << 20;
/// How long an event may take to be given out when somebody has asked twice to stop.
const READER_LIMIT: Duration = Duration::from_millis(500);

impl Desk {
    pub(super) fn new(stopper: Stopper) -> Self {
        let (queue, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { queue, changed, stopper, most_files: most_held() }))
    }

    /// Starts to give events to a session.
    pub(super) fn open(&self, mut session: Session) -> io::Result<JoinHandle<Closing>> {
        let over = Over(self.clone());
        thread::Builder::new().name("desk".to_owned()).spawn(move || {
            let over = over;
            while let Some(event) = over.0.take() {
                event.tell(|event| session.take(event));
            }
            session.close()
        })
    }

    /// Something has happened.
    pub(super) fn put(&self, event: Event<'_>) {
        let Some(event) = Happening::of(event) else { return };
        let (bytes, files) = event.costs();
        let mut queue = self.lock();
        match &event {
            // The area is drawn with what is known by then.
            Happening::Tick if !queue.events.is_empty() => return,
            Happening::Output { .. } => {
                while queue.bytes >= MOST_BYTES && queue.asked == 0 && !queue.is_over {
                    queue = self.wait(queue);
                }
                if queue.bytes >= MOST_BYTES {
                    return;
                }
            }
            _ => {}
        }
        queue.bytes += bytes;
        queue.files += files;
        queue.events.push_back(event);
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Whether no more jobs should be started for now; then the stopper is woken when they should.
    pub(super) fn is_behind(&self) -> bool {
        let mut queue = self.lock();
        queue.is_held = self.is_long(&queue);
        queue.is_held
    }

    /// Somebody has asked for the run to stop.
    pub(super) fn asked_to_stop(&self) {
        let mut queue = self.lock();
        queue.asked = queue.asked.saturating_add(if queue.is_closed { 2 } else { 1 });
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Waits until everything was given out. None if somebody has asked twice to stop, and nobody reads.
    pub(super) fn close(&self, thread: JoinHandle<Closing>) -> Option<Closing> {
        let mut queue = self.lock();
        queue.is_closed = true;
        self.0.changed.notify_all();
        while !queue.is_over {
            if queue.asked < 2 {
                queue = self.wait(queue);
                continue;
            }
            let taken = queue.taken;
            let is_idle = |queue: &mut Queue| !queue.is_over && queue.taken == taken;
            let waited = self.0.changed.wait_timeout_while(queue, READER_LIMIT, is_idle);
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() {
                return None;
            }
            queue = after;
        }
        drop(queue);
        Some(thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    }

    fn take(&self) -> Option<Happening> {
        let mut queue = self.lock();
        loop {
            if let Some(event) = queue.events.pop_front() {
                let (bytes, files) = event.costs();
                queue.bytes -= bytes;
                queue.files -= files;
                queue.taken += 1;
                let is_released = queue.is_held && !self.is_long(&queue);
                queue.is_held &= !is_released;
                let is_closed = queue.is_closed;
                drop(queue);
                if is_released {
                    self.0.stopper.wake();
                }
                if is_closed || matches!(event, Happening::Output { .. }) {
                    self.0.changed.notify_all();
                }
                return Some(event);
            }
            if queue.is_closed {
                return None;
            }
            queue = self.wait(queue);
        }
    }

    fn is_long(&self, queue: &Queue) -> bool {
        queue.events.len() >= MOST_EVENTS
            || queue.bytes >= MOST_BYTES
            || queue.files >= self.0.most_files
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }
}

impl Happening {
    /// The memory and the files of outputs in it.
    fn costs(&self) -> (usize, usize) {
        match self {
            Self::Output { lines, .. } => (lines.len(), 0),
            Self::Finished(outcome) => costs(outcome),
            _ => (0, 0),
        }
    }
}

/// Tells that the thread is over, however it ends.
struct Over(Desk);

impl Drop for Over {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.0.stopper.kill();
        }
        self.0.lock().is_over = true;
        self.0.0.changed.notify_all();
    }
}
