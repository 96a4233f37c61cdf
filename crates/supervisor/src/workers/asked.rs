//! Asks a worker where it is.
//!
//! A request is a number in the shared memory and a signal. The worker's handler writes a record,
//! and sends a packet, for which the reaper notifies everybody who waits. A worker that is stopped,
//! blocks the signal, or waits in the kernel for a device, does not answer, so each wait ends.

use std::sync::Arc;
use std::time::Duration;

use brigade_crash::{CrashReport, Stack};
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::process::Exit;

use crate::workers::worker_process::{ProcessState, WorkerProcess};

/// A worker that is killed once it has said where it is.
pub(crate) struct Asked {
    pub(crate) process: Arc<WorkerProcess>,
    pub(crate) request: u64,
    pub(crate) at_once: bool,
    pub(crate) until: Monotonic,
}

impl Asked {
    /// Returns `true` if the worker has answered, or has had its time.
    pub(crate) fn is_due(&self, now: Monotonic) -> bool {
        self.until <= now || self.process.has_answered(self.request)
    }
}

impl WorkerProcess {
    /// Asks the worker where it is, and returns its stack; `None` if it does not answer in time.
    pub fn sample(&self, timeout: Duration) -> Option<Stack> {
        let deadline = clock::now().saturating_add(timeout);
        let samples = self.samples();
        let request = self.ask()?;
        let mut requests = samples.requests.lock();
        while !self.has_answered(request) {
            let left = deadline.saturating_since(clock::now());
            if left.is_zero() || self.state() == ProcessState::Dead {
                return None;
            }
            requests = samples.arrived.wait_timeout(requests, left).0;
        }
        drop(requests);
        self.answer(request)
    }

    /// Sends a request, and returns its number.
    pub(crate) fn ask(&self) -> Option<u64> {
        let request = self.crash_area()?.0.ask();
        // Before the signal, because the notice may arrive at once.
        self.samples().requests.lock().open += 1;
        self.signal_for_sample().then_some(request)
    }

    fn has_answered(&self, request: u64) -> bool {
        self.crash_area().is_some_and(|(area, _)| area.has_answered(request))
    }

    /// Notifies everybody who waits for a sample. Returns `false` if nobody has asked for one.
    pub(crate) fn sample_arrived(&self) -> bool {
        // Under the lock, so that nobody is just about to sleep.
        let mut requests = self.samples().requests.lock();
        let was_asked = requests.open > 0;
        requests.open = requests.open.saturating_sub(1);
        self.samples().arrived.notify_all();
        was_asked
    }

    /// Returns where the worker was before it was killed, if it has answered.
    pub(crate) fn last_stack(&self) -> Option<Stack> {
        let request = self.samples().requests.lock().last?;
        self.answer(request)
    }

    fn answer(&self, request: u64) -> Option<Stack> {
        let (area, files) = self.crash_area()?;
        area.answer(request).map(|record| Stack::new(record, *files))
    }

    /// Returns the report of the crash that ended the process in this way.
    pub(crate) fn crash_report(&self, exit: Exit) -> Option<CrashReport> {
        let (area, files) = self.crash_area()?;
        let record = matches!(exit, Exit::Signal(_)).then(|| area.crash())?;
        CrashReport::new(record?, *files)
    }
}
