//! A checklist for production.
//!
//! # Settings of the pool
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::time::Duration;
//! use brigade::{Pool, Shutdown, Stdio};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = Pool::builder()
//!     .name("decoders")                           // in events and metrics
//!     .queue_limit(1_000)                         // the queue cannot grow without end
//!     .queue_deadline(Duration::from_secs(10))    // no answer that nobody waits for
//!     .deadline(Duration::from_secs(60))          // no task runs forever
//!     .max_tasks_per_worker(10_000)               // an end to leaks; maps send single items
//!     .slow_task_after(Duration::from_secs(20))   // an event before users complain
//!     .stdio(Stdio::Capture)                      // output of workers in the log
//!     .build()?;
//! pool.warm_up()?; // fails now, and not at the first request
//! # let doubled: u8 = pool.submit(|x: u8| 2 * x, 4)?.wait()?;
//! # assert_eq!(doubled, 8);
//!
//! // At the end: finish all tasks for 30 seconds, then end the rest.
//! let report = pool.shutdown_with(Shutdown::Drain, Duration::from_secs(30))?;
//! println!("{} finished, {} killed", report.finished, report.killed);
//! # Ok(())
//! # }
//! ```
//!
//! # The list
//!
//! - `init` is the first line of `main`.
//! - A program that gives up rights (`setuid`) does so before it builds the pool. Otherwise it
//!   cannot kill its workers.
//! - A task with `retries` tolerates running twice.
//! - A request that finds the queue full is refused at once: see
//!   [`SubmitError::is_full`](crate::SubmitError::is_full).
//! - Somebody sees events at the level WARN: a worker does not start, a task is slow, a sandbox
//!   forbids a call. The death of a worker is an event at the level INFO, since the task has an
//!   error that says the same.
//! - A pool is *broken* if it cannot start workers anymore, for example because no memory is left.
//!   Then the service ends, and systemd (or whatever supervises it) starts it again.
//! - Release builds have `debug = "line-tables-only"` and the cargo feature `backtrace`. Then a
//!   crash has a place.
//!
//! # Shutdown
//!
//! [`shutdown`](crate::Pool::shutdown) finishes all tasks that were accepted. It blocks, so call it
//! outside of an async runtime. [`shutdown_with`](crate::Pool::shutdown_with) has a timeout and
//! stronger modes. Dropping the pool does the same as `shutdown`.
//!
//! If your program is killed, the kernel ends its workers. Nothing is left behind.
//!
//! # systemd
//!
//! ```text
//! [Service]
//! Type=exec
//! ExecStart=/usr/local/bin/service
//! KillMode=mixed
//! TimeoutStopSec=60
//! Restart=on-failure
//! LimitNOFILE=65536
//! OOMPolicy=continue
//! ```
//!
//! - `KillMode=mixed` sends SIGTERM to your program alone, so that workers may finish.
//! - `TimeoutStopSec` is longer than your shutdown.
//! - `OOMPolicy=continue` lets the kernel kill one worker for its memory, and not the whole
//!   service.
//! - `Delegate=yes` lets a pool make control groups, with which limits on memory are exact.
//!
//! # Containers
//!
//! - `/proc` is mounted. Without it `build` returns an error that says so.
//! - The container has an init (`docker run --init`). Otherwise your program is process 1, and
//!   orphans of tasks come to it.
//! - The limit on processes (`--pids-limit`) has room for the workers, their threads, and what
//!   tasks start.
//! - `/dev/shm` may be small. Shared memory is anonymous (`memfd`) and is not a file there.
//! - Shared memory counts for the memory limit of the container.
//!
//! # Descriptors
//!
//! The host keeps about nine descriptors for each worker, and a dozen for the pool. So the usual
//! limit of 1,024 is enough for about a hundred workers. If no descriptor is left, no worker can be
//! started, and the error says so.
//!
//! # Memory
//!
//! A worker that was just started takes about a megabyte. Address space is another number: a worker
//! maps gigabytes that it does not use. So judge workers by RSS or PSS, and never by VSZ, and leave
//! `ulimit -v` unlimited.
//!
//! [`max_worker_rss`](crate::PoolBuilder::max_worker_rss) replaces a worker that has grown, after
//! its task. [`Limits::memory`](crate::Limits::memory) ends a task that takes too much.
//!
//! # Updates
//!
//! A program that is replaced on disk while it runs keeps its own file for workers. Replace it,
//! then restart the service.
//!
//! Next: [how it works](super::pictures).
