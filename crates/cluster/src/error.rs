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
    /// The server refused a request, or did not answer.
    #[error("failed to {operation}: {reason}")]
    Server {
        /// Operation that failed.
        operation: &'static str,
        /// Description of the failure.
        reason: String,
    },
}

impl ClusterError {
    /// Converts an error of the client library.
    pub(crate) fn server(operation: &'static str, error: &dyn std::error::Error) -> Self {
        Self::Server { operation, reason: brigade_codec::chain(error) }
    }
}
