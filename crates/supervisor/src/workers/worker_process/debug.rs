//! A worker's process in texts for debugging.

use std::fmt;

use super::WorkerProcess;

impl fmt::Debug for WorkerProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("WorkerProcess")
            .field("worker", &self.worker)
            .field("pid", &self.pid())
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}
