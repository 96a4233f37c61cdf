//! Discovers the machine's cpu topology, leases cores, and pins threads and commands to them.
//!
//! Programs can use this crate alone, or as `brigade::cores` in the facade `brigade`.
//!
//! [`Topology`] is the machine as the kernel describes it: its cores and their hardware threads,
//! caches, NUMA nodes and kinds of core, and the part of it that this process may use. A
//! [`CorePool`] leases cores: a [`CoreRequest`] states how many and how close together, and a
//! [`CoreLease`] holds them until it is dropped. Pin threads and commands with
//! [`CoreLease::pin_current_thread`] and [`CoreLease::run_pinned`]. Sets of cpus are always
//! [`CpuSet`]s.
//!
//! ```
//! use brigade_cores::{CorePool, CoreRequest, Topology};
//!
//! let topology = Topology::discover()?;
//! println!("{topology}");
//!
//! let pool = CorePool::builder().topology(topology).build()?;
//! let lease = pool.reserve(CoreRequest::new(1))?;
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let pinned = lease.pin_current_thread().expect("a cpu of our own");
//!         assert!(pinned.is_exact());
//!     });
//! });
//! println!("worked on {lease}, all in one {}", lease.span());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

//! # Invariants
//! - A core is never in two leases of one pool, nor of several
//!   [exclusive](CorePoolBuilder::exclusive) pools as long as nobody replaces their folder or file.
//!   It returns to the pool when its lease is dropped, whatever happens in between.
//! - Requests are served in order of arrival. A request that can never be granted is refused at
//!   once.
//! - A strict request gets the placement that it asked for, or nothing.
//! - Whatever the system's files contain, discovery returns a usable topology or an error, and
//!   never panics.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-cores/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod allocator;
mod bits;
mod cpu_set;
mod discover;
mod error;
mod lease;
mod lock_file;
mod pin;
mod pool;
mod request;
mod topology;

pub use cpu_set::CpuSet;
pub use discover::Recording;
pub use error::{BuildError, DiscoverError, ParseCpuSetError, PinError, ReserveError};
pub use lease::CoreLease;
pub use pin::Pinned;
pub use pool::{CorePool, CorePoolBuilder, Ticket};
pub use request::{CoreKind, CoreRequest, Policy, Smt};
pub use topology::{Counts, CpuQuota, Level, Object, Topology, Warning};
