//! Errors of connections, clusters and nodes.

/// The reason why a cluster or a node cannot work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The server cannot be reached, or it refused the connection.
    #[error("cannot connect to {url}: {reason}; check that nats-server runs there")]
    Connect {
        /// The address that was tried, without credentials.
        url: String,
        /// Description of the failure.
        reason: String,
    },
}
