//! Deadlines for processes: what overruns is killed, on time, and nothing else.
//!
//! A [`TimerServer`] is one thread that sleeps until the next deadline. A [`TimerClient`] arms deadlines for the process
//! that uses it; a [`TimerGuard`] is one for a section of code. What happens at a deadline a [`Reaper`] decides: by default
//! a [`Ladder`] of signals to the worker's process group. [`TimerHeap`] is the timers alone, over numbers.
//!
//! ```
//! use brigade_timer::{TimerEvent, TimerServer};
//! use std::sync::mpsc;
//! use std::time::Duration;
//!
//! let (events, seen) = mpsc::channel();
//! let mut server = TimerServer::builder()
//!     .reaper(brigade_timer::LogReaper) // Nobody is killed in an example.
//!     .on_event(move |event| events.send(event.clone()).unwrap())
//!     .build()?;
//! server.start()?;
//!
//! brigade_timer::configure(server.client());
//! let _slow = brigade_timer::expires(Duration::from_millis(1))?;
//! let in_time = brigade_timer::expires(Duration::from_secs(60))?;
//! drop(in_time);
//! let expired = seen.iter().find(|event| matches!(event, TimerEvent::Expired { .. }));
//! assert!(expired.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//! - No deadline is served early. Only the monotonic clock counts.
//! - A process arms timers for itself and for nobody else: the kernel says who it is.
//! - A signal reaches the process that has registered, or nobody: it is held by a pidfd, never by its number.
//! - A worker that exits loses its timers at once; what a client sends cannot stop the server.
//! - The server waits without an interval: without requests and deadlines it makes no system calls.

#![forbid(unsafe_code)]

mod client;
mod error;
mod event;
mod heap;
mod ladder;
mod machine;
mod reaper;
mod request;
mod scope;
mod server;

pub use brigade_sys::clock::Monotonic;
pub use brigade_sys::process::{ForeignProcess, Signal, Swept};
pub use client::{ADDRESS_VARIABLE, TimerClient, TimerGuard, configure, expires};
pub use error::{ClientError, ServerError};
pub use event::{ExpiredTimer, TimerEvent};
pub use heap::{Fired, TimerHeap, TimerKey};
pub use ladder::{LADDER_LIMIT, Ladder};
pub use reaper::{Expiry, LogReaper, Reap, Reaper, SignalReaper};
pub use scope::{SCOPE_LIMIT, Scope};
pub use server::{TimerServer, TimerServerBuilder};
