//! Pauses the run: Ctrl-Z must stop the jobs as well, which are not in the terminal's group.
//!
//! The driver stops the time of the machine meanwhile, so that no limit passes.

use brigade_sys::process::Signal;

use super::{Action, Machine};

impl Machine {
    /// Handles a request to pause.
    pub(crate) fn suspend(&mut self) {
        self.signal_all(Signal::Stop);
        self.actions.push_back(Action::Suspend);
    }

    /// Handles the end of the pause.
    pub(crate) fn resumed(&mut self) {
        self.signal_all(Signal::Continue);
    }
}
