//! Starts and stops the server.

use std::fmt;
use std::mem;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::thread::{Builder, JoinHandle};

use brigade_sys::fork::Origin;
use brigade_sys::wait::Waker;

use crate::error::ServeError;
use crate::event_loop::EventLoop;
use crate::site::Site;
use crate::source::Source;

/// A running live view. Dropping it closes all connections and ends its thread.
#[derive(Debug)]
#[must_use = "the live view ends when this value is dropped"]
pub struct StatusServer {
    address: SocketAddr,
    end: Waker,
    thread: Option<JoinHandle<()>>,
    origin: Origin,
}

/// Settings of a live view.
#[derive(Debug, Clone, Default)]
pub struct StatusServerBuilder {
    allows_remote: bool,
    names: Vec<String>,
    node: Option<String>,
}

impl StatusServer {
    /// Returns the default settings: clients on this machine only.
    pub fn builder() -> StatusServerBuilder {
        StatusServerBuilder::default()
    }

    /// Serves `source` at a loopback address, with the default settings.
    ///
    /// # Errors
    /// As [`StatusServerBuilder::serve`].
    pub fn serve(address: impl ToSocketAddrs, source: impl Source) -> Result<Self, ServeError> {
        Self::builder().serve(address, source)
    }

    /// Returns the address. The port is the real one if 0 was asked for.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }
}

brigade_sys::setters! {
    impl StatusServerBuilder;

    /// Allows addresses that other machines can reach. There is neither authentication nor
    /// encryption: everybody who can reach the address sees labels and error texts.
    pub fn allow_remote_clients(self) { self.allows_remote = true }

    /// Accepts requests for a name of this machine, besides its address and `localhost`. Others are
    /// refused, because a foreign page could have made a browser send them.
    pub fn host_name(self, name: impl Into<String>) { self.names.push(name.into()) }

    /// Sets the [name of the node](brigade_metrics::PoolSnapshot::node) in all snapshots. Default:
    /// as the source says.
    pub fn node(self, name: impl Into<String>) { self.node = Some(name.into()) }
}

impl StatusServerBuilder {
    /// Starts a server for `source`. Port 0 chooses a free port.
    ///
    /// If the address resolves to several ones, the first that can be bound is taken.
    ///
    /// # Errors
    /// If the address is not a loopback address and
    /// [`allow_remote_clients`](Self::allow_remote_clients) was not called, if it cannot be bound,
    /// or if the system is out of descriptors or threads.
    pub fn serve(
        self,
        address: impl ToSocketAddrs,
        source: impl Source,
    ) -> Result<StatusServer, ServeError> {
        let addresses = address.to_socket_addrs().map_err(ServeError::Resolve)?;
        self.start(&addresses.collect::<Vec<_>>(), Box::new(source))
    }

    fn start(
        self,
        addresses: &[SocketAddr],
        source: Box<dyn Source>,
    ) -> Result<StatusServer, ServeError> {
        let listener = self.listen(addresses)?;
        let address = listener.local_addr().map_err(ServeError::Start)?;
        let end = Waker::new().map_err(ServeError::Start)?;
        let site = Site::new(source, self.names, self.node);
        let event_loop = EventLoop::new(site, listener, &end).map_err(ServeError::Start)?;
        let thread = Builder::new()
            .name("brigade-status".to_owned())
            .spawn(move || event_loop.run())
            .map_err(ServeError::Start)?;
        Ok(StatusServer { address, end, thread: Some(thread), origin: Origin::here() })
    }

    fn listen(&self, addresses: &[SocketAddr]) -> Result<TcpListener, ServeError> {
        let mut failure = None;
        for &address in addresses {
            if !self.allows_remote && !address.ip().to_canonical().is_loopback() {
                return Err(ServeError::NotLoopback(address));
            }
            match TcpListener::bind(address) {
                Ok(listener) => return Ok(listener),
                Err(source) => failure = Some(ServeError::Bind { address, source }),
            }
        }
        let nothing = || ServeError::Resolve(std::io::ErrorKind::AddrNotAvailable.into());
        Err(failure.unwrap_or_else(nothing))
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // A copy of this process that `fork` has made has no such thread, but shares the waker.
        if !self.origin.is_here() {
            mem::forget(thread);
            return;
        }
        self.end.wake();
        // The thread contains the panics of the source.
        let _ = thread.join();
    }
}

impl fmt::Display for StatusServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "http://{}/", self.address)
    }
}
