//! Errors and retries: what can go wrong, and what to do then.
//!
//! # Two kinds of errors
//!
//! Your function may return a `Result`. That `Result` is a *value* for the pool, even if it is an
//! `Err`. A [`TaskError`](crate::TaskError) says that there is no value at all.
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::Pool;
//!
//! fn parse(text: String) -> Result<i32, String> {
//!     text.parse().map_err(|error| format!("{text:?}: {error}"))
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = Pool::builder().workers(1).build()?;
//! match pool.submit(parse, "twelve".to_owned())?.wait() {
//!     Ok(Ok(number)) => println!("{number}"),
//!     Ok(Err(text)) => assert!(text.starts_with("\"twelve\"")), // the function said no
//!     Err(error) => eprintln!("no answer: {error}"),            // the worker crashed, for example
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # A crash
//!
//! A task that crashes ends its worker, and no other task. The pool starts another worker in its
//! place.
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::{Pool, TaskErrorKind};
//!
//! fn fragile(number: u32) -> u32 {
//!     if number == 3 {
//!         std::process::abort();
//!     }
//!     number * 10
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = Pool::builder().workers(2).build()?;
//! let results: Vec<_> = pool.map(fragile, 0..6).collect();
//! assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 5);
//! let error = results[3].as_ref().unwrap_err();
//! assert!(error.is_worker_death());
//! assert!(matches!(error.kind(), TaskErrorKind::WorkerDied { .. }));
//! println!("{error}");
//! # Ok(())
//! # }
//! ```
//!
//! The text of the error names the process, the signal and the time that the task had run.
//! `{error:#}` adds the place of the crash, if the cargo feature `backtrace` is on.
//!
//! # The kinds
//!
//! | question | method | retried by `retries`? |
//! |---|---|---|
//! | did the function panic? | [`is_panic`] | only with `retry_panics` |
//! | did its worker die? | [`is_worker_death`] | yes |
//! | did it take too long? | [`is_deadline`] | yes, if it ran |
//! | did it take too much memory or processor time? | [`is_limit`] | yes |
//! | did it try what its sandbox forbids? | [`is_denied`] | no: it would be denied again |
//! | was it cancelled? | [`is_cancelled`] | no |
//!
//! [`TaskErrorKind`](crate::TaskErrorKind) lists all of them with their details. It may get more
//! variants, so a `match` needs a last arm `_`.
//!
//! # Retries
//!
//! A run of a task is an *attempt*. `retries(2)` allows two more attempts after the first one.
//! [`worker::attempt`](crate::worker::attempt) returns the number of the attempt, counted from 1.
//!
//! ```
//! # brigade::init_for_tests!();
//! fn flaky(name: String) -> String {
//!     if brigade::worker::attempt().is_some_and(|attempt| attempt.get() == 1) {
//!         std::process::exit(1); // the first attempt fails
//!     }
//!     name
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! let handle = pool.task(flaky).retries(2).label("report").submit("done".to_owned())?;
//! assert_eq!(handle.wait()?, "done");
//! # Ok(())
//! # }
//! ```
//!
//! Failures of a service or a file system often pass after a while. [`Retry`](crate::Retry) sets
//! pauses that grow, with jitter so that tasks that failed together do not come back together. An
//! `Err` that the function returns is a value, and a panic usually comes again; `retry_errors` and
//! `retry_panics` name them as reasons for another attempt:
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::Retry;
//! # use std::time::Duration;
//!
//! fn fetch(page: u32) -> Result<String, String> {
//!     match brigade::worker::attempt() {
//!         Some(attempt) if attempt.get() == 1 => Err("the server is busy".to_owned()),
//!         _ => Ok(format!("page {page}")),
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! let retry = Retry::new().attempts(5).delay(Duration::from_millis(20)).jitter(0.5);
//! for page in pool.map(fetch, 0..3).retry(retry).retry_errors() {
//!     println!("{}", page??);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! During a pause no worker is taken: other tasks and other items run. Single tasks, maps, streams
//! and the tasks of a cluster have the same settings. After the last attempt, its failure is the
//! outcome. The command has `brigade run --retries 4 --retry-delay 2s`.
//!
//! A task with retries may run more than once, so write it to tolerate that. Write a file under
//! another name and rename it when it is complete, for example.
//!
//! A task that has killed 16 workers is given up, even if it has retries left.
//! [`quarantine_after`](crate::PoolBuilder::quarantine_after) changes that number.
//!
//! # A task that is refused
//!
//! [`submit`](crate::Pool::submit) returns a [`SubmitError`](crate::SubmitError) if the pool does
//! not take the task. The argument is not lost:
//! [`into_argument`](crate::SubmitError::into_argument) returns it. A pool is *broken* if it cannot
//! start workers anymore. All its tasks end in errors then, and the error names the reason.
//!
//! Next: [deadlines and cancellation](super::deadlines).
//!
//! [`is_panic`]: crate::TaskError::is_panic
//! [`is_worker_death`]: crate::TaskError::is_worker_death
//! [`is_deadline`]: crate::TaskError::is_deadline
//! [`is_limit`]: crate::TaskError::is_limit
//! [`is_denied`]: crate::TaskError::is_denied
//! [`is_cancelled`]: crate::TaskError::is_cancelled
