//! Errors of connections, clusters and nodes.

#[cfg(feature = "node")]
use brigade_pool::PoolError;

use crate::names::NameError;

/// The source of an error, of any type.
type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a cluster or a node cannot work.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The server cannot be reached, or it refused the connection.
    #[error("cannot connect to {url}: check that nats-server runs there")]
    Connect {
        /// The address that was tried, without credentials.
        url: String,
        /// The cause.
        #[source]
        source: SourceError,
    },
    /// The server refused the user, the token or the credentials.
    #[error("cannot log in at {url}: {remedy}")]
    Login {
        /// The address, without credentials.
        url: String,
        /// The settings to check.
        remedy: String,
        /// The cause.
        #[source]
        source: SourceError,
    },
    /// The server or this program refused the certificates of the other side.
    #[error("cannot make a TLS connection to {url}: {remedy}")]
    Tls {
        /// The address, without credentials.
        url: String,
        /// The settings to check.
        remedy: String,
        /// The cause.
        #[source]
        source: SourceError,
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
    #[error("cannot {operation}")]
    Server {
        /// Operation that failed.
        operation: &'static str,
        /// The cause.
        #[source]
        source: SourceError,
    },
    /// The server refused a message because this login may not use its subject.
    #[error("{reason}: give it the permission, as in docs/deploy/permissions.conf")]
    Permission {
        /// The subject.
        subject: String,
        /// Description of the refusal.
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
    /// The system refused a thread or a descriptor, or the thread of the client or node has ended.
    #[error("cannot {operation}")]
    System {
        /// Operation that failed.
        operation: &'static str,
        /// The cause.
        #[source]
        source: SourceError,
    },
    /// The local pool of a node could not be built, or cannot run tasks.
    #[cfg(feature = "node")]
    #[error("the local pool: {0}")]
    Pool(#[from] PoolError),
    /// A name has characters that are not allowed, or is too long.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl ClusterError {
    pub(crate) fn server(operation: &'static str, cause: impl Into<SourceError>) -> Self {
        Self::Server { operation, source: cause.into() }
    }

    pub(crate) fn system(operation: &'static str, cause: impl Into<SourceError>) -> Self {
        Self::System { operation, source: cause.into() }
    }
}

brigade_sys::debug_as_text!(ClusterError);
