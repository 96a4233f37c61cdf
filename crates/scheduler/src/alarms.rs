//! Keeps every deadline of the scheduler in one heap, so that the next one is known at once.

use brigade_base::{Monotonic, TimerHeap, TimerKey};

use crate::TaskKey;

/// The plan for the next check for progress.
#[derive(Debug)]
pub(crate) struct RescuePlan {
    pub(crate) due: Monotonic,
    /// `true` if more tasks were prefetched since the check was planned.
    pub(crate) packed: bool,
    /// `true` for the first check, which only records the workers' progress. It may come at once,
    /// because the clock of submitters lags behind.
    pub(crate) first: bool,
}

/// The reason for an alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// A deadline of this task may be exceeded.
    Task(TaskKey),
    /// The worker in this slot was asked to stop, and its grace period is over.
    Stop(u32),
    /// The worker in this slot should have skipped a revoked frame.
    Skip(u32),
    /// The worker in this slot reaches its maximum age.
    Age(u32),
    /// Something of the whole pool.
    Pool(PoolAlarm),
}

/// An alarm of which there is at most one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolAlarm {
    /// The worker that has been idle for longest reaches `idle_timeout`.
    Idle,
    /// The shutdown enters its next mode.
    Escalate,
    /// A draining pool looks for stopped workers.
    Inspect,
    /// Processes may be started again after failed starts.
    Start,
    /// Workers with prefetched tasks are checked for progress.
    Rescue,
    /// Tasks that are too old are reported.
    Slow,
}

const POOL_ALARMS: usize = PoolAlarm::Slow as usize + 1;

/// All alarms. The key of an alarm of a task or worker is kept there; setting and clearing update
/// it.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    heap: TimerHeap<Alarm>,
    pool: [Option<TimerKey>; POOL_ALARMS],
}

impl Alarms {
    /// Returns the time of the next alarm.
    #[inline]
    pub(crate) fn next_deadline(&self) -> Option<Monotonic> {
        self.heap.next_deadline()
    }

    /// Removes and returns the earliest alarm if it is due. The owner of its key forgets it.
    pub(crate) fn expire(&mut self, now: Monotonic) -> Option<Alarm> {
        let alarm = self.heap.expire(now)?.value;
        if let Alarm::Pool(alarm) = alarm {
            self.pool[alarm as usize] = None;
        }
        Some(alarm)
    }

    /// Sets the alarm whose key is in `key`, or moves it.
    pub(crate) fn set(&mut self, key: &mut Option<TimerKey>, due: Monotonic, alarm: Alarm) {
        self.heap.set(key, Some(due), alarm);
    }

    pub(crate) fn clear(&mut self, key: &mut Option<TimerKey>) {
        if let Some(key) = key.take() {
            self.heap.cancel(key);
        }
    }

    pub(crate) fn deadline(&self, key: TimerKey) -> Option<Monotonic> {
        self.heap.deadline(key)
    }

    /// Sets, moves or clears an alarm of the pool.
    pub(crate) fn set_pool(&mut self, alarm: PoolAlarm, due: Option<Monotonic>) {
        let mut key = self.pool[alarm as usize];
        self.heap.set(&mut key, due, Alarm::Pool(alarm));
        self.pool[alarm as usize] = key;
    }

    #[inline]
    pub(crate) fn is_set(&self, alarm: PoolAlarm) -> bool {
        self.pool[alarm as usize].is_some()
    }

    /// Returns the number of alarms of tasks and workers.
    #[cfg(test)]
    pub(crate) fn owned(&self) -> usize {
        self.heap.len() - self.pool.iter().flatten().count()
    }
}
