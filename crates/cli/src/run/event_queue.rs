//! Passes events to a thread of their own, which prints, logs and draws.
//!
//! Printing, logging and drawing may block forever: on a reader of standard output, on a terminal
//! stopped by Ctrl-S, on a disk. The runner's thread must not block with them: it enforces time
//! limits and handles Ctrl-C.
//!
//! - The runner's thread appends events to a queue; the output thread takes them in the same order.
//! - While the queue is long, or many outcomes wait for their turn, the client supplies no jobs. So
//!   at most a bounded number of events and those of the running jobs wait.
//! - A running job may print without end, and with `--line-buffer` its lines are in the queue. When
//!   it is full, the runner's thread does block, until there is room or the run is asked to stop.
//!   After that, lines that find no room are dropped, and their job is not in the log.
//! - After a second request to stop, or a first one after all jobs are over, nobody waits any
//!   longer for a reader that does not read. Output that was not printed by then is not in the log
//!   either.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::panic;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade::runner::{Event, Outcome, Stopper};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::session::Session;
use crate::descriptors::most_held;
use crate::printer::{ReorderBuffer, costs};
use crate::screen::SupplyCounts;

/// The queue of events for the output thread.
#[derive(Debug, Clone)]
pub(super) struct EventQueue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stopper: Stopper,
    most_files: usize,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Event>,
    /// The number of events taken out so far.
    taken: u64,
    /// Bytes of output in the queue.
    bytes: usize,
    files: usize,
    /// The numbers of jobs that run and have printed something that is lost.
    cut: HashSet<u64>,
    /// Puts outcomes into the order of the jobs, if that was asked for.
    reorder: Option<ReorderBuffer>,
    supply: SupplyCounts,
    /// `true` if the client holds jobs back until fewer events and outcomes wait.
    is_held: bool,
    /// `true` if no more events will be added.
    is_closed: bool,
    /// Number of requests to stop.
    stop_requests: u8,
    thread: OutputThread,
}

/// The state of the output thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum OutputThread {
    /// It has events to handle.
    #[default]
    Busy,
    /// It has handled all events so far.
    Idle,
    /// It has handled the last event, or has panicked.
    Over,
}

/// Number of events at which the queue counts as long.
const MAX_EVENTS: usize = 256;
/// Bytes of output at which the queue counts as long.
const MAX_BYTES: usize = 8 << 20;
/// Maximum time for handling one event after a second request to stop.
const READER_LIMIT: Duration = Duration::from_millis(500);

impl EventQueue {
    pub(super) fn new(stopper: Stopper, reorder: Option<ReorderBuffer>) -> Self {
        let state = Mutex::new(State { reorder, ..State::default() });
        let changed = Condvar::new();
        Self(Arc::new(Shared { state, changed, stopper, most_files: most_held() }))
    }

    /// Starts the output thread, which passes events to a session.
    pub(super) fn start(&self, mut session: Session) -> io::Result<JoinHandle<Session>> {
        let over = Over(self.clone());
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            let over = over;
            while let Some((event, supply)) = over.0.pop() {
                session.take(event, supply);
            }
            let supply = over.0.lock().supply;
            session.close(supply)
        })
    }

    /// Adds an event.
    pub(super) fn push(&self, event: Event) {
        let (bytes, files) = costs_of(&event);
        let mut queue = self.lock();
        match &event {
            // The area will be drawn with the state at that time.
            Event::Tick if !queue.events.is_empty() => return,
            Event::Output { number, .. } => {
                while queue.bytes >= MAX_BYTES
                    && queue.stop_requests == 0
                    && queue.thread != OutputThread::Over
                {
                    self.0.changed.wait(&mut queue);
                }
                if queue.bytes >= MAX_BYTES {
                    queue.cut.insert(*number);
                    return;
                }
            }
            _ => {}
        }
        queue.bytes += bytes;
        queue.files += files;
        if queue.thread == OutputThread::Idle {
            queue.thread = OutputThread::Busy;
        }
        queue.events.push_back(event);
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Returns `true` if no more jobs should start for now. The stopper is woken when they should.
    pub(super) fn is_behind(&self) -> bool {
        let mut queue = self.lock();
        queue.is_held = self.is_long(&queue);
        queue.is_held
    }

    /// Records that something which a job has printed is lost.
    pub(super) fn cut(&self, number: u64) {
        self.lock().cut.insert(number);
    }

    /// Returns `true` if nothing is lost that a job has printed. The job is over, and forgotten.
    pub(super) fn is_whole(&self, number: u64) -> bool {
        !self.lock().cut.remove(&number)
    }

    /// Records that a job was supplied.
    pub(super) fn supplied(&self, number: u64) {
        if let Some(reorder) = &mut self.lock().reorder {
            reorder.taken(number);
        }
    }

    /// Records the numbers of jobs that were and will be supplied.
    pub(super) fn note_supply(&self, supply: SupplyCounts) {
        self.lock().supply = supply;
    }

    /// Records that a job is over. Returns the outcomes whose turn has come.
    pub(super) fn in_turn(&self, outcome: Outcome) -> Vec<Outcome> {
        let mut queue = self.lock();
        let Some(reorder) = &mut queue.reorder else { return vec![outcome] };
        let turn = reorder.finished(outcome);
        self.release(queue);
        turn
    }

    /// Returns the outcomes whose turn did not come.
    pub(super) fn rest(&self) -> Vec<Outcome> {
        self.lock().reorder.as_mut().map(ReorderBuffer::rest).unwrap_or_default()
    }

    /// Records a request to stop the run.
    pub(super) fn request_stop(&self) {
        let mut queue = self.lock();
        queue.stop_requests =
            queue.stop_requests.saturating_add(if queue.is_closed { 2 } else { 1 });
        drop(queue);
        self.0.changed.notify_all();
    }

    /// Waits until all events so far are handled, but not long: nobody may read them.
    pub(super) fn settle(&self) {
        let is_busy = |queue: &mut State| queue.thread == OutputThread::Busy;
        self.0.changed.wait_while_for(&mut self.lock(), is_busy, READER_LIMIT);
    }

    /// Waits until all events are handled. Returns `None` if the run was asked twice to stop and
    /// nobody reads its output.
    pub(super) fn finish(&self, thread: JoinHandle<Session>) -> Option<Session> {
        let mut queue = self.lock();
        queue.is_closed = true;
        self.0.changed.notify_all();
        while queue.thread != OutputThread::Over {
            if queue.stop_requests < 2 {
                self.0.changed.wait(&mut queue);
                continue;
            }
            let taken = queue.taken;
            let is_idle =
                |queue: &mut State| queue.thread != OutputThread::Over && queue.taken == taken;
            let waited = self.0.changed.wait_while_for(&mut queue, is_idle, READER_LIMIT);
            if waited.timed_out() {
                return None;
            }
        }
        drop(queue);
        Some(thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    }

    fn pop(&self) -> Option<(Event, SupplyCounts)> {
        let mut queue = self.lock();
        loop {
            if let Some(event) = queue.events.pop_front() {
                let (bytes, files) = costs_of(&event);
                queue.bytes -= bytes;
                queue.files -= files;
                queue.taken += 1;
                let (is_closed, supply) = (queue.is_closed, queue.supply);
                self.release(queue);
                if is_closed || matches!(event, Event::Output { .. }) {
                    self.0.changed.notify_all();
                }
                return Some((event, supply));
            }
            if queue.is_closed {
                return None;
            }
            if queue.thread == OutputThread::Busy {
                queue.thread = OutputThread::Idle;
                self.0.changed.notify_all();
            }
            self.0.changed.wait(&mut queue);
        }
    }

    /// Lets the client supply jobs again, if fewer events and outcomes wait.
    fn release(&self, mut queue: MutexGuard<'_, State>) {
        let is_released = queue.is_held && !self.is_long(&queue);
        queue.is_held &= !is_released;
        drop(queue);
        if is_released {
            self.0.stopper.wake();
        }
    }

    fn is_long(&self, queue: &State) -> bool {
        queue.reorder.as_ref().is_some_and(ReorderBuffer::is_full)
            || queue.events.len() >= MAX_EVENTS
            || queue.bytes >= MAX_BYTES
            || queue.files >= self.0.most_files
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

/// Returns the memory in bytes and the number of files of the outputs in an event.
fn costs_of(event: &Event) -> (usize, usize) {
    match event {
        Event::Output { lines, .. } => (lines.len(), 0),
        Event::Finished(outcome) | Event::Retrying(outcome) => costs(outcome),
        _ => (0, 0),
    }
}

/// Marks the thread as over when dropped, however the thread ends.
struct Over(EventQueue);

impl Drop for Over {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.0.stopper.kill();
        }
        self.0.lock().thread = OutputThread::Over;
        self.0.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use brigade::runner::{Job, Runner, Stream};

    use super::*;

    #[test]
    fn a_job_whose_lines_are_dropped_is_not_whole() {
        let runner = Runner::builder().build().expect("a runner");
        let queue = EventQueue::new(runner.stopper(), None);
        queue.request_stop();
        for number in [1, 2] {
            let (job, lines) = (Arc::new(Job::new("x")), vec![0; MAX_BYTES]);
            queue.push(Event::Output { number, job, slot: 1, stream: Stream::Stdout, lines });
        }
        assert_eq!([1, 2].map(|number| queue.is_whole(number)), [true, false]);
    }
}
