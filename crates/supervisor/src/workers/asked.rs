//! Asks a worker where it is.
//!
//! A worker that waits in the kernel is looked at from outside, which it does not notice. One that
//! runs is asked: a request is a number in the shared memory and a signal. The worker's handler
//! writes a record, and sends a packet, for which the reaper notifies everybody who waits. A worker
//! that blocks the signal does not answer, so each wait ends.
//!
//! A signal ends many system calls with a timeout early. So a worker is asked only if the pool
//! wants that, and if it has run on between two looks, and has neither waited nor been waiting for
//! a processor, perhaps at the end of such a call. What is left is a call that it begins between
//! the second look and the signal.
//!
//! Before a kill, a worker is asked in any case, and does not go on after that.

use std::sync::Arc;
use std::time::Duration;

use brigade_crash::{CrashReport, Stack};
use brigade_sys::clock::{self, Monotonic};
use brigade_sys::crash::{Look, Ran};
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

/// Time between two looks at a worker that does not wait.
const PAUSE: Duration = Duration::from_micros(100);

/// Time for looks, and for the answer of a worker that is asked. On a busy machine, its handler may
/// have to wait for a processor.
const LIMIT: Duration = Duration::from_millis(100);

impl WorkerProcess {
    /// Looks where the worker is, and returns its stack. One that runs is asked if `interrupts`,
    /// and `None` is returned if it does not answer.
    pub fn sample(&self, interrupts: bool) -> Option<Stack> {
        let (area, files) = self.crash_area()?;
        let process = self.process().filter(|process| self.is_worker(process.pid()))?;
        let deadline = clock::now().saturating_add(LIMIT);
        let samples = self.samples();
        let mut before: Option<Ran> = None;
        loop {
            let now = match process.look(area.copy()) {
                Look::Waits(record) => return Some(Stack::new(*record, *files)),
                Look::Hidden => return None,
                Look::Runs(now) => now,
            };
            match before {
                Some(before) if now.has_run_since(before) => break,
                Some(before) if !now.may_have_waited_since(before) => {}
                _ => before = Some(now),
            }
            if clock::now() >= deadline {
                return None;
            }
            drop(samples.arrived.wait_timeout(samples.requests.lock(), PAUSE));
        }
        if !interrupts {
            return None;
        }
        let request = self.ask(area.ask())?;
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

    /// Asks the worker where it is, for the last time: it does not go on.
    pub(crate) fn ask_last(&self) -> Option<u64> {
        self.ask(self.crash_area()?.0.ask_last())
    }

    /// Sends the signal of a request, and returns its number.
    fn ask(&self, request: u64) -> Option<u64> {
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
