//! The observers of a pool: they see what happens, under the core's lock, and change nothing.
//!
//! The driver calls them at a few places, whatever the build. An observer of a feature that is off
//! is [`Off`], which does nothing. So they cost what they do, and no more.

use std::io;

use brigade_scheduler::{Event, Scheduler, TaskEnd};
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::{Attempt, WorkerId};

use super::outcome::EventData;
use crate::cell::TaskCell;
use crate::config::Config;
use crate::error::PoolError;
use crate::payload::Outcome;

#[cfg(feature = "recording")]
pub(super) type Metrics = super::recording::Recording;
#[cfg(not(feature = "recording"))]
pub(super) type Metrics = Off;

#[cfg(feature = "trace-export")]
type Trace = Option<std::sync::Arc<brigade_trace::timeline::Timeline>>;
#[cfg(not(feature = "trace-export"))]
type Trace = Off;

/// An observer of a feature that is off.
#[cfg(not(all(feature = "recording", feature = "trace-export")))]
#[derive(Default)]
pub(super) struct Off;

/// The start of a worker that takes tasks from now on.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(any(feature = "recording", feature = "trace-export")),
    expect(dead_code, reason = "nobody observes")
)]
pub(super) struct Started {
    pub(super) is_forked: bool,
    /// The time at which its initializer began.
    pub(super) initializing: Option<Monotonic>,
}

/// Sees what a pool does.
pub(super) trait Observer {
    /// Returns the time of the submission of `task`: exact if it has to be, and otherwise as the
    /// observer likes, or slightly behind.
    #[inline]
    fn stamp(&mut self, _task: &TaskCell, exact: bool) -> Monotonic {
        if exact { clock::now() } else { clock::last_tick() }
    }

    /// An event is about to be handled.
    #[inline]
    fn event(
        &mut self,
        _now: Monotonic,
        _event: &Event<TaskCell>,
        _data: &EventData,
        _scheduler: &Scheduler<TaskCell>,
    ) {
    }

    /// An event and everything that follows from it was handled.
    #[inline]
    fn handled(&mut self, _now: Monotonic, _scheduler: &Scheduler<TaskCell>) {}

    /// A task was accepted.
    #[inline]
    fn accepted(&mut self, _task: &TaskCell) {}

    /// A task was sent, with this number of bytes of its argument.
    #[inline]
    fn sent(&mut self, _worker: WorkerId, _bytes: usize) {}

    /// A task has ended.
    #[inline]
    fn ended(&mut self, _now: Monotonic, _end: &End<'_>) {}

    /// A process was ordered.
    fn worker_started(&mut self, _now: Monotonic, _worker: WorkerId) {}

    /// A worker takes tasks.
    fn worker_ready(&mut self, _: Monotonic, _: WorkerId, _ready: Started) {}

    /// A worker was asked to exit, or is being killed.
    fn worker_leaving(&mut self, _now: Monotonic, _worker: WorkerId) {}

    /// A process is gone. `died` is `true` unless it has exited in order.
    fn worker_gone(&mut self, _now: Monotonic, _worker: WorkerId, _died: bool) {}

    /// The pool has ended.
    fn pool_ended(&mut self) {}

    /// Returns the code of a thread that the observer needs, with the thread's name.
    fn thread(&self) -> Option<(&'static str, ObserverThread)> {
        None
    }
}

/// The code of an observer's thread. It gets the name of the pool.
pub(super) type ObserverThread = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

/// The observers of a pool in this build.
pub(super) struct Observers {
    pub(super) metrics: Metrics,
    trace: Trace,
}

/// The end of a task.
#[cfg_attr(not(feature = "recording"), expect(dead_code, reason = "only metrics read it"))]
pub(super) struct End<'a> {
    pub(super) task: &'a TaskCell,
    pub(super) attempt: Attempt,
    pub(super) way: TaskEnd,
    pub(super) items: u32,
    pub(super) submitted: Monotonic,
    /// The run with which it ended, if it did.
    pub(super) ran: Option<Ran>,
    pub(super) outcome: &'a Outcome,
}

/// The last run of a task, as far as it is known.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "recording"), expect(dead_code, reason = "only metrics read it"))]
pub(super) struct Ran {
    pub(super) worker: WorkerId,
    /// As the worker says.
    pub(super) began: Option<Monotonic>,
    /// In nanoseconds, as the worker says, or until its death.
    pub(super) run_time: Option<u64>,
}

impl Ran {
    /// Returns the run with which a task ended in this way.
    #[inline]
    pub(super) fn of(data: &EventData, end: TaskEnd) -> Option<Self> {
        match (data, end) {
            (EventData::Outcome(_, report), TaskEnd::Reported) => Some(Self {
                worker: report.worker,
                began: Some(report.began),
                run_time: Some(nanos(report.run_time)),
            }),
            (
                EventData::Death(report),
                TaskEnd::Finished | TaskEnd::Died | TaskEnd::Quarantined | TaskEnd::Killed(_),
            ) => {
                // The time belongs to the item that ran, not to those before it.
                let elapsed = report.interrupted.elapsed.filter(|_| end != TaskEnd::Finished);
                let run_time = elapsed.map(nanos);
                Some(Self { worker: report.worker, began: None, run_time })
            }
            _ => None,
        }
    }
}

fn nanos(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Observers {
    #[cfg_attr(
        not(feature = "trace-export"),
        expect(clippy::unnecessary_wraps, unused_variables, reason = "only a timeline has a file")
    )]
    pub(super) fn new(config: &Config) -> Result<Self, PoolError> {
        Ok(Self {
            metrics: Metrics::default(),
            #[cfg(feature = "trace-export")]
            trace: super::timeline::create(config)?,
            #[cfg(not(feature = "trace-export"))]
            trace: Off,
        })
    }
}

#[cfg(not(all(feature = "recording", feature = "trace-export")))]
impl Observer for Off {}

/// Passes everything on to each observer.
impl Observer for Observers {
    #[inline]
    fn stamp(&mut self, task: &TaskCell, exact: bool) -> Monotonic {
        self.metrics.stamp(task, exact)
    }

    #[inline]
    fn event(
        &mut self,
        now: Monotonic,
        event: &Event<TaskCell>,
        data: &EventData,
        scheduler: &Scheduler<TaskCell>,
    ) {
        self.metrics.event(now, event, data, scheduler);
        self.trace.event(now, event, data, scheduler);
    }

    #[inline]
    fn handled(&mut self, now: Monotonic, scheduler: &Scheduler<TaskCell>) {
        self.metrics.handled(now, scheduler);
        self.trace.handled(now, scheduler);
    }

    #[inline]
    fn accepted(&mut self, task: &TaskCell) {
        self.metrics.accepted(task);
        self.trace.accepted(task);
    }

    #[inline]
    fn sent(&mut self, worker: WorkerId, bytes: usize) {
        self.metrics.sent(worker, bytes);
        self.trace.sent(worker, bytes);
    }

    #[inline]
    fn ended(&mut self, now: Monotonic, end: &End<'_>) {
        self.metrics.ended(now, end);
        self.trace.ended(now, end);
    }

    fn worker_started(&mut self, now: Monotonic, worker: WorkerId) {
        self.metrics.worker_started(now, worker);
        self.trace.worker_started(now, worker);
    }

    fn worker_ready(&mut self, now: Monotonic, worker: WorkerId, ready: Started) {
        self.metrics.worker_ready(now, worker, ready);
        self.trace.worker_ready(now, worker, ready);
    }

    fn worker_leaving(&mut self, now: Monotonic, worker: WorkerId) {
        self.metrics.worker_leaving(now, worker);
        self.trace.worker_leaving(now, worker);
    }

    fn worker_gone(&mut self, now: Monotonic, worker: WorkerId, died: bool) {
        self.metrics.worker_gone(now, worker, died);
        self.trace.worker_gone(now, worker, died);
    }

    fn pool_ended(&mut self) {
        self.metrics.pool_ended();
        self.trace.pool_ended();
    }

    fn thread(&self) -> Option<(&'static str, ObserverThread)> {
        self.metrics.thread().or_else(|| self.trace.thread())
    }
}
