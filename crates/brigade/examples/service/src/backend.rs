//! The place where the work is done: worker processes, or threads of this process.

use std::time::Duration;

use brigade::PoolError;
use brigade::metrics::export::{PROMETHEUS_MEDIA_TYPE, prometheus_text};

use crate::in_process::InProcess;
use crate::thumbnail::Manner;
use crate::workers::Workers;

pub(crate) enum Backend {
    Workers(Workers),
    InProcess(InProcess),
}

/// The reason why a request has no thumbnail.
pub(crate) enum Failure {
    /// The queue is full.
    Busy,
    /// The deadline has passed.
    Late,
    /// The input is not a picture.
    Picture(String),
    /// The decoder has crashed or panicked.
    Decoder(String),
}

impl Backend {
    pub(crate) fn workers(
        workers: usize,
        queue: usize,
        deadline: Duration,
    ) -> Result<Self, PoolError> {
        Ok(Self::Workers(Workers::start(workers, queue, deadline)?))
    }

    pub(crate) fn in_process(threads: usize, queue: usize, deadline: Duration) -> Self {
        Self::InProcess(InProcess::new(threads, queue, deadline))
    }

    pub(crate) async fn thumbnail(
        &self,
        picture: &[u8],
        manner: Manner,
    ) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Workers(workers) => workers.thumbnail(picture, manner).await,
            Self::InProcess(threads) => threads.thumbnail(picture, manner).await,
        }
    }

    /// Returns the media type and the text of the metrics.
    pub(crate) fn metrics(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Workers(workers) => {
                Some((PROMETHEUS_MEDIA_TYPE, prometheus_text(&[workers.pool.snapshot()])))
            }
            Self::InProcess(_) => None,
        }
    }

    pub(crate) fn shutdown(&self) -> Result<(), PoolError> {
        match self {
            Self::Workers(workers) => workers.pool.shutdown().map(drop),
            Self::InProcess(_) => Ok(()),
        }
    }
}
