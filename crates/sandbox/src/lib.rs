//! Limits on the resources of workers and jobs, and sandboxes for those that are not to be trusted.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! - [`Limits`]: what a process may take, and [`Limit`]: the one that it has exceeded
//! - [`Groups`] and [`Group`]: control groups, in which the kernel enforces limits exactly
//! - [`Sandbox`]: the files, networks and system calls that a process may
//!   use; [`Prepared`] is the form in which a process gets it
//! - [`SandboxReport`]: what holds on this machine, layer by layer
//!
//! ```
//! use brigade_sandbox::{Limit, Limits};
//!
//! let limits = Limits::new().memory(512 << 20).open_files(64);
//! assert_eq!(limits.memory_limit(), Some(512 << 20));
//! assert_eq!(Limit::Memory(512 << 20).to_string(), "512 MiB of memory");
//! ```

//! # Invariants
//! - Nothing is pretended: what the kernel cannot enforce is an error, or a line of the report that
//!   says so.
//! - Everything that takes time or may fail is done once, by the host. A process only hands in what
//!   the host has prepared, with a few system calls.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-sandbox/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

pub mod calls;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod error;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filters;
mod group;
mod limit;
mod limits;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod prepare;
mod prepared;
#[cfg(target_os = "linux")]
mod program;
mod report;
mod rules;
mod sandbox;

pub use error::SandboxError;
pub use group::{Group, Groups};
pub use limit::Limit;
pub use limits::Limits;
pub use prepared::Prepared;
pub use report::{CPU_MEANS, CPU_OF_JOBS, Hold, Layer, NO_GROUP, SandboxReport, WATCHED};
pub use rules::Rules;
pub use sandbox::Sandbox;
