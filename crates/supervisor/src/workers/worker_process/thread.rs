//! Workers that are threads of this process.

use brigade_sys::process::Exit;

use super::{ProcessState, WorkerProcess};
use crate::workers::death::Death;
use crate::workers::thread_end::ThreadEnd;

impl WorkerProcess {
    /// Records that the worker is a thread of this process. Returns `false` if it was killed in the
    /// meantime.
    pub(crate) fn set_thread(&self, end: ThreadEnd) -> bool {
        let mut state = self.state.lock();
        let is_wanted = state.state == ProcessState::Ordered;
        if is_wanted {
            let _ = self.thread.set(end);
            state.state = ProcessState::Started;
        }
        is_wanted
    }

    /// Returns the end of a worker that is a thread of this process.
    pub(crate) fn thread(&self) -> Option<&ThreadEnd> {
        self.thread.get()
    }

    /// Makes the worker of a thread dead, whether or not the thread goes on.
    pub(crate) fn give_up_thread(&self, exit: Exit) {
        self.set_dead(Death::new(exit, String::new()));
        if let Some(end) = self.thread() {
            end.send();
        }
    }
}
