//! Enforces deadlines on processes: a process that overruns is killed on time, and no other is.
//!
//! Programs can use this crate alone, or as `brigade::timer` in the facade `brigade`.
//!
//! A [`TimerServer`] is one thread that sleeps until the next deadline. A [`TimerClient`] arms
//! deadlines for the process that uses it; a [`TimerGuard`] holds one for a section of code. A
//! [`Reaper`] decides what happens at a deadline: by default, an [`Escalation`] of signals goes to
//! the process group. [`TimerHeap`] holds timers alone.
//!
//! ```
//! use brigade_timer::{TimerEvent, TimerServer};
//! use std::sync::mpsc;
//! use std::time::Duration;
//!
//! let (events, seen) = mpsc::channel();
//! let mut server = TimerServer::builder()
//!     .reaper(brigade_timer::LogReaper) // Kills nothing: this is only an example.
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

//! # Invariants
//! - No deadline is served early. Only the monotonic clock counts.
//! - A process arms timers only for itself: the kernel tells the server which process sent a
//!   request.
//! - A signal reaches the process that registered, or none: the server addresses it by pidfd, never
//!   by pid.
//! - A process that exits loses its timers at once. Nothing that a client sends can stop the
//!   server.
//! - The server does not poll: without requests and deadlines it makes no system calls.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-timer/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod client;
mod error;
mod escalation;
mod event;
mod machine;
mod reaper;
mod request;
mod scope;
mod server;

pub use brigade_base::{Fired, Monotonic, TimerHeap, TimerKey};
pub use brigade_sys::process::{ForeignProcess, Signal, Swept};
pub use client::{ADDRESS_VARIABLE, TimerClient, TimerGuard, configure, expires};
pub use error::{ClientError, ServerError};
pub use escalation::{ESCALATION_LIMIT, Escalation};
pub use event::{ExpiredTimer, TimerEvent};
pub use reaper::{Expiry, LogReaper, Reap, Reaper, SignalReaper};
pub use scope::{SCOPE_LIMIT, Scope};
pub use server::{TimerServer, TimerServerBuilder};
