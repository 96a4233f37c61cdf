//! Initializers and shared tables: what a worker loads once and uses often.
//!
//! # Once for each worker
//!
//! An *initializer* runs in each worker before its first task. Tasks get its value from
//! [`worker::state`](crate::worker::state). Use it for a connection, a parser, or a handle of a C
//! library.
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::collections::HashMap;
//! use brigade::{Pool, worker};
//!
//! type Lexicon = HashMap<String, u32>;
//!
//! fn index(words: Vec<String>) -> Lexicon {
//!     words.into_iter().zip(0..).collect()
//! }
//!
//! fn find(word: String) -> Option<u32> {
//!     worker::state::<Lexicon>()?.get(&word).copied()
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let words = ["one", "two"].map(String::from).to_vec();
//! let pool = Pool::builder().workers(2).initializer(index, words).build()?;
//! assert_eq!(pool.submit(find, "two".to_owned())?.wait()?, Some(1));
//! # Ok(())
//! # }
//! ```
//!
//! A worker that replaces a dead one runs the initializer too.
//! [`try_initializer`](crate::PoolBuilder::try_initializer) takes a function that may fail. A
//! worker whose initializer fails does not start, and the error of each task gives the reason.
//!
//! # Once for all workers
//!
//! Some tables are large: a model, a dictionary, a database in memory. One copy for each worker
//! would take too much memory. [`preload`](crate::PoolBuilder::preload) loads such a table once. It
//! runs in a process of the pool from which the workers are forked. A *fork* is a copy of a process
//! that shares its memory until one side writes.
//!
//! ```
//! # brigade::init_for_tests!();
//! use brigade::{Pool, worker};
//!
//! struct Squares(Vec<u64>);
//!
//! fn make(length: u64) -> Squares {
//!     Squares((0..length).map(|number| number * number).collect())
//! }
//!
//! fn look_up(number: usize) -> Option<u64> {
//!     worker::preloaded::<Squares>()?.0.get(number).copied()
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::builder().workers(2).preload(make, 100_000).build()?;
//! assert_eq!(pool.submit(look_up, 12)?.wait()?, Some(144));
//! # Ok(())
//! # }
//! ```
//!
//! The function must end all threads that it starts, because a fork copies only one thread. The
//! example `preload` prints the memory of each worker.
//!
//! # Which one?
//!
//! | | `initializer` | `preload` |
//! |---|---|---|
//! | runs | in each worker | once, before the fork |
//! | memory | one value for each worker | one for all, until a worker writes to it |
//! | type | any | `Send + Sync` |
//! | threads, connections | allowed | must have ended |
//!
//! A pool may have both. `preload` runs first.
//!
//! # After a fork
//!
//! The initializer is also what runs after each fork, in the new process and before its first task:
//!
//! | process | what runs in it |
//! |---|---|
//! | the one from which workers are forked | `main` up to `init`, then `preload`, once |
//! | a forked worker | the initializer |
//! | an executed worker | `main` up to `init`, `preload`, the initializer |
//! | a process of a single task, in a pool with an initializer | the initializer |
//! | a process of a single task, without one | nothing: it is a copy of an idle worker |
//!
//! A forked process has the state of what `main` and `preload` have used: a generator of random
//! numbers draws the same numbers in each of them, and an open connection is the same connection.
//! So seed generators with [`worker::seed`](crate::worker::seed), and connect, in the initializer.
//!
//! # State that goes wrong
//!
//! Code with global state may leave traces from one task to the next. Two settings help:
//!
//! - [`max_tasks_per_worker`](crate::PoolBuilder::max_tasks_per_worker) replaces a worker after a
//!   number of tasks. A leak has an end.
//! - [`fresh_process_per_task`](crate::PoolBuilder::fresh_process_per_task) gives each task a
//!   process of its own. That process exists before the task comes, so the task does not wait for
//!   it. With an initializer it is a new worker in place of a copy, which takes twice the processor
//!   time, and the time of the initializer.
//!
//! # At the end
//!
//! A [`finalizer`](crate::PoolBuilder::finalizer) runs in a worker that is asked to exit. It does
//! not run in a worker that crashes or is killed.
//!
//! Next: [async and web services](super::web_services).
