//! Reports tasks that are older than a limit, and reports them again each time that they have
//! become older by it.
//!
//! One alarm looks at all tasks. A look plans the next one for the moment at which a task is to be
//! reported, but eight looks per limit at most; without tasks there is none. So a million tasks
//! cost no more alarms than one, and a report is late by an eighth of the limit at most.

use std::time::Duration;

use brigade_base::Monotonic;

use crate::alarms::PoolAlarm;
use crate::entry::EntryState;
use crate::{Action, Outbox, Scheduler, TaskData, TaskKey};

/// Number of looks per limit, at most.
const LOOKS: u32 = 8;

/// Number of tasks that are reported in one look, at most. Those that are assigned come first.
const MAX: usize = 100;

impl<T: TaskData> Scheduler<T> {
    /// Sets the alarm for a task that was submitted, unless there is an earlier one.
    #[inline]
    pub(crate) fn watch_age(&mut self, submitted: Monotonic) {
        if let Some(limit) = self.settings.slow_after
            && !self.alarms.is_set(PoolAlarm::Slow)
        {
            self.alarms.set_pool(PoolAlarm::Slow, Some(submitted.saturating_add(limit)));
        }
    }

    /// Reports the tasks that have become too old since the last look, and plans the next look.
    pub(crate) fn report_slow(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        let Some(limit) = self.settings.slow_after else { return };
        let last = std::mem::replace(&mut self.looked_for_slow, now);
        let mut slow: Vec<TaskKey> = Vec::new();
        let mut next: Option<Monotonic> = None;
        for key in self.tasks.keys() {
            let submitted = self.tasks.submitted(key);
            let reports = ages(submitted, now, limit);
            if reports > ages(submitted, last, limit) {
                slow.push(key);
            }
            let due = submitted.saturating_add(limit.saturating_mul(reports + 1));
            next = Some(next.map_or(due, |next| next.min(due)));
        }
        let soonest = now.saturating_add((limit / LOOKS).max(Duration::from_nanos(1)));
        self.alarms.set_pool(PoolAlarm::Slow, next.map(|next| next.max(soonest)));
        let unreported = slow.len().saturating_sub(MAX);
        slow.sort_by_key(|key| !matches!(self.tasks[*key].state(), EntryState::Assigned { .. }));
        for key in slow.into_iter().take(MAX) {
            let task = self.tasks.reference(key);
            let elapsed = now.saturating_since(self.tasks.submitted(key));
            outbox.push(Action::Slow { task, elapsed });
        }
        if unreported > 0 {
            outbox.push(Action::MoreSlow { tasks: unreported });
        }
    }
}

/// Returns the number of whole limits between `submitted` and `now`.
fn ages(submitted: Monotonic, now: Monotonic, limit: Duration) -> u32 {
    let ages = now.saturating_since(submitted).as_nanos() / limit.as_nanos().max(1);
    u32::try_from(ages).unwrap_or(u32::MAX - 1)
}
