//! The output of a worker's process.

use super::WorkerProcess;
use crate::workers::output::{LastLines, OutputForwarder, WorkerStreams};

impl WorkerProcess {
    /// Returns the output streams, if the process was started.
    pub(crate) fn streams(&self) -> Option<&WorkerStreams> {
        self.running.get().map(|running| &running.streams)
    }

    /// Reads the rest of the output of a process that has ended, and closes its pipes. Returns the
    /// end of its stderr, and the lines that have to be emitted before the death is reported.
    pub(crate) fn finish_streams(&self, output: &OutputForwarder) -> (String, Option<LastLines>) {
        let running = self.running.get();
        running.map_or_else(Default::default, |it| output.finish_streams(&it.streams))
    }

    /// Reads the rest of the output of a process that has ended, and returns the end of its stderr.
    pub fn read_rest(&self, output: &OutputForwarder) -> String {
        self.finish_streams(output).0
    }
}
