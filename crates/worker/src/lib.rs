//! What runs inside a Brigade worker process.
//!
//! A worker is a second process of the host's own program. [`init`], the first line of its `main`, notices that, connects
//! to the host and runs tasks until the process ends. A [`Server`] does the same in a program of its own, whose functions
//! have names. The other principal items: [`function_of`], which turns a typed function into what the loop can call;
//! [`state()`], which gives tasks what the pool's initializer has made; [`context`], by which a task learns where it runs; [`exit_code`], by
//! which the host learns why a worker ended.
//!
//! ```
//! brigade_worker::init(); // the first line of main: in a worker it never returns
//! assert!(brigade_worker::is_initialised());
//! assert_eq!(brigade_worker::context::id(), None, "this is the host");
//! ```
//!
//! # Invariants
//! - A worker does not outlive its host, at no moment: the kernel kills it, or it notices on its control socket.
//! - A task that the host has revoked does not run; a task that runs ends in exactly one outcome or in the end of the
//!   process. A panic, in the task's own code or in that of its types, is an outcome.
//! - A function is called by its offset only when the host is of the same build.
//! - Protocol never goes over stdin, stdout or stderr, which belong to the tasks. The worker itself writes to stderr
//!   only when it ends without having been asked to.
//! - Nothing that a task starts takes itself for a worker, or inherits the link.

#![forbid(unsafe_code)]

mod bootstrap;
mod bounded;
pub mod context;
mod error;
mod event_loop;
pub mod exit_code;
mod functions;
mod last_words;
mod marker;
mod panic_capture;
mod sections;
mod server;
mod setup;
mod start;
mod state;
mod typed;
mod weight;

pub use sections::{SectionGuard, expires};
pub use server::Server;
pub use setup::{finalizer_of, initializer_of, try_initializer_of};
pub use start::{init, is_initialised, started_as_worker_without_init};
pub use state::state;
pub use typed::{Typed, function_of};
