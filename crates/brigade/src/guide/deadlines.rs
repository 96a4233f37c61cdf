//! Deadlines and cancellation: how a task ends that would take too long.
//!
//! # Why a process helps
//!
//! A thread cannot be stopped from outside. A process can: the kernel ends it, whatever its code
//! does. So a pool can end a task that loops forever, and go on with another worker.
//!
//! # A hard deadline
//!
//! A *deadline* is the longest time that a task may run. It counts from the moment at which a
//! worker begins the task.
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::time::Duration;
//! use brigade::Pool;
//!
//! fn forever(_: ()) {
//!     loop {
//!         std::hint::spin_loop();
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = Pool::builder().workers(1).build()?;
//! let handle = pool.task(forever).deadline(Duration::from_millis(50)).submit(())?;
//! let error = handle.wait().unwrap_err();
//! assert!(error.is_deadline());
//! # Ok(())
//! # }
//! ```
//!
//! No other task is harmed, and no deadline is early. Set a deadline for all tasks of a pool with
//! [`PoolBuilder::deadline`](crate::PoolBuilder::deadline).
//!
//! # A soft deadline
//!
//! A *soft deadline* is a request to stop. From then on,
//! [`worker::cancelled`](crate::worker::cancelled) returns `true` in the task. The task may tidy up
//! and return what it has.
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::time::Duration;
//!
//! fn as_far_as_possible(_: ()) -> u64 {
//!     let mut steps = 0;
//!     while !brigade::worker::cancelled() {
//!         steps += 1;
//!     }
//!     steps
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! let task = pool.task(as_far_as_possible).soft_deadline(Duration::from_millis(20));
//! assert!(task.submit(())?.wait()? > 0);
//! # Ok(())
//! # }
//! ```
//!
//! A task that ignores the request is killed two seconds later.
//! [`stop_grace`](crate::PoolBuilder::stop_grace) changes that time.
//!
//! # The three deadlines
//!
//! | deadline | counts from | at its end |
//! |---|---|---|
//! | [`queue_deadline`] | the submission, until the task begins | the task never runs |
//! | [`soft_deadline`] | the beginning | `cancelled()` returns `true` |
//! | [`deadline`] | the beginning | the worker is killed |
//!
//! A web service needs the first one: nobody waits for an answer that comes after a minute.
//!
//! # Cancel or kill
//!
//! [`cancel`](crate::Handle::cancel) takes a task back that has not begun. It returns `true`
//! exactly if the function never runs. [`kill`](crate::Handle::kill) ends a task that runs, by
//! ending its worker. [`abort_on_drop`](crate::Handle::abort_on_drop) kills the task if its handle
//! is dropped.
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn nap(_: ()) { loop { std::thread::park() } }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! let first = pool.submit(nap, ())?;
//! let second = pool.task(nap).priority(-1).submit(())?;
//! assert!(second.cancel(), "the only worker runs the first task");
//! first.kill();
//! assert!(second.wait().unwrap_err().is_cancelled());
//! assert!(first.wait().is_err());
//! # Ok(())
//! # }
//! ```
//!
//! # A section of a task
//!
//! [`worker::expires`](crate::worker::expires) guards a part of a task. The task is killed unless
//! it drops the guard in time. Use it for the one call that may hang.
//!
//! # Wait, but not forever
//!
//! [`wait_timeout`](crate::Handle::wait_timeout) stops waiting and leaves the task alone. It limits
//! your patience, and not the task.
//!
//! Next: [large data](super::large_data). The exact rules are in
//! [semantics](https://github.com/brigade-rs/brigade/blob/main/docs/semantics.md#deadlines).
//!
//! [`queue_deadline`]: crate::pool::TaskBuilder::queue_deadline
//! [`soft_deadline`]: crate::pool::TaskBuilder::soft_deadline
//! [`deadline`]: crate::pool::TaskBuilder::deadline
