//! The decisions of a client about the tasks that it submits: a pure state machine.
//!
//! A submission has two halves, which end independently. The *task* is published, until the stream
//! has stored or refused it. The *outcome* is recorded by a node or, if the task is cancelled or
//! killed, by this client: whoever is first. The submission is complete as soon as the recorded
//! outcome is known, and forgotten when nothing about it is outstanding.
//!
//! Invariants:
//! - A submission is completed once, and leaves the window once.
//! - It is completed as cancelled or killed only if this client's record is the outcome.
//! - It is completed without an outcome only if two searches found neither the task nor an outcome.

mod event;
mod searches;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) use self::event::{Action, Completion, Event, Fact, Found, Ticket, WhenFull};
use self::searches::{Search, Searches};
use crate::clock::Monotonic;
use crate::publisher::RefusalKind;

/// The first pause before a task is offered again to a queue that is full, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// All submissions that are not forgotten.
#[derive(Debug, Default)]
pub(super) struct Machine {
    submissions: BTreeMap<Ticket, Submission>,
    /// Submissions that wait for room, by the time of their next attempt.
    waiting: BTreeSet<(Monotonic, Ticket)>,
    searches: Searches,
}

#[derive(Debug)]
struct Submission {
    task: TaskHalf,
    end: EndHalf,
    when_full: WhenFull,
    pause: Duration,
    is_complete: bool,
    search: Search,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskHalf {
    Looking,
    Publishing,
    WaitingForRoom(Monotonic),
    Stored(u64),
    /// In the queue, or done, by another run of the batch.
    Elsewhere,
    /// Not in the queue.
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndHalf {
    Unwanted,
    Offered {
        kill: bool,
    },
    Recorded,
    /// Another outcome counts.
    Late,
}

impl Machine {
    /// Returns `true` if the submission has no outcome.
    pub(super) fn is_incomplete(&self, ticket: Ticket) -> bool {
        self.submissions.get(&ticket).is_some_and(|submission| !submission.is_complete)
    }

    /// Returns the time at which [`Event::Tick`] is due.
    pub(super) fn next_deadline(&self) -> Option<Monotonic> {
        let waiting = self.waiting.first().map(|(at, _)| *at);
        waiting.into_iter().chain(self.searches.next_deadline()).min()
    }

    /// Handles an event, and appends the steps that follow from it.
    pub(super) fn handle(&mut self, now: Monotonic, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Fact(ticket, fact) => self.learn(now, ticket, fact, actions),
            Event::Tick => self.tick(now, actions),
        }
    }

    fn learn(&mut self, now: Monotonic, ticket: Ticket, fact: Fact, actions: &mut Vec<Action>) {
        if let Fact::Submitted { when_full, has_outcome } = fact {
            let action = if has_outcome { Action::Look } else { Action::Publish };
            actions.push(action(ticket));
            self.submissions.insert(ticket, Submission::new(when_full, has_outcome, now));
            self.searches.begin(now);
            return;
        }
        if let Fact::Searched(found) = &fact {
            self.searches.ended(now, found);
        }
        let Self { submissions, waiting, .. } = self;
        // Outcomes of other runs, and second copies of known ones, concern nobody.
        let Some(submission) = submissions.get_mut(&ticket) else { return };
        let waited = submission.waits_until();
        let was_queued = submission.is_queued();
        submission.handle(now, ticket, fact, actions);
        let has_left = was_queued && submission.is_complete;
        if waited != submission.waits_until() {
            if let Some(at) = waited {
                waiting.remove(&(at, ticket));
            }
            if let Some(at) = submission.waits_until() {
                waiting.insert((at, ticket));
            }
        }
        if submission.is_over() {
            submissions.remove(&ticket);
            actions.push(Action::Forget(ticket));
            if submissions.is_empty() {
                self.searches.end();
            }
        }
        if has_left && let Some((_, next)) = self.waiting.pop_first() {
            self.publish_again(next, FIRST_PAUSE, actions);
        }
    }

    /// Publishes the tasks that have waited long enough for room, and searches for those that have
    /// waited long for their outcomes. Of the former, others are published earlier, one for each
    /// task of this client that leaves the queue.
    fn tick(&mut self, now: Monotonic, actions: &mut Vec<Action>) {
        while let Some((at, ticket)) = self.waiting.first().copied()
            && at <= now
        {
            self.waiting.pop_first();
            let pause = self.submissions.get(&ticket).map_or(FIRST_PAUSE, Submission::next_pause);
            self.publish_again(ticket, pause, actions);
        }
        self.searches.tick(now, &mut self.submissions, actions);
    }

    /// Publishes a task that has waited for room; `pause` follows if there is none.
    fn publish_again(&mut self, ticket: Ticket, pause: Duration, actions: &mut Vec<Action>) {
        if let Some(submission) = self.submissions.get_mut(&ticket) {
            submission.task = TaskHalf::Publishing;
            submission.pause = pause;
            actions.push(Action::Publish(ticket));
        }
    }
}

impl Submission {
    fn new(when_full: WhenFull, has_outcome: bool, now: Monotonic) -> Self {
        Self {
            task: if has_outcome { TaskHalf::Looking } else { TaskHalf::Publishing },
            end: EndHalf::Unwanted,
            when_full,
            pause: FIRST_PAUSE,
            is_complete: false,
            search: Search::new(now),
        }
    }

    fn handle(&mut self, now: Monotonic, ticket: Ticket, fact: Fact, actions: &mut Vec<Action>) {
        match fact {
            Fact::Submitted { .. } => {}
            Fact::Looked { is_found: true } => {
                self.complete(ticket, Completion::Outcome, actions);
                self.settle(ticket, TaskHalf::Elsewhere, actions);
            }
            Fact::Looked { is_found: false } if self.is_complete => {
                self.settle(ticket, TaskHalf::Absent, actions);
            }
            // The outcome was too old, and has been removed.
            Fact::Looked { is_found: false } => {
                self.task = TaskHalf::Publishing;
                actions.push(Action::Publish(ticket));
            }
            Fact::Published(answer) => self.published(now, ticket, answer, actions),
            Fact::Outcome => {
                self.complete(ticket, Completion::Outcome, actions);
                self.stop_waiting(ticket, actions);
            }
            Fact::EndWanted { kill } => {
                if !self.is_complete && self.end == EndHalf::Unwanted {
                    self.end = EndHalf::Offered { kill };
                    actions.push(Action::OfferEnd { ticket, kill });
                }
            }
            Fact::EndOffered(answer) => self.end_offered(ticket, answer, actions),
            Fact::Searched(found) => self.searched(now, ticket, found, actions),
        }
    }

    fn published(
        &mut self,
        now: Monotonic,
        ticket: Ticket,
        answer: Result<u64, RefusalKind>,
        actions: &mut Vec<Action>,
    ) {
        match answer {
            Ok(sequence) => self.settle(ticket, TaskHalf::Stored(sequence), actions),
            Err(RefusalKind::Exists) => self.settle(ticket, TaskHalf::Elsewhere, actions),
            Err(RefusalKind::Full) => {
                if !self.is_complete
                    && let Some(at) = self.next_attempt(now)
                {
                    self.task = TaskHalf::WaitingForRoom(at);
                    return;
                }
                self.complete(ticket, Completion::Full, actions);
                self.settle(ticket, TaskHalf::Absent, actions);
            }
            Err(RefusalKind::Other(reason)) => {
                self.complete(ticket, Completion::Failed(reason), actions);
                self.settle(ticket, TaskHalf::Absent, actions);
            }
        }
    }

    fn end_offered(
        &mut self,
        ticket: Ticket,
        answer: Result<(), RefusalKind>,
        actions: &mut Vec<Action>,
    ) {
        let EndHalf::Offered { kill } = self.end else { return };
        match answer {
            Ok(()) => {
                self.end = EndHalf::Recorded;
                self.complete(ticket, Completion::Ended { kill }, actions);
                self.stop_waiting(ticket, actions);
                actions.push(Action::Broadcast { ticket, kill });
                self.remove(ticket, actions);
            }
            Err(RefusalKind::Exists) => self.end = EndHalf::Late,
            // It may be wanted again.
            Err(_) => self.end = EndHalf::Unwanted,
        }
    }

    /// Ends the half of the task, which leaves the window.
    fn settle(&mut self, ticket: Ticket, task: TaskHalf, actions: &mut Vec<Action>) {
        self.task = task;
        actions.push(Action::LeaveWindow(ticket));
        if self.end == EndHalf::Recorded {
            self.remove(ticket, actions);
        }
    }

    fn stop_waiting(&mut self, ticket: Ticket, actions: &mut Vec<Action>) {
        if self.waits_until().is_some() {
            self.settle(ticket, TaskHalf::Absent, actions);
        }
    }

    /// Removes the task from the queue, if it may be there.
    fn remove(&self, ticket: Ticket, actions: &mut Vec<Action>) {
        match self.task {
            TaskHalf::Stored(sequence) => {
                actions.push(Action::Remove { ticket, sequence: Some(sequence) });
            }
            TaskHalf::Elsewhere => actions.push(Action::Remove { ticket, sequence: None }),
            _ => {}
        }
    }

    fn complete(&mut self, ticket: Ticket, with: Completion, actions: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.is_complete, true) {
            actions.push(Action::Complete { ticket, with });
        }
    }

    /// Returns `true` if the task is in the queue and has no outcome.
    fn is_queued(&self) -> bool {
        matches!(self.task, TaskHalf::Stored(_)) && !self.is_complete
    }

    /// Returns the time at which the task is offered again to a queue that is full.
    fn next_attempt(&self, now: Monotonic) -> Option<Monotonic> {
        let at = now + self.pause;
        match self.when_full {
            WhenFull::Wait => Some(at),
            WhenFull::WaitUntil(end) => (now < end).then(|| at.min(end)),
            WhenFull::Fail => None,
        }
    }

    fn next_pause(&self) -> Duration {
        (self.pause * 2).min(MAX_PAUSE)
    }

    fn waits_until(&self) -> Option<Monotonic> {
        match self.task {
            TaskHalf::WaitingForRoom(at) => Some(at),
            _ => None,
        }
    }

    /// Returns `true` if it is complete and no answer is outstanding.
    fn is_over(&self) -> bool {
        let is_settled =
            matches!(self.task, TaskHalf::Stored(_) | TaskHalf::Elsewhere | TaskHalf::Absent);
        self.is_complete && is_settled && !matches!(self.end, EndHalf::Offered { .. })
    }
}

#[cfg(test)]
mod tests;
