//! The scheduler: makes all decisions of the pool, as a pure state machine.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! Everything enters through `handle(now, event, outbox)`. The driver, in `brigade-pool`, carries
//! out the actions in the outbox and reports their results as further events. So every decision can
//! be tested without a process, and a recorded sequence of events replays to the same decisions.
//! After each event, `next_deadline` says how long the driver may sleep.
//!
//! An event is *applied*: it changes the state, and leaves marks of what changed. Then one
//! *conclusion* follows, the same for all events: it assigns tasks, starts processes and sets
//! alarms. So no event has to remember what depends on it.
//!
//! A task is in exactly one of these states at any time:
//!
//! ```text
//! Submit --> queued --Send--> assigned --(worker starts it)--> running --Finished--> done
//!              ^                  |                               |
//!              |<---- revoked ----+<-------- worker died ---------+
//!              |<---------- paused <------ failed, and is retried --+
//! ```
//!
//! Workers do not report when they start a task, because that would cost a message. The scheduler
//! asks with `Action::Revoke` or `Action::Observe`, and the driver answers from the state words
//! that host and worker share.
//!
//! ```
//! use std::time::Duration;
//!
//! use brigade_base::TaskId;
//! use brigade_scheduler::{Action, Event, Scheduler, Outbox, Settings, Submission};
//! use brigade_base::Monotonic;
//!
//! let settings = Settings {
//!     workers: 1,
//!     min_workers: 0,
//!     spare_workers: 0,
//!     idle_timeout: None,
//!     max_tasks: None,
//!     max_age: None,
//!     quarantine: 3,
//!     queue_limit: 100,
//!     credit: 8,
//!     restart_limit: 5,
//!     restart_window: Duration::from_secs(10),
//!     stop_grace: Duration::from_secs(1),
//!     slow_after: None,
//!     cores: 1,
//!     copies: false,
//!     exclusive_slots: false,
//!     resources: Vec::new(),
//!     trusts_workers: true,
//! };
//! let mut scheduler = Scheduler::new(settings, |task, _| *task);
//! let task = TaskId::new(1);
//! let submission = Submission { task, items: None, retries: 0, constraints: None };
//! let mut outbox = Outbox::default();
//! scheduler.handle(Monotonic::ZERO, Event::Submit(submission), &mut outbox);
//! assert!(matches!(outbox.pop(), Some(Action::Accepted { .. })));
//! assert!(matches!(outbox.pop(), Some(Action::Spawn { .. })));
//! ```

//! # Invariants
//! - The same events at the same times lead to the same actions: no clock, no input or output, no
//!   thread, no randomness. (The module [`journal`] reads and writes, around the scheduler.)
//! - Each accepted task gets exactly one `Action::Complete`.
//! - Two attempts of one task never overlap.

#![forbid(unsafe_code)]

mod alarms;
mod assign;
mod balance;
mod chunk;
mod conclude;
mod deadlines;
mod death;
mod entries;
mod entry;
mod escalation;
mod event;
mod failure;
pub mod journal;
mod kill;
mod lifecycle;
mod limits;
mod needs;
mod outbox;
mod packing;
mod prefetch;
mod queries;
mod queue;
mod restart_budget;
mod retry;
mod revoke;
mod run_times;
mod scaling;
mod scheduler;
mod settings;
mod shutdown;
mod slab;
mod slow;
mod spawn;
mod task;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;
mod warm_up;
mod worker;
mod workers;

pub use brigade_base::{Grant, Needs, Resource, Retry};
pub use event::{
    Event, InterruptedAttempt, Observation, Returned, Stage, StartFailure, Usage, WorkerDeath,
};
pub use failure::{FailedItems, Failure, RetryWhy};
pub use lifecycle::{Shutdown, ShutdownReport};
pub use outbox::{Action, Outbox, Removed, RevokeWhy, Sending, TaskEnd};
pub use queries::{Links, WorkerStatus};
pub use scheduler::Scheduler;
pub use settings::{Counters, Settings};
pub use task::{Constraints, Submission, TaskData, TaskKey, TaskRef};
pub use worker::KillCause;

use lifecycle::Phase;
use worker::{Occupant, WorkerEntry, WorkerState};
