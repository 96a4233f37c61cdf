//! Shows what a pool does while it does it: one page, over loopback, in any browser.
//!
//! Programs can use this crate alone, or as `brigade::status` in the facade `brigade`.
//!
//! A [`StatusServer`] serves the snapshots of a [`Source`]:
//!
//! | path | content |
//! |---|---|
//! | `/` | the page, which follows the events |
//! | `/snapshot.json` | a [`PoolSnapshot`](brigade_metrics::PoolSnapshot) |
//! | `/metrics` | the same numbers for Prometheus |
//! | `/events` | server-sent events: a snapshot a second |
//! | `/stack/3` | where the running task of worker 3 is now |
//!
//! ```
//! use brigade_metrics::PoolSnapshot;
//! use brigade_status::{Source, StatusServer};
//!
//! struct Example;
//!
//! impl Source for Example {
//!     fn snapshot(&self) -> Option<PoolSnapshot> {
//!         Some(PoolSnapshot::default())
//!     }
//! }
//!
//! let server = StatusServer::serve("127.0.0.1:0", Example)?;
//! println!("open {server}");
//! # Ok::<(), brigade_status::ServeError>(())
//! ```

//! # Invariants
//! - The server only reads. Nothing that a client sends changes the source; a stack interrupts the
//!   worker for a tenth of a millisecond.
//! - One thread serves everybody, never waits for a client, and sleeps without a timeout while
//!   there is none. Snapshots are made only for clients.
//! - Connections, the size of requests, and the time for sending them and taking the answers are
//!   bounded.
//! - Requests whose `Host` field does not name this machine are refused. The page loads nothing
//!   from elsewhere.
//! - Other machines are served only if the builder allows it.

// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-status/latest")]
#![forbid(unsafe_code)]

mod connection;
mod error;
mod event_loop;
mod host;
mod page;
mod request;
mod response;
mod server;
mod site;
mod source;

pub use error::ServeError;
pub use server::{StatusServer, StatusServerBuilder};
pub use source::{Source, Terms};
