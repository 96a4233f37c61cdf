//! Enforces limits on what tasks use: processor time, and memory where the kernel cannot.
//!
//! Only the driver can see what a worker uses, and a look costs a system call. So it looks soon
//! after the task can have started, to learn where the clock of its worker stood, and then at the
//! earliest moment at which the limit can be exceeded. The task is never ended early, and late by
//! the time until the first look at most.

use std::time::Duration;

use brigade_base::Monotonic;

use crate::alarms::Alarm;
use crate::task::Constraints;
use crate::{KillCause, Occupant, Outbox, Scheduler, TaskData, Usage, WorkerState};

impl<T: TaskData> Scheduler<T> {
    /// Watches a worker that is not to be trusted: a revoked frame that comes first is skipped at
    /// once, or never. It would take up the room of tasks that wait.
    #[inline]
    pub(crate) fn watch_skip(&mut self, now: Monotonic, slot: u32) {
        if self.settings.trusts_workers {
            return;
        }
        let worker = &mut self.workers[slot as usize];
        let is_alive = matches!(worker.state, WorkerState::Ready | WorkerState::Stopping);
        match worker.front() {
            Some(Occupant::Revoked { .. }) if is_alive => {
                let due = now.saturating_add(BEGUN_WITHIN);
                self.alarms.set(&mut worker.skip_alarm, due, Alarm::Skip(slot));
            }
            _ => self.alarms.clear(&mut worker.skip_alarm),
        }
    }

    /// Ends a worker that does not answer.
    pub(crate) fn skip_overdue(&mut self, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[slot as usize];
        worker.skip_alarm = None;
        let id = worker.id;
        self.kill(id, KillCause::Protocol, outbox);
    }
}

/// Time from the start of a task, or of an item, until the first look. What it uses until then does
/// not count.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// An idle worker that is not to be trusted begins the next task within this time, or is taken to
/// have done so. It skips a revoked one within this time, or is ended.
const BEGUN_WITHIN: Duration = Duration::from_secs(1);

/// Minimum time between two looks.
const MIN: Duration = Duration::from_millis(1);

/// Maximum time between two looks at memory, which grows faster than expected if pages are large.
const MAX: Duration = Duration::from_millis(100);

/// No processor writes to new pages faster, in bytes per nanosecond.
const MEMORY_RATE: u64 = 8;

impl Constraints {
    /// Returns `true` if the task must not run longer, or use more, than a limit.
    pub(crate) fn limits_the_run(&self) -> bool {
        self.hard_limit.is_some() || self.limits_usage()
    }

    fn limits_usage(&self) -> bool {
        self.cpu_limit.is_some() || self.memory_limit.is_some()
    }

    /// Returns the time of the first look at a task that may start now.
    pub(crate) fn first_look(&self, now: Monotonic) -> Option<Monotonic> {
        self.limits_usage().then(|| now.saturating_add(FIRST_LOOK))
    }

    /// Returns the time from which the run of the task counts although its worker claims that it
    /// has not begun it, if the worker is not to be trusted. The task is the first of its worker:
    /// the first observation is the earliest time that is known of that.
    pub(crate) fn presumed_start(&mut self, now: Monotonic) -> Option<Monotonic> {
        let since = *self.first_since.get_or_insert(now);
        let latest = since.saturating_add(BEGUN_WITHIN);
        (latest <= now).then_some(latest)
    }

    /// Returns `true` if a limit is exceeded.
    pub(crate) fn is_exceeded(&self, usage: Usage) -> bool {
        self.cpu_limit.is_some_and(|limit| usage.cpu >= limit)
            || self.memory_limit.is_some_and(|limit| usage.memory > limit)
    }

    /// Returns the earliest time at which a limit can be exceeded by a task that has used this
    /// much, on this number of cores.
    pub(crate) fn next_look(&self, now: Monotonic, usage: Usage, cores: u32) -> Option<Monotonic> {
        let cpu = self.cpu_limit.map(|limit| {
            let left = limit.saturating_sub(usage.cpu) / cores.max(1);
            // The next item starts soon, and its own time counts from the look that finds it.
            if usage.is_new { left.min(FIRST_LOOK) } else { left.max(MIN) }
        });
        let memory = self.memory_limit.map(|limit| {
            let left = limit.saturating_sub(usage.memory) / MEMORY_RATE;
            Duration::from_nanos(left).clamp(MIN, MAX)
        });
        let wait = cpu.into_iter().chain(memory).min()?;
        Some(now.saturating_add(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu: u64, memory: u64) -> Usage {
        Usage { cpu: Duration::from_millis(cpu), is_new: false, memory }
    }

    fn look(constraints: &Constraints, usage: Usage) -> Option<u64> {
        let due = constraints.next_look(Monotonic::ZERO, usage, 2)?;
        Some(due.as_nanos() / 1_000_000)
    }

    #[test]
    fn looks_come_when_the_limit_can_be_exceeded() {
        let cpu = Constraints { cpu_limit: Some(Duration::from_secs(1)), ..Constraints::default() };
        assert_eq!(look(&cpu, usage(0, 0)), Some(500));
        assert_eq!(look(&cpu, usage(900, 0)), Some(50));
        assert_eq!(look(&cpu, usage(999, 0)), Some(1));
        assert_eq!(look(&cpu, Usage { is_new: true, ..usage(0, 0) }), Some(5));
        assert!(cpu.is_exceeded(usage(1000, 0)) && !cpu.is_exceeded(usage(999, u64::MAX)));

        let memory = Constraints { memory_limit: Some(1 << 30), ..Constraints::default() };
        assert_eq!(look(&memory, usage(0, 0)), Some(100));
        assert_eq!(look(&memory, usage(0, (1 << 30) - (80 << 20))), Some(10));
        assert!(memory.is_exceeded(usage(0, (1 << 30) + 1)));
        assert_eq!(look(&Constraints::default(), usage(0, 0)), None);
    }
}
