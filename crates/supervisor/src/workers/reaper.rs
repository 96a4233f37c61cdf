//! The deaths and the deadline that the reaper's thread waits for.
//!
//! `due` holds the owner's next deadline. Threads that hold the owner's lock keep it up to date;
//! the reaper reads it without the lock, because such a thread may already have done what was due.

pub mod thread;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_sys::clock::Monotonic;
use brigade_sys::poller::Poller;
use brigade_sys::process::Process;
use brigade_sys::sync::Mutex;

use crate::workers::alarm::ThreadAlarm;
use crate::workers::asked::Asked;
use crate::workers::watch::WaitSet;
use crate::workers::worker_process::WorkerProcess;

/// Orders to the reaper's thread.
pub struct Reaper {
    /// Workers whose deaths are awaited.
    pub(crate) workers: WaitSet<Arc<WorkerProcess>>,
    /// Fork servers, which nobody waits for: they are only reaped.
    pub(crate) servers: Mutex<Vec<Arc<Process>>>,
    /// Workers that are about to be killed.
    pub(crate) asked: Mutex<Vec<Asked>>,
    pub(crate) alarm: ThreadAlarm,
    /// The next deadline in nanoseconds of the monotonic clock; `u64::MAX` stands for none.
    /// Written under the owner's lock.
    due: AtomicU64,
}

impl Reaper {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            workers: WaitSet::new()?,
            servers: Mutex::default(),
            asked: Mutex::default(),
            alarm: ThreadAlarm::new()?,
            due: AtomicU64::new(u64::MAX),
        })
    }

    /// Waits for the death of a worker from now on.
    pub fn watch(&self, process: Arc<WorkerProcess>) {
        // Nothing is to be reaped of a thread, and its link ends by itself.
        if process.thread().is_some() {
            return;
        }
        let is_parking = self.alarm.is_parking();
        let watch = |process: &Arc<WorkerProcess>, poller: &Poller, token| {
            let ends = process.pidfd().zip(process.control()).filter(|_| !is_parking);
            // The token of the control socket is the next number.
            ends.map_or(Ok(()), |(pidfd, control)| {
                poller.add(pidfd, token).and_then(|()| poller.add(control, token + 1))
            })
        };
        // Looked at again: the thread may have given up before the worker was in the list.
        if self.workers.add(process, watch) || self.alarm.is_parking() {
            self.wake();
        }
    }

    /// Reaps a fork server when it has ended.
    pub(crate) fn watch_server(&self, server: Arc<Process>) {
        self.servers.lock().push(server);
        self.wake();
    }

    /// Wakes the thread, because a deadline is earlier or a worker may be reported.
    pub fn wake(&self) {
        self.alarm.wake();
    }

    /// Returns `true` if the thread receives packets of workers.
    pub(crate) fn receives(&self) -> bool {
        !self.alarm.is_parking() && !self.alarm.has_ended()
    }

    /// Sets the next deadline. A thread that makes it earlier has to wake the reaper as well.
    #[inline]
    pub fn sleep_until(&self, due: Option<Monotonic>) {
        let due = due.map_or(u64::MAX, Monotonic::as_nanos);
        // Usually the deadline is unchanged; skipping the store keeps the reaper's cache line
        // valid.
        if self.due.load(Ordering::Relaxed) != due {
            self.due.store(due, Ordering::Release);
        }
    }

    pub(crate) fn due(&self) -> Option<Monotonic> {
        Some(self.due.load(Ordering::Acquire))
            .filter(|due| *due != u64::MAX)
            .map(Monotonic::from_nanos)
    }
}
