//! Stands in for Linux on other systems: the names of the crates `libc` and `rustix` that
//! `brigade-sys` uses, behind which nothing works.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! Elsewhere `brigade-sys` takes this crate for both of them, so that everything above it compiles
//! unchanged, and every operation ends in an error that says what is missing. A name that
//! `brigade-sys` begins to use is added here, in a line.
//!
//! The names of `libc` are at the root, those of `rustix` in its modules. A pool whose workers are
//! threads has what it needs: the monotonic clock, random bytes, and between threads waits on words
//! of memory (futexes), counters of events, and shared memory.
//!
//! ```
//! use brigade_elsewhere::process::{Pid, PidfdFlags, getpid, pidfd_open};
//!
//! let error = std::io::Error::from(pidfd_open(getpid(), PidfdFlags::empty()).unwrap_err());
//! assert!(error.to_string().starts_with("this needs Linux: the program was built for "));
//! ```

//! # Invariants
//! - A function that cannot do what it promises returns an error, and writes nothing.
//! - Structures that only a kernel fills in have no size, so that none can be read before.

// Nothing is documented a second time, and functions with the names of others look like them.
#![expect(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::return_self_not_must_use,
    clippy::should_implement_trait,
    clippy::upper_case_acronyms,
    reason = "libc and rustix document the same names"
)]
#![forbid(unsafe_code)]

// Here, where nothing that would not compile either comes before it, it is the only error.
#[cfg(not(target_pointer_width = "64"))]
compile_error!("Brigade needs 64-bit addresses: a worker maps 16 GiB of them");

#[cfg(windows)]
extern crate brigade_windows as std;

#[macro_use]
mod macros;

pub mod buffer;
mod constants;
mod errno;
pub mod event;
pub mod fs;
mod functions;
mod futex;
pub mod io;
mod kernel;
pub mod mm;
pub mod mount;
pub mod net;
pub mod pipe;
pub mod process;
pub mod rand;
pub mod stdio;
mod structures;
pub mod thread;
pub mod time;

pub use constants::*;
pub use functions::*;
pub use structures::*;
