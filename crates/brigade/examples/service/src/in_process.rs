//! Thumbnails from threads of this process, for comparison.

use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::backend::Failure;
use crate::thumbnail::{Manner, thumbnail};

pub(crate) struct InProcess {
    /// Requests that wait or are served.
    admitted: Semaphore,
    /// Requests that are served.
    threads: Semaphore,
    deadline: Duration,
}

impl InProcess {
    pub(crate) fn new(threads: usize, queue: usize, deadline: Duration) -> Self {
        let (admitted, threads) = (Semaphore::new(threads + queue), Semaphore::new(threads));
        Self { admitted, threads, deadline }
    }

    pub(crate) async fn thumbnail(
        &self,
        picture: &[u8],
        manner: Manner,
    ) -> Result<Vec<u8>, Failure> {
        let _admitted = self.admitted.try_acquire().map_err(|_| Failure::Busy)?;
        let waited = timeout(self.deadline, self.threads.acquire()).await;
        let _thread = waited.map_err(|_| Failure::Late)?;
        let picture = picture.to_vec();
        let work = spawn_blocking(move || thumbnail(&picture, &manner));
        // The thread goes on after the deadline: nothing can stop it.
        match timeout(self.deadline, work).await {
            Ok(Ok(made)) => made.map_err(Failure::Picture),
            Ok(Err(panicked)) => Err(Failure::Decoder(panicked.to_string())),
            Err(_) => Err(Failure::Late),
        }
    }
}
