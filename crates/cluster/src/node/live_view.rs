//! The live view of the pool of a node, whose metrics carry the name of the node.

use brigade_metrics::PoolSnapshot;
use brigade_pool::{Pool, StatusSource};
use brigade_status::{Source, StatusServer};

use crate::error::ClusterError;

struct NodeSource {
    pool: StatusSource,
    node: String,
}

impl Source for NodeSource {
    fn snapshot(&self) -> Option<PoolSnapshot> {
        let mut snapshot = self.pool.snapshot()?;
        snapshot.node = Some(self.node.clone());
        Some(snapshot)
    }
}

/// Serves the pool of a node at an address.
pub(super) fn serve(address: &str, pool: &Pool, node: &str) -> Result<StatusServer, ClusterError> {
    let source = NodeSource { pool: pool.status_source(), node: node.to_owned() };
    StatusServer::serve(address, source).map_err(|error| ClusterError::Configuration {
        field: "serve_status",
        problem: brigade_codec::chain(&error),
    })
}
