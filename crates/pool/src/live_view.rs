//! Serves the pool's snapshots as a live view.

use std::net::ToSocketAddrs;
use std::sync::{Arc, Weak};

use brigade_metrics::{PoolSnapshot, Source as _};
use brigade_status::{ServeError, Source, StatusServer};

use crate::drive::Shared;
use crate::pool::Pool;

impl Pool {
    /// Serves a live view of the pool: a page for browsers, `/snapshot.json`, `/metrics` for
    /// Prometheus, and `/events`. The command `brigade top` shows it in a terminal.
    ///
    /// The address must be a loopback address; use [`status_source`](Self::status_source) with a
    /// [`StatusServer::builder`] for others. Port 0 chooses a free port. The view ends when the
    /// server is dropped. It may outlive the pool, and then says that the pool has ended.
    ///
    /// One thread serves all clients. It sleeps while there are none.
    ///
    /// ```
    /// # brigade::init();
    /// # let pool = brigade::Pool::builder().workers(1).build().unwrap();
    /// let page = pool.serve_status("127.0.0.1:0")?;
    /// println!("open http://{}/", page.addr());
    /// # Ok::<(), brigade::status::ServeError>(())
    /// ```
    ///
    /// # Errors
    /// If the address is not a loopback address or cannot be bound, or if the system is out of
    /// descriptors or threads.
    pub fn serve_status(&self, address: impl ToSocketAddrs) -> Result<StatusServer, ServeError> {
        StatusServer::serve(address, self.status_source())
    }

    /// Returns the pool's snapshots for a server with other settings than those of
    /// [`serve_status`](Self::serve_status). It does not keep the pool alive.
    pub fn status_source(&self) -> StatusSource {
        StatusSource(Arc::downgrade(self.shared()))
    }
}

/// The snapshots of a pool, as long as it exists. Returned by [`Pool::status_source`].
#[derive(Debug, Clone)]
pub struct StatusSource(Weak<Shared>);

impl Source for StatusSource {
    fn snapshot(&self) -> Option<PoolSnapshot> {
        // Summarized without the lock of the pool.
        self.0.upgrade().map(|pool| pool.measure().summarize())
    }

    fn stack(&self, worker: u32) -> Option<String> {
        self.0.upgrade()?.stack_in(worker).map(|stack| stack.to_string())
    }
}
