//! Searches for tasks that have waited long for their outcomes.
//!
//! Usually the outcome arrives. It does not if it expired while the client was suspended, if
//! somebody has deleted the streams, or if the server has lost data. So the client asks now and
//! then whether the task is still in the queue. A task that two searches find nowhere is lost. The
//! second one is later, because servers that elect a leader may not know their last messages.
//!
//! Searches go round in the order of submission, a limited number at a time. As long as they find
//! lost tasks, the next ones follow at once.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Action, Completion, EndHalf, Found, Submission, TaskHalf, Ticket};
use crate::clock::Monotonic;

/// Time that a task waits before it is searched for, and between two searches.
pub(super) const SEARCH_PERIOD: Duration =
    Duration::from_millis(if cfg!(test) { 400 } else { 10_000 });

/// Time between two rounds, and between the two searches after which a task is lost.
pub(super) const ROUND: Duration = Duration::from_millis(if cfg!(test) { 200 } else { 5_000 });

/// Searches of one round, which is 50 requests a second or few more, and submissions that a round
/// passes over.
const AT_A_TIME: usize = 256;
const PASSED_OVER: usize = 16 * 1024;

/// The rounds of searches.
#[derive(Debug, Default)]
pub(super) struct Searches {
    /// Time of the next round; `None` without submissions.
    next: Option<Monotonic>,
    /// The next round begins with this submission, or with the first one behind it.
    from: Ticket,
    /// Searches of this round without a result.
    outstanding: usize,
    /// `true` if this round has not found a task.
    is_missing_any: bool,
}

/// The searches for the task of one submission.
#[derive(Debug)]
pub(super) struct Search {
    submitted: Monotonic,
    /// Time of the last result, or else of the submission.
    since: Monotonic,
    is_outstanding: bool,
    /// `true` if the last search found nothing.
    is_missing: bool,
}

impl Searches {
    pub(super) fn next_deadline(&self) -> Option<Monotonic> {
        self.next
    }

    /// Notes that there is a submission.
    pub(super) fn begin(&mut self, now: Monotonic) {
        self.next.get_or_insert(now + SEARCH_PERIOD);
    }

    /// Notes that there is no submission.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    /// Begins a round if it is due.
    pub(super) fn tick(
        &mut self,
        now: Monotonic,
        submissions: &mut BTreeMap<Ticket, Submission>,
        actions: &mut Vec<Action>,
    ) {
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + ROUND);
        let mut last = None;
        let around = submissions.range(self.from..).chain(submissions.range(..self.from));
        let passed_over = around.take(PASSED_OVER).inspect(|(ticket, _)| last = Some(**ticket));
        let overdue = passed_over.filter(|(_, submission)| submission.is_overdue(now));
        let overdue: Vec<Ticket> = overdue.map(|(ticket, _)| *ticket).take(AT_A_TIME).collect();
        self.from = last.map_or(0, |last| last + 1);
        for ticket in overdue {
            let Some(submission) = submissions.get_mut(&ticket) else { continue };
            submission.search.is_outstanding = true;
            self.outstanding += 1;
            actions.push(submission.searching(now, ticket));
        }
    }

    /// Notes the result of a search.
    pub(super) fn ended(&mut self, now: Monotonic, found: &Found) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.is_missing_any |= matches!(found, Found::Nowhere(_));
        if self.outstanding == 0 && std::mem::take(&mut self.is_missing_any) && self.next.is_some()
        {
            self.next = Some(now);
        }
    }
}

impl Search {
    pub(super) fn new(now: Monotonic) -> Self {
        Self { submitted: now, since: now, is_outstanding: false, is_missing: false }
    }
}

impl Submission {
    /// Returns `true` if the task should be searched for.
    fn is_overdue(&self, now: Monotonic) -> bool {
        let Search { since, is_outstanding, is_missing, .. } = self.search;
        let is_expected = !self.is_complete
            && match self.task {
                TaskHalf::Publishing | TaskHalf::Stored(_) | TaskHalf::Elsewhere => true,
                TaskHalf::Looking | TaskHalf::WaitingForRoom(_) | TaskHalf::Absent => false,
            };
        let period = if is_missing { ROUND } else { SEARCH_PERIOD };
        is_expected && !is_outstanding && now >= since + period
    }

    fn searching(&self, now: Monotonic, ticket: Ticket) -> Action {
        let sequence = match self.task {
            TaskHalf::Stored(sequence) => Some(sequence),
            _ => None,
        };
        let is_published = self.task != TaskHalf::Publishing;
        let waited = now.saturating_since(self.search.submitted);
        Action::Search { ticket, sequence, is_published, waited }
    }

    /// Handles the result of a search.
    pub(super) fn searched(
        &mut self,
        now: Monotonic,
        ticket: Ticket,
        found: Found,
        actions: &mut Vec<Action>,
    ) {
        let was_missing = self.search.is_missing;
        self.search.is_outstanding = false;
        self.search.since = now;
        match found {
            Found::Task => self.search.is_missing = false,
            Found::Nowhere(reason) if was_missing && !self.is_complete => {
                self.complete(ticket, Completion::Lost(reason), actions);
                actions.push(Action::GiveUp(ticket));
                if matches!(self.end, EndHalf::Offered { .. }) {
                    self.end = EndHalf::Late;
                }
                if matches!(self.task, TaskHalf::Publishing | TaskHalf::WaitingForRoom(_)) {
                    self.settle(ticket, TaskHalf::Absent, actions);
                }
            }
            Found::Nowhere(_) => self.search.is_missing = true,
            Found::Unknown => {}
        }
    }
}
