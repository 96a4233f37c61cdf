//! Thumbnails from worker processes.

use std::time::Duration;

use brigade::{Limits, Pool, PoolError, Sandbox, SharedBuf, TaskError, TaskErrorKind};

use crate::backend::Failure;
use crate::thumbnail::{Manner, thumbnail};

pub(crate) struct Workers {
    pub(crate) pool: Pool,
}

/// The task function.
fn make((picture, manner): (SharedBuf, Manner)) -> Result<Vec<u8>, String> {
    thumbnail(&picture, &manner)
}

impl Workers {
    pub(crate) fn start(
        workers: usize,
        queue: usize,
        deadline: Duration,
    ) -> Result<Self, PoolError> {
        let pool = Pool::builder()
            .name("thumbnails")
            .workers(workers)
            .queue_limit(queue)
            .queue_deadline(deadline)
            .deadline(deadline)
            // A picture may be an attack on its decoder: it reaches no file and no network, and no
            // picture of somebody else.
            .sandbox(Sandbox::strict())
            .limits(Limits::new().memory(512 << 20).cpu_time(deadline).core_size(0))
            .fresh_process_per_task()
            .build()?;
        pool.warm_up()?;
        Ok(Self { pool })
    }

    pub(crate) async fn thumbnail(
        &self,
        picture: &[u8],
        manner: Manner,
    ) -> Result<Vec<u8>, Failure> {
        // Neither call waits: a request that finds no memory or no room is refused at once.
        let mut buffer = self.pool.try_alloc(picture.len()).map_err(|_| Failure::Busy)?;
        buffer.copy_from_slice(picture);
        let handle = self.pool.try_submit(make, (buffer.freeze(), manner));
        let handle = handle.map_err(|error| {
            if error.is_full() { Failure::Busy } else { Failure::Decoder(error.to_string()) }
        })?;
        // If the client closes the connection, axum drops this future, and the task ends.
        match handle.abort_on_drop().await {
            Ok(made) => made.map_err(Failure::Picture),
            Err(error) => Err(failure(&error)),
        }
    }
}

fn failure(error: &TaskError) -> Failure {
    match error.kind() {
        TaskErrorKind::DeadlineExceeded { .. } => Failure::Late,
        TaskErrorKind::LimitExceeded { .. } => Failure::Picture(error.to_string()),
        _ => Failure::Decoder(error.to_string()),
    }
}
