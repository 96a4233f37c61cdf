//! Handles an event: passes it to the scheduler, and carries out what follows.

use brigade_scheduler::Event;
use brigade_supervisor::note;
use brigade_sys::clock::{self, Monotonic};

use super::deferred::Deferred;
use super::observer::Observer;
use super::outcome::EventData;
use super::shared::{Core, Shared};
use crate::cell::TaskCell;

impl Core {
    /// Handles an event and everything that follows from it.
    #[expect(
        clippy::inline_always,
        reason = "so the event is not moved right after it was written, for which a processor stalls"
    )]
    #[inline(always)]
    pub(super) fn handle(
        &mut self,
        now: Monotonic,
        mut event: Event<TaskCell>,
        mut data: EventData,
        shared: &Shared,
        deferred: &mut Deferred,
    ) {
        if self.has_limits {
            self.look_for_threads(&mut event);
        }
        self.observers.event(now, &event, &data, &self.scheduler);
        self.decide(now, event, deferred);
        self.follow(now, &mut data, shared, deferred);
    }

    /// Carries out what was decided, and what follows from that.
    fn follow(
        &mut self,
        now: Monotonic,
        data: &mut EventData,
        shared: &Shared,
        deferred: &mut Deferred,
    ) {
        loop {
            while let Some(action) = self.outbox.pop() {
                self.carry_out(now, action, data, deferred);
            }
            match self.replies.pop_front() {
                // A task that was looked up may have begun after the time of the event.
                Some(reply @ Event::Observed { .. }) => self.decide(clock::now(), reply, deferred),
                Some(reply) => self.decide(now, reply, deferred),
                None => break,
            }
        }
        self.observers.handled(now, &self.scheduler);
        self.plan_tick(now, shared, deferred);
        self.wake_waiters(shared, deferred);
    }

    /// Makes the reaper sleep no longer than until the scheduler's next deadline. A deadline that
    /// moves away is published only once the old one has passed: until then the reaper would wake
    /// up in vain, but each task with a deadline would have to wake it.
    #[inline]
    fn plan_tick(&mut self, now: Monotonic, shared: &Shared, deferred: &mut Deferred) {
        let (next, planned) = (self.scheduler.next_deadline(), self.next_tick);
        let is_earlier = next.is_some_and(|next| planned.is_none_or(|planned| next < planned));
        if is_earlier || planned.is_some_and(|planned| planned <= now) {
            self.next_tick = next;
            shared.supervisor.reaper.sleep_until(next);
        }
        if is_earlier {
            deferred.work().wake_reaper = true;
        }
    }

    #[inline]
    fn decide(&mut self, now: Monotonic, event: Event<TaskCell>, deferred: &mut Deferred) {
        if self.journal.is_some() {
            self.decide_on_record(now, event, deferred);
        } else {
            self.scheduler.handle(now, event, &mut self.outbox);
        }
    }

    #[cold]
    fn decide_on_record(
        &mut self,
        now: Monotonic,
        event: Event<TaskCell>,
        deferred: &mut Deferred,
    ) {
        let Some(journal) = &mut self.journal else { return };
        if let Err(error) = journal.record(&mut self.scheduler, now, event, &mut self.outbox) {
            note!(deferred, WARN, %error, "cannot write the journal; it ends here");
            self.journal = None;
        }
    }
}
