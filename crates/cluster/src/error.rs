//! Errors of connections, clusters and nodes.

use brigade_pool::PoolError;

use crate::names::NameError;

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
    /// The server refused the user, the token or the credentials.
    #[error("cannot log in at {url}: {reason}")]
    Login {
        /// The address, without credentials.
        url: String,
        /// Description of the failure, and of the remedy.
        reason: String,
    },
    /// The server or this program refused the certificates of the other side.
    #[error("cannot make a TLS connection to {url}: {reason}")]
    Tls {
        /// The address, without credentials.
        url: String,
        /// Description of the failure, and of the remedy.
        reason: String,
    },
    /// The server lacks something that clusters need.
    #[error("the server cannot be used: {reason}")]
    Unsupported {
        /// Description of the lack, and of the remedy.
        reason: String,
    },
    /// A stream exists with a setting that would break a promise.
    #[error(
        "the stream {stream} has {field} = {found}, and {needed} is needed: delete it, or use another queue"
    )]
    Setting {
        /// Name of the stream.
        stream: String,
        /// The setting.
        field: &'static str,
        /// Its value.
        found: String,
        /// The value that is needed.
        needed: String,
    },
    /// The server refused a request, or did not answer.
    #[error("failed to {operation}: {reason}")]
    Server {
        /// Operation that failed.
        operation: &'static str,
        /// Description of the failure.
        reason: String,
    },
    /// A batch exists whose map applies another function.
    #[error("the batch {batch} belongs to the function {found}, not to {wanted}: use another name")]
    OtherBatch {
        /// Name of the batch.
        batch: String,
        /// Name of its function.
        found: String,
        /// Name of the function that was to be applied.
        wanted: String,
    },
    /// A setting of a builder is invalid.
    #[error("{field}: {problem}")]
    Configuration {
        /// Name of the builder's method.
        field: &'static str,
        /// Description of the problem and of what is allowed.
        problem: String,
    },
    /// The system refused a thread or a descriptor, or a thread has ended.
    #[error("failed to {operation}: {reason}")]
    System {
        /// Operation that failed.
        operation: &'static str,
        /// Description of the failure.
        reason: String,
    },
    /// The local pool of a node could not be built, or cannot run tasks.
    #[error("the local pool: {0}")]
    Pool(#[from] PoolError),
    /// A name has characters that are not allowed, or is too long.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl ClusterError {
    /// Converts an error of the client library.
    pub(crate) fn server(operation: &'static str, error: &dyn std::error::Error) -> Self {
        Self::Server { operation, reason: brigade_codec::chain(error) }
    }
}
