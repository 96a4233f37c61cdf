//! The end of a worker that is a thread of this process.

use brigade_sys::process::Exit;
use brigade_wire::link::connect::EndMark;
use brigade_wire::link::memory;
use brigade_wire::worker_thread::Initialized;

/// The end of a worker that was killed, as if it were a process.
pub(crate) const KILLED: Exit = Exit::Signal(9);

/// The host's means to end a worker that is a thread.
#[derive(Debug)]
pub(crate) struct ThreadEnd {
    /// Ends the direction to the host.
    pub(crate) mark: memory::MemoryEnd,
    /// Ends a wait for the initializer.
    pub(crate) initialized: Initialized,
}

impl ThreadEnd {
    pub(crate) fn send(&self) {
        self.mark.send();
        let _ = self.initialized.try_send(Err("it is no longer needed".to_owned()));
    }
}
