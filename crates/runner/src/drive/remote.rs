//! Runs attempts on other machines.
//!
//! A slot is a place among the attempts that are handed over at once. An attempt may wait elsewhere
//! before it begins, so the end of a run withdraws what has not begun.

use std::mem;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use brigade_supervisor::{Capture, Captured};
use brigade_sys::clock::Monotonic;
use brigade_sys::process::Signal;
use brigade_sys::wait::wait_readable;

use super::{Drive, Place};
use crate::error::RunnerError;
use crate::limit::Limit;
use crate::machine::{self, Attempt, Settings};
use crate::outcome::{Ending, Outcome, StartFailure};
use crate::remote::{News, Remote, RemoteAttempt, RemoteReport};

/// Other machines.
pub(crate) struct Hosts<'a> {
    remote: &'a mut dyn Remote,
    /// The limit of jobs that have none of their own.
    limit: Option<Duration>,
    slots: Vec<Option<SentAttempt>>,
    /// Number of attempts that were handed over. With its slot, it makes the ticket of each.
    sent: u64,
}

/// An attempt that was handed over.
struct SentAttempt {
    ticket: u64,
    attempt: Attempt,
    began: Option<Monotonic>,
    host: Option<Arc<str>>,
}

impl<'a> Hosts<'a> {
    /// Adapts the settings of a run to other machines.
    pub(crate) fn new(remote: &'a mut dyn Remote, settings: &mut Settings) -> Self {
        settings.is_remote = true;
        let limit = match settings.limit.take() {
            Some(Limit::Fixed(limit)) => Some(limit),
            // The median of this run says nothing about a job that waits elsewhere.
            Some(Limit::OfMedian(_)) | None => None,
        };
        let slots = (0..settings.slots.get()).map(|_| None).collect();
        Self { remote, limit, slots, sent: 0 }
    }

    /// Returns the slot of an attempt that is not over.
    fn slot_of(&self, ticket: u64) -> Option<usize> {
        let slot = usize::try_from(ticket % self.slots.len() as u64).ok()?;
        self.slots[slot].as_ref().filter(|sent| sent.ticket == ticket).map(|_| slot)
    }
}

impl Place for Hosts<'_> {
    fn start(drive: &mut Drive<'_, Self>, slot: usize, attempt: Attempt) {
        let place = &mut drive.place;
        place.sent += 1;
        let ticket = place.sent * place.slots.len() as u64 + slot as u64;
        let submitted = place.remote.submit(RemoteAttempt {
            ticket,
            number: attempt.number,
            attempt: attempt.nth,
            job: &attempt.job,
            limit: attempt.job.deadline.or(place.limit),
        });
        match submitted {
            Ok(()) => {
                let sent =
                    SentAttempt { ticket, attempt: attempt.clone(), began: None, host: None };
                place.slots[slot] = Some(sent);
                drive.report(machine::Event::Started(slot, attempt));
            }
            Err(message) => {
                let failure = StartFailure::other(message);
                drive.report(machine::Event::StartFailed(slot, attempt, failure));
            }
        }
    }

    /// The hosts hear of the last signals only: what has begun may finish in the grace period.
    fn signal(&mut self, slot: usize, signal: Signal) {
        if let (Some(sent), Signal::Terminate | Signal::Kill) = (&self.slots[slot], signal) {
            self.remote.end(sent.ticket);
        }
    }

    /// Gives up on an attempt whose kill has no answer.
    fn abandon(drive: &mut Drive<'_, Self>, slot: usize) {
        let Some(sent) = drive.place.slots[slot].take() else { return };
        if sent.began.is_some() {
            drive.collected.insert(slot, Outcome { host: sent.host, ..sent.attempt.outcome() });
            drive.report(machine::Event::Ended(slot, Ending::NotKilled));
        } else {
            drive.report(machine::Event::Withdrawn(slot));
        }
    }

    fn wait(drive: &mut Drive<'_, Self>, until: Option<Monotonic>) -> Result<(), RunnerError> {
        wait_readable(&[drive.stopper.waker().as_fd()], until)
            .map_err(RunnerError::system("wait for jobs"))?;
        drive.stopper.waker().drain();
        drive.woken();
        while let Some(news) = drive.place.remote.news() {
            drive.note(news);
        }
        Ok(())
    }

    /// Withdraws all attempts that have not begun.
    fn halting(&mut self) {
        for sent in self.slots.iter().flatten().filter(|sent| sent.began.is_none()) {
            self.remote.end(sent.ticket);
        }
    }
}

impl Drive<'_, Hosts<'_>> {
    fn note(&mut self, news: News) {
        let (News::Began { ticket, .. } | News::Ended { ticket, .. } | News::Withdrawn { ticket }) =
            &news;
        // The news of an attempt that is over concern nobody.
        let Some(slot) = self.place.slot_of(*ticket) else { return };
        match news {
            News::Began { host, .. } => self.began(slot, Some(host)),
            News::Ended { report, .. } => {
                self.began(slot, report.known_host());
                self.over(slot, *report);
            }
            News::Withdrawn { .. } => {
                let began = self.place.slots[slot].as_ref().and_then(|sent| sent.began);
                let Some(began) = began else {
                    self.place.slots[slot].take();
                    return self.report(machine::Event::Withdrawn(slot));
                };
                let wall = self.clock.now().saturating_since(began);
                self.over(slot, RemoteReport { wall, ..RemoteReport::new(Ending::Stopped) });
            }
        }
    }

    /// Reports that an attempt has begun, unless that is known.
    fn began(&mut self, slot: usize, host: Option<Arc<str>>) {
        let now = self.clock.now();
        let sent = self.place.slots[slot].as_mut();
        let Some(sent) = sent.filter(|sent| sent.began.is_none()) else { return };
        sent.began = Some(now);
        sent.host = host;
        tracing::debug!(number = sent.attempt.number, host = sent.host.as_deref(), "job started");
        let at = now.saturating_since(self.start);
        let started = sent.attempt.started(slot, sent.host.clone(), (0, Vec::new()), at);
        self.client.event(started);
    }

    fn over(&mut self, slot: usize, report: RemoteReport) {
        let Some(sent) = self.place.slots[slot].take() else { return };
        let outcome = Outcome {
            marked_slot: usize::try_from(report.slot).ok().filter(|slot| *slot > 0),
            host: report.known_host().or(sent.host),
            cores: report.cores,
            started_at: UNIX_EPOCH.checked_add(report.started_at).unwrap_or(UNIX_EPOCH),
            user: report.user,
            system: report.system,
            peak_memory: report.peak_memory,
            stdout: captured(&report.stdout),
            stderr: captured(&report.stderr),
            ..sent.attempt.outcome()
        };
        self.collected.insert(slot, outcome);
        let (ending, wall) = (report.ending, report.wall);
        self.report(machine::Event::Reported { slot, ending, wall });
    }
}

/// Returns an output as a job of this machine would have left it.
fn captured(bytes: &[u8]) -> Captured {
    let mut capture = Capture::whole(tempfile::tempfile);
    capture.push(bytes);
    capture.finish()
}

/// Withdraws everything from a run that ends by an error or a panic of the client.
impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        for sent in mem::take(&mut self.slots).into_iter().flatten() {
            self.remote.end(sent.ticket);
        }
    }
}

#[cfg(test)]
mod tests;
