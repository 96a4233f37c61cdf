//! A batch that was opened, whose runs agree on the size of chunks.

use std::sync::Arc;

use brigade_codec::chain;

use super::requests::patiently;
use super::shared::Shared;
use crate::error::ClusterError;
use crate::message::Manifest;
use crate::names::Origin;
use crate::publisher::{NOTHING, Publication, only_behind};
use crate::server::Server;

/// The operation in which a batch needs the server first.
pub(super) const OPEN: &str = "open the batch";

/// A batch that was opened.
#[derive(Debug, Clone)]
pub(super) struct OpenBatch {
    pub(super) origin: Origin,
    /// An earlier run has left outcomes or tasks.
    pub(super) is_continued: bool,
}

impl OpenBatch {
    /// Agrees with earlier runs on the size of chunks. Returns that size.
    pub(super) fn agree(
        &self,
        shared: &Arc<Shared>,
        name: &str,
        chunk: u32,
    ) -> Result<u32, ClusterError> {
        let (origin, wanted) = (self.origin.clone(), Manifest { name: name.to_owned(), chunk });
        shared.ask(OPEN, move |server| async move { agree(&server, &origin, &wanted).await })
    }
}

/// Records the manifest of a batch, or reads that of an earlier run.
async fn agree(server: &Server, batch: &Origin, wanted: &Manifest) -> Result<u32, ClusterError> {
    const OPERATION: &str = "record the manifest of a batch";
    let manifest = Publication {
        subject: server.names().manifest(batch).into(),
        headers: only_behind(NOTHING),
        payload: wanted.to_bytes().map_err(|error| ClusterError::server(OPERATION, error))?,
    };
    let message = patiently(OPERATION, async || {
        let found = server.outcome(&manifest.subject).await;
        if let Some(message) = found.map_err(|error| chain(&error))? {
            return Ok(message);
        }
        // If another run was faster, its manifest is read in the next attempt.
        let stored = server.publish(manifest.clone()).await;
        stored.map(|_| manifest.payload.clone()).map_err(|error| chain(&error))
    })
    .await?;
    let found =
        Manifest::from_bytes(&message).map_err(|error| ClusterError::server(OPERATION, error))?;
    if found.name == wanted.name {
        Ok(found.chunk.max(1))
    } else {
        Err(ClusterError::OtherBatch {
            batch: batch.to_string(),
            found: found.name,
            wanted: wanted.name.clone(),
        })
    }
}
