//! The observers of a pool: they see what happens, under the core's lock, and change nothing.
//!
//! The driver calls them at a few places, whatever the build. An observer of a feature that is off
//! is [`Off`], which does nothing. So they cost what they do, and no more.

#[cfg(feature = "recording")]
mod measure;
#[cfg(feature = "recording")]
mod recording;
#[cfg(feature = "trace-export")]
mod timeline;

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
pub(super) type Metrics = recording::Recording;
#[cfg(not(feature = "recording"))]
pub(super) type Metrics = Off;

#[cfg(feature = "trace-export")]
type TraceObserver = Option<std::sync::Arc<brigade_trace::timeline::Timeline>>;
#[cfg(not(feature = "trace-export"))]
type TraceObserver = Off;

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

/// Writes the trait of an observer from all that it can see, and passes each thing on to every
/// observer of a pool.
macro_rules! observers {
    ($($(#[$attribute:meta])* fn $seen:ident($($argument:ident: $of:ty),*);)+) => {
        /// Sees what a pool does.
        pub(super) trait Observer {
            /// Returns the time of the submission of `task`: exact if it has to be, and otherwise
            /// as the observer likes, or slightly behind.
            #[inline]
            fn stamp(&mut self, _task: &TaskCell, exact: bool) -> Monotonic {
                if exact { clock::now() } else { clock::last_tick() }
            }

            /// Returns the code of a thread that the observer needs, with the thread's name.
            fn thread(&self) -> Option<(&'static str, ObserverThread)> {
                None
            }
            $(
                $(#[$attribute])*
                #[inline]
                fn $seen(&mut self, $($argument: $of),*) {
                    $(let _ = $argument;)*
                }
            )+
        }

        /// Passes everything on to each observer.
        impl Observer for Observers {
            #[inline]
            fn stamp(&mut self, task: &TaskCell, exact: bool) -> Monotonic {
                self.metrics.stamp(task, exact)
            }

            fn thread(&self) -> Option<(&'static str, ObserverThread)> {
                self.metrics.thread().or_else(|| self.trace.thread())
            }
            $(
                #[inline]
                fn $seen(&mut self, $($argument: $of),*) {
                    self.metrics.$seen($($argument),*);
                    self.trace.$seen($($argument),*);
                }
            )+
        }
    };
}

observers! {
    /// An event is about to be handled.
    fn event(
        now: Monotonic,
        event: &Event<TaskCell>,
        data: &EventData,
        scheduler: &Scheduler<TaskCell>
    );

    /// An event and everything that follows from it was handled.
    fn handled(now: Monotonic, scheduler: &Scheduler<TaskCell>);

    /// A task was accepted.
    fn accepted(task: &TaskCell);

    /// A task was sent, with this number of bytes of its argument.
    fn sent(worker: WorkerId, bytes: usize);

    /// A task has ended.
    fn ended(now: Monotonic, end: &End<'_>);

    /// A process was ordered.
    fn worker_started(now: Monotonic, worker: WorkerId);

    /// A worker takes tasks.
    fn worker_ready(now: Monotonic, worker: WorkerId, ready: Started);

    /// A worker was asked to exit, or is being killed.
    fn worker_leaving(now: Monotonic, worker: WorkerId);

    /// A process is gone. `died` is `true` unless it has exited in order.
    fn worker_gone(now: Monotonic, worker: WorkerId, died: bool);

    /// The pool has ended.
    fn pool_ended();
}

/// The code of an observer's thread. It gets the name of the pool.
pub(super) type ObserverThread = Box<dyn FnOnce(&str) -> io::Result<()> + Send>;

/// The observers of a pool in this build.
pub(super) struct Observers {
    pub(super) metrics: Metrics,
    trace: TraceObserver,
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
            trace: timeline::create(config)?,
            #[cfg(not(feature = "trace-export"))]
            trace: Off,
        })
    }
}

#[cfg(not(all(feature = "recording", feature = "trace-export")))]
impl Observer for Off {}
