//! Which cpu cores belong to whom.
//!
//! [`Topology`] is the machine as the kernel describes it: cores and their hardware threads, caches, NUMA nodes, kinds of core, and
//! what of it this process may use. A [`CorePool`] leases cores: a [`CoreRequest`] says how many and how they shall lie to each
//! other, a [`CoreLease`] holds them until it is dropped. Threads and commands are pinned with
//! [`CoreLease::pin_current_thread`] and [`CoreLease::run_pinned`]; sets of cpus are [`CpuSet`]s everywhere.
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
//!
//! Invariants:
//! - A core is never in two leases of one pool, nor of [exclusive](CorePoolBuilder::exclusive) pools as long as nobody replaces their
//!   folder or file. It is back in the pool when its lease is dropped, whatever happens in between.
//! - Requests are served in the order in which they came. One that could never be served is refused at once.
//! - A strict request gets what it asked for or nothing.
//! - Whatever files say, discovery gives a usable topology or an error, and never panics.

#![forbid(unsafe_code)]

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
