//! The code that runs inside a Brigade worker process.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! A worker is a second process of the host's own program. [`init`], the first line of `main`,
//! detects that, connects to the host and runs tasks until the process ends. A [`Server`] does the
//! same in a separate program whose functions have names.
//!
//! A [`Key`] is a function with a name, [`Emit`] takes items from a function while it runs,
//! [`state()`] is the value that the pool's initializer returned, and [`context`] says where a task
//! runs. [`function_of`] turns a typed function into one that the event loop can call.
//!
//! ```
//! brigade_worker::init(); // the first line of main: in a worker it never returns
//! assert!(brigade_worker::is_initialized());
//! assert_eq!(brigade_worker::context::id(), None, "this is the host");
//! ```

//! # Invariants
//! - A worker never outlives its host: the kernel kills it, or it notices the end of its control
//!   socket.
//! - A task that the host has revoked does not run. A task that runs ends in exactly one outcome or
//!   in the end of the process. A panic, in the task's own code or in that of its types, is an
//!   outcome.
//! - A function is called by its offset only if the host is the same build.
//! - The protocol never uses stdin, stdout or stderr, which belong to the tasks. The worker itself
//!   writes to stderr only when it ends without having been asked to.
//! - No process that a task starts mistakes itself for a worker or inherits the link.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-worker/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod arenas;
mod bootstrap;
mod bounded;
mod buffers;
pub mod context;
mod control;
mod copies;
mod emit;
mod error;
mod event_loop;
mod fork_server;
mod forward;
mod functions;
mod key;
mod marker;
mod memory_limit;
mod panic_capture;
mod program;
mod sandbox;
mod sections;
mod server;
mod setup;
mod start;
mod state;
mod stderr;
mod task_span;
mod thread;
mod typed;

pub use brigade_wire::exit_code;
pub use buffers::{alloc, try_alloc};
pub use emit::{Emit, EmitEnd, emitting_function_of};
pub use error::EmitError;
pub use functions::FUNCTIONS;
pub use key::Key;
#[doc(hidden)]
pub use key::{problem_of_name, signature, types_of};
#[doc(hidden)]
pub use panic_capture::call_here;
pub use program::Connectors;
pub use sections::{SectionGuard, expires};
pub use server::Server;
pub use setup::{finalizer_of, initializer_of, preload_of};
pub use start::{init, init_with, is_initialized, started_as_worker_without_init};
pub use state::{preloaded, state};
#[doc(hidden)]
pub use thread::run_on_thread;
pub use typed::{Typed, function_of};
