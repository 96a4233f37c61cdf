//! Drives a run whose jobs run on other machines, with the same machine as a local run.
//!
//! A slot is a place among the attempts that are handed over at once. An attempt may wait elsewhere
//! before it begins, so the end of a run withdraws what has not begun.

use std::collections::HashMap;
use std::mem;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use brigade_supervisor::{Capture, Captured};
use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;
use brigade_sys::wait::wait_readable;

use super::{News, Remote, RemoteAttempt, RemoteReport};
use crate::client::{Client, Supply};
use crate::drive::{Config, RunClock};
use crate::error::RunnerError;
use crate::event::{Event, Reason};
use crate::limit::Limit;
use crate::machine::{Action, Attempt, Machine, Notice, Verdict};
use crate::outcome::{Ending, Outcome, StartFailure};
use crate::stopper::Stopper;
use crate::summary::Summary;

pub(crate) struct RemoteDrive<'a> {
    machine: Machine,
    client: &'a mut dyn Client,
    remote: &'a mut dyn Remote,
    stopper: Stopper,
    /// Number of stop requests that were passed to the machine.
    handled_stops: u8,
    /// The limit of jobs that have none of their own.
    limit: Option<Duration>,
    slots: Vec<Option<Sent>>,
    by_ticket: HashMap<u64, usize>,
    last_ticket: u64,
    clock: RunClock,
    start: Monotonic,
    summary: Summary,
    failure: Option<RunnerError>,
}

/// An attempt that was handed over.
struct Sent {
    ticket: u64,
    attempt: Attempt,
    began: Option<Monotonic>,
    host: Option<Arc<str>>,
}

impl<'a> RemoteDrive<'a> {
    pub(crate) fn new(
        config: Config,
        stopper: Stopper,
        client: &'a mut dyn Client,
        remote: &'a mut dyn Remote,
    ) -> Result<Self, RunnerError> {
        stopper.check_process()?;
        let mut settings = config.settings;
        settings.is_remote = true;
        let limit = match settings.limit.take() {
            Some(Limit::Fixed(limit)) => Some(limit),
            // The median of this run says nothing about a job that waits elsewhere.
            Some(Limit::OfMedian(_)) | None => None,
        };
        let clock = RunClock::start();
        let start = clock.now();
        Ok(Self {
            slots: (0..settings.slots.get()).map(|_| None).collect(),
            machine: Machine::new(settings, start),
            client,
            remote,
            stopper,
            handled_stops: 0,
            limit,
            by_ticket: HashMap::new(),
            last_ticket: 0,
            clock,
            start,
            summary: Summary::default(),
            failure: None,
        })
    }

    pub(crate) fn run(mut self) -> Result<Summary, RunnerError> {
        loop {
            // The client is user code, which may fork and return in both processes.
            self.stopper.check_process()?;
            match self.machine.next(self.clock.now()) {
                Action::Pull => self.pull(),
                Action::Start(slot, attempt) => self.submit(slot, attempt),
                Action::Signal(slot, Signal::Terminate | Signal::Kill) => self.end(slot),
                // The hosts hear of nothing else: what has begun may finish in the grace period.
                Action::Signal(..) => {}
                Action::Suspend => {
                    let Self { clock, client, .. } = &mut self;
                    clock.stand_still(|| client.event(Event::Suspended));
                    self.machine.resumed();
                }
                Action::Abandon(slot) => self.abandon(slot),
                Action::GiveUp(verdict) => self.conclude(None, verdict, None),
                Action::Notify(notice) => self.notify(notice),
                Action::Wait(until) => self.wait(until)?,
                Action::Finish => break,
            }
        }
        self.summary.wall = self.clock.now().saturating_since(self.start);
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.summary),
        }
    }

    fn pull(&mut self) {
        match self.client.next() {
            Supply::Job(job) => {
                self.machine.supplied(*job);
                self.machine.note_remaining(self.client.remaining());
            }
            Supply::Later => self.machine.supply_later(),
            Supply::End => self.machine.supply_ended(),
            Supply::Failed(error) => {
                self.failure.get_or_insert(RunnerError::Source(error));
                self.machine.drain(Reason::Failed);
            }
        }
    }

    fn submit(&mut self, slot: usize, attempt: Attempt) {
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        let submitted = self.remote.submit(RemoteAttempt {
            ticket,
            number: attempt.number,
            attempt: attempt.nth,
            job: &attempt.job,
            limit: attempt.job.deadline.or(self.limit),
        });
        let now = self.clock.now();
        match submitted {
            Ok(()) => {
                self.by_ticket.insert(ticket, slot);
                let sent = Sent { ticket, attempt: attempt.clone(), began: None, host: None };
                self.slots[slot] = Some(sent);
                self.machine.started(slot, attempt, now);
            }
            Err(message) => {
                let failure = StartFailure::other(message);
                let verdict = self.machine.start_failed(slot, attempt, failure, now);
                self.conclude(Some(slot), verdict, None);
            }
        }
    }

    fn end(&mut self, slot: usize) {
        if let Some(sent) = &self.slots[slot] {
            self.remote.end(sent.ticket);
        }
    }

    /// Withdraws all attempts that have not begun.
    fn withdraw(&mut self) {
        for sent in self.slots.iter().flatten().filter(|sent| sent.began.is_none()) {
            self.remote.end(sent.ticket);
        }
    }

    fn wait(&mut self, until: Option<Monotonic>) -> Result<(), RunnerError> {
        let until = until.map(|until| self.clock.in_system(until));
        wait_readable(&[self.stopper.waker().as_fd()], until)
            .map_err(RunnerError::system("wait for jobs"))?;
        self.stopper.waker().drain();
        if self.stopper.take_suspension() {
            self.machine.suspend();
        }
        self.machine.supply_woken();
        while self.handled_stops < self.stopper.requests() {
            self.handled_stops += 1;
            self.machine.stop(self.clock.now());
        }
        while let Some(news) = self.remote.news() {
            self.handle(news);
        }
        Ok(())
    }

    fn handle(&mut self, news: News) {
        let (News::Began { ticket, .. } | News::Ended { ticket, .. } | News::Withdrawn { ticket }) =
            &news;
        // The news of an attempt that is over concern nobody.
        let Some(&slot) = self.by_ticket.get(ticket) else { return };
        match news {
            News::Began { host, .. } => self.began(slot, Some(host)),
            News::Ended { report, .. } => {
                self.began(slot, report.host.clone());
                let (ending, wall) = (report.ending.clone(), report.wall);
                self.over(slot, ending, wall, Some(*report));
            }
            News::Withdrawn { .. } => match self.slots[slot].as_ref().and_then(|sent| sent.began) {
                Some(began) => {
                    let wall = self.clock.now().saturating_since(began);
                    self.over(slot, Ending::Stopped, wall, None);
                }
                None => {
                    if let Some(verdict) = self.machine.withdrawn(slot) {
                        self.conclude(None, verdict, None);
                        self.forget(slot);
                    }
                }
            },
        }
    }

    /// Reports that an attempt has begun, unless that is known.
    fn began(&mut self, slot: usize, host: Option<Arc<str>>) {
        let now = self.clock.now();
        let Some(sent) = self.slots[slot].as_mut().filter(|sent| sent.began.is_none()) else {
            return;
        };
        sent.began = Some(now);
        sent.host = host;
        tracing::debug!(number = sent.attempt.number, host = sent.host.as_deref(), "job started");
        self.client.event(Event::Started {
            number: sent.attempt.number,
            job: Arc::clone(&sent.attempt.job),
            attempt: sent.attempt.nth,
            slot: slot + 1,
            host: sent.host.clone(),
            pid: 0,
            cores: Vec::new(),
            at: now.saturating_since(self.start),
        });
    }

    fn over(&mut self, slot: usize, ending: Ending, wall: Duration, report: Option<RemoteReport>) {
        if let Some(verdict) = self.machine.reported(slot, ending, wall, self.clock.now()) {
            self.conclude(Some(slot), verdict, report);
            self.forget(slot);
        }
    }

    /// Gives up on an attempt whose kill has no answer.
    fn abandon(&mut self, slot: usize) {
        let has_begun = self.slots[slot].as_ref().is_some_and(|sent| sent.began.is_some());
        let verdict = if has_begun {
            self.machine.abandoned(slot, self.clock.now())
        } else {
            self.machine.withdrawn(slot)
        };
        if let Some(verdict) = verdict {
            self.conclude(has_begun.then_some(slot), verdict, None);
            self.forget(slot);
        }
    }

    fn forget(&mut self, slot: usize) {
        if let Some(sent) = self.slots[slot].take() {
            self.by_ticket.remove(&sent.ticket);
        }
    }

    fn conclude(&mut self, slot: Option<usize>, verdict: Verdict, report: Option<RemoteReport>) {
        let Verdict { attempt, ending, wall, is_retried, is_decisive, is_halting } = verdict;
        tracing::debug!(number = attempt.number, %ending, "job ended");
        let sent = slot.and_then(|slot| self.slots[slot].as_ref());
        let host = sent.and_then(|sent| sent.host.clone());
        let report = report.unwrap_or_else(|| RemoteReport::new(ending.clone()));
        let elapsed = self.clock.now().saturating_since(self.start);
        let started = elapsed.saturating_sub(wall);
        let is_dated = report.started_at > SystemTime::UNIX_EPOCH;
        let outcome = Outcome {
            number: attempt.number,
            job: attempt.job,
            ending,
            is_decisive,
            attempts: attempt.nth,
            slot: slot.map_or(0, |slot| slot + 1),
            marked_slot: report.slot,
            host: report.host.or(host),
            peak_memory: report.peak_memory,
            cores: report.cores,
            started,
            started_at: if is_dated { report.started_at } else { self.clock.time_of_day(started) },
            wall,
            user: report.user,
            system: report.system,
            stdout: captured(&report.stdout),
            stderr: captured(&report.stderr),
        };
        if is_retried {
            self.client.event(Event::Retrying(outcome));
            return;
        }
        self.machine.supply_woken();
        self.summary.count(&outcome);
        self.client.event(Event::Finished(outcome));
        if is_halting {
            self.notify(Notice::Halting(Reason::Halted));
        }
    }

    fn notify(&mut self, notice: Notice) {
        if let Notice::Halting(reason) = notice {
            self.summary.halted = Some(reason);
            self.withdraw();
        }
        self.client.event(notice.into());
    }
}

/// Returns an output as a job of this machine would have left it.
fn captured(bytes: &[u8]) -> Captured {
    let mut capture = Capture::whole(tempfile::tempfile);
    capture.push(bytes);
    capture.finish()
}

/// Withdraws everything from a run that ends by an error or a panic of the client.
impl Drop for RemoteDrive<'_> {
    fn drop(&mut self) {
        for sent in mem::take(&mut self.slots).into_iter().flatten() {
            self.remote.end(sent.ticket);
        }
    }
}

#[cfg(test)]
mod tests;
