//! The host's part of what a worker's process gets at its start: its memory for crashes, and its
//! output.

use brigade_crash::Files;
use brigade_sys::crash::CrashArea;
use brigade_sys::lifeline::Lifeline;

use super::WorkerProcess;
use crate::workers::output::{LastLines, OutputForwarder, WorkerStreams};

impl WorkerProcess {
    /// Ends the process with this one from now on, and sets the memory for the records of its
    /// crashes, with the files that may be read for them.
    pub(crate) fn bind(&self, lifeline: Option<Lifeline>, crashes: Option<(CrashArea, Files)>) {
        let _ = lifeline.map(|lifeline| self.lifeline.set(lifeline));
        let _ = crashes.map(|crashes| self.crash_area.set(crashes));
    }

    pub(crate) fn crash_area(&self) -> Option<&(CrashArea, Files)> {
        self.crash_area.get()
    }

    /// Returns `true` if a process is the worker, and not a wrapper that has started it.
    pub(crate) fn is_worker(&self, pid: u32) -> bool {
        self.worker_pid.get() == Some(&pid)
    }

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
