//! What is done to a worker whose deadline has come.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use brigade_sys::process::{ForeignProcess, Swept};

use crate::event::ExpiredTimer;
use crate::ladder::Ladder;

/// A worker with timers that have expired.
#[derive(Debug)]
pub struct Expiry<'a> {
    pub(crate) process: &'a ForeignProcess,
    pub(crate) timers: &'a [ExpiredTimer],
    pub(crate) step: u32,
}

impl Expiry<'_> {
    /// The worker. Signals that are sent here reach it or nobody.
    pub fn process(&self) -> &ForeignProcess {
        self.process
    }

    /// The timers that have expired, the earliest first; never none.
    pub fn timers(&self) -> &[ExpiredTimer] {
        self.timers
    }

    /// How many times [`Reap::Again`] was answered before.
    pub fn step(&self) -> u32 {
        self.step
    }
}

/// How it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reap {
    /// The worker is gone, or as good as gone: all its timers are cleared.
    Gone(Swept),
    /// The worker lives on: its timers are kept, and the reaper is called again, first after 100 ms, then after twice the
    /// time before up to 10 s, until the timers are released or the worker is gone.
    Kept,
    /// The worker's end has begun: the reaper is called again after this time, unless the worker is gone by then. Its
    /// requests are ignored from now on.
    Again(Duration),
    /// The expired timers are done with. The worker and its other timers go on.
    Logged,
}

/// Reaps workers whose deadline has come.
///
/// It runs on the server's thread, once for each worker however many of its timers have expired; while it runs, no other
/// deadline is served. A panic is contained, and clears the worker's timers; an error is as [`Reap::Kept`].
pub trait Reaper: Send {
    /// Reaps one worker.
    ///
    /// # Errors
    /// Why it could not be reaped now.
    fn reap(&mut self, expiry: &Expiry<'_>) -> io::Result<Reap>;

    /// Deals with what a worker has left behind that was to be reaped again ([`Reap::Again`]), and has ended before.
    fn clean_up(&mut self, _ended: &ForeignProcess) -> Swept {
        Swept::default()
    }
}

impl<F: FnMut(&Expiry<'_>) -> io::Result<Reap> + Send> Reaper for F {
    fn reap(&mut self, expiry: &Expiry<'_>) -> io::Result<Reap> {
        self(expiry)
    }
}

/// Sends a ladder of signals: the one of the request, else its own, SIGKILL by default.
///
/// Signals go to the process group that the worker leads, or to the worker alone if it leads none. SIGKILL also goes to
/// descendants of the worker that have left the group. A worker may end at an earlier signal than what it has started; so
/// its descendants are noted before the first, and killed when it has ended.
#[derive(Debug, Default)]
pub struct SignalReaper {
    ladder: Ladder,
    /// By worker, whose number is its own until it has ended, and that is when the entry goes.
    descendants: HashMap<u32, Vec<ForeignProcess>>,
}

impl SignalReaper {
    /// With a ladder for requests that have none.
    pub fn new(ladder: Ladder) -> Self {
        Self { ladder, descendants: HashMap::new() }
    }
}

impl Reaper for SignalReaper {
    fn reap(&mut self, expiry: &Expiry<'_>) -> io::Result<Reap> {
        let ladders = expiry.timers().iter().map(|timer| timer.ladder.as_ref());
        let mut ladders = ladders.map(|ladder| ladder.unwrap_or(&self.ladder));
        let Some(ladder) = ladders.find(|ladder| !ladder.is_log_only()) else {
            return Ok(Reap::Logged);
        };
        let step = usize::try_from(expiry.step()).unwrap_or(usize::MAX);
        let (process, pid) = (expiry.process(), expiry.process().pid());
        if let Some((signal, wait)) = ladder.steps().get(step) {
            // Before the signal, at which it may end.
            let mut known = self.descendants.remove(&pid).unwrap_or_default();
            process.note_descendants(&mut known);
            let sent = process.signal_group(*signal);
            // A worker whose end has not begun may end without a word, and its number go to another.
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
        // It is gone; only what it has left behind may be out of reach.
        ended.kill_tree(&mut known).unwrap_or_default()
    }
}

/// Kills nobody: expiries are events, and that is all.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogReaper;

impl Reaper for LogReaper {
    fn reap(&mut self, _expiry: &Expiry<'_>) -> io::Result<Reap> {
        Ok(Reap::Logged)
    }
}

#[cfg(test)]
mod tests;
