//! Reapers, which act on a process whose deadline has passed.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use brigade_sys::process::{ForeignProcess, Swept};

use crate::escalation::Escalation;
use crate::event::ExpiredTimer;

/// A process with expired timers.
#[derive(Debug)]
#[non_exhaustive]
pub struct Expiry<'a> {
    /// The process. A signal sent through this handle reaches this process or none.
    pub process: &'a ForeignProcess,
    /// The expired timers, the earliest first; there is at least one.
    pub timers: &'a [ExpiredTimer],
    /// Number of times that the reaper has returned [`Reap::Again`] for this process.
    pub step: u32,
}

/// The result of a [`Reaper`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reap {
    /// The process is gone, or about to be: all its timers are cleared.
    Gone(Swept),
    /// The process lives on and its timers are kept. The reaper is called again after 100 ms, then
    /// after twice the previous time, up to 10 s, until the timers are released or the process is
    /// gone.
    Kept,
    /// The process is being ended: the reaper is called again after this time unless the process is
    /// gone by then. Requests of the process are ignored from now on.
    Again(Duration),
    /// The expired timers are dropped. The process and its other timers are left alone.
    Logged,
}

/// Acts on processes whose deadline has passed.
///
/// It runs on the server's thread, once per process however many of its timers have expired. While
/// it runs, no other deadline is served. A panic is contained and clears the process's timers; an
/// error counts as [`Reap::Kept`].
pub trait Reaper: Send {
    /// Acts on one process.
    ///
    /// # Errors
    /// The reason why it could not act now.
    fn reap(&mut self, expiry: &Expiry<'_>) -> io::Result<Reap>;

    /// Cleans up after a process that exited between two calls of `reap` ([`Reap::Again`]).
    fn clean_up(&mut self, _ended: &ForeignProcess) -> Swept {
        Swept::default()
    }
}

impl<F: FnMut(&Expiry<'_>) -> io::Result<Reap> + Send> Reaper for F {
    fn reap(&mut self, expiry: &Expiry<'_>) -> io::Result<Reap> {
        self(expiry)
    }
}

/// Sends an escalation of signals: the request's own, or else the reaper's, which is SIGKILL by
/// default.
///
/// Signals go to the process group that the process leads, or to the process alone if it leads
/// none. SIGKILL also goes to descendants that have left the group. A process may exit at an
/// earlier signal than its descendants do, so they are recorded before the first signal, and killed
/// when the process has exited.
#[derive(Debug, Default)]
pub struct SignalReaper {
    escalation: Escalation,
    /// By pid, which belongs to the process until it has ended; the entry is removed at that
    /// moment.
    descendants: HashMap<u32, Vec<ForeignProcess>>,
}

impl SignalReaper {
    /// Creates a reaper with an escalation for requests that have none.
    pub fn new(escalation: Escalation) -> Self {
        Self { escalation, descendants: HashMap::new() }
    }
}

impl Reaper for SignalReaper {
    fn reap(&mut self, expiry: &Expiry<'_>) -> io::Result<Reap> {
        let escalations = expiry.timers.iter().map(|timer| timer.escalation.as_ref());
        let mut escalations = escalations.map(|escalation| escalation.unwrap_or(&self.escalation));
        let Some(escalation) = escalations.find(|escalation| !escalation.is_log_only()) else {
            return Ok(Reap::Logged);
        };
        let step = usize::try_from(expiry.step).unwrap_or(usize::MAX);
        let (process, pid) = (expiry.process, expiry.process.pid());
        if let Some((signal, wait)) = escalation.steps().get(step) {
            // Recorded before the signal, at which the process may exit.
            let mut known = self.descendants.remove(&pid).unwrap_or_default();
            process.note_descendants(&mut known);
            let sent = process.signal_group(*signal);
            // Before its first signal, a process may exit without `clean_up`, and its pid may be
            // reused.
            if sent.is_ok() || step > 0 {
                self.descendants.insert(pid, known);
            }
            return sent.map(|()| Reap::Again(*wait));
        }
        let mut known = self.descendants.remove(&pid).unwrap_or_default();
        let swept = process.kill_tree(&mut known);
        if swept.is_err() && step > 0 {
            self.descendants.insert(pid, known);
        }
        swept.map(Reap::Gone)
    }

    fn clean_up(&mut self, ended: &ForeignProcess) -> Swept {
        let mut known = self.descendants.remove(&ended.pid()).unwrap_or_default();
        // The process is gone, so an error can only concern what it left behind.
        ended.kill_tree(&mut known).unwrap_or_default()
    }
}

/// Kills nothing: expiries are only reported as events.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogReaper;

impl Reaper for LogReaper {
    fn reap(&mut self, _expiry: &Expiry<'_>) -> io::Result<Reap> {
        Ok(Reap::Logged)
    }
}

#[cfg(test)]
mod tests;
