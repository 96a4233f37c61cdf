//! Pauses the run: Ctrl-Z must stop the jobs as well, which are not in the terminal's group.
//!
//! The driver stops the time of the machine meanwhile, so that no limit passes.

use brigade_sys::process::Signal;

use super::{Action, Machine};

impl Machine {
    /// Handles a request to pause.
    pub(super) fn suspend(&mut self, out: &mut Vec<Action>) {
        self.signal_all(Signal::Stop, out);
        out.push(Action::Suspend);
    }
}
