//! Programs whose groups end with this process, even by SIGKILL.

use std::io;

use brigade_sys::guardian::Guardian;
use brigade_sys::launch::LaunchError;
use brigade_sys::process::{Ended, Process};

use crate::command_line::CommandLine;
use crate::error::ContainsNul;
use crate::launcher::{LaunchSettings, Launcher, Prepared};

/// A launcher with a guardian, which knows the group of the program in each slot.
///
/// Drop it after the processes.
#[derive(Debug)]
pub struct GuardedLauncher {
    launcher: Launcher,
    guardian: Guardian,
}

impl GuardedLauncher {
    /// Starts the guardian, which should be the first of all processes: it is a copy of this one.
    /// `mark` is an entry of the environment of all programs and of no other process.
    ///
    /// # Errors
    /// If no memory or no process is left, or the mark is too long.
    pub fn new(launcher: Launcher, slots: usize, mark: &str) -> io::Result<Self> {
        Ok(Self { launcher, guardian: Guardian::start(slots, mark)? })
    }

    /// Like [`Launcher::prepare`].
    ///
    /// # Errors
    /// Like [`Launcher::prepare`].
    pub fn prepare<'a>(&mut self, line: &'a CommandLine) -> Result<Prepared<'a>, ContainsNul> {
        self.launcher.prepare(line)
    }

    /// Starts a program in a slot, and returns once it is executing.
    ///
    /// # Errors
    /// Like [`Launcher::launch`].
    pub fn launch(
        &mut self,
        slot: usize,
        prepared: &Prepared<'_>,
        start: &LaunchSettings<'_>,
    ) -> Result<Process, LaunchError> {
        self.launcher.launch_in(self.guardian.slot(slot), prepared, start)
    }

    /// Kills the group in a slot and reaps its leader, if that has ended.
    ///
    /// # Errors
    /// If somebody else has reaped the leader.
    pub fn try_end(&self, slot: usize, process: &Process) -> io::Result<Option<Ended>> {
        let ended = process.try_end(self.guardian.slot(slot));
        if ended.is_err() {
            self.clear(slot);
        }
        ended
    }

    /// Makes the guardian forget the group in a slot, which has ended.
    pub fn clear(&self, slot: usize) {
        if let Some(slot) = self.guardian.slot(slot) {
            slot.clear();
        }
    }

    /// Returns the guardian.
    pub fn guardian(&self) -> &Guardian {
        &self.guardian
    }

    /// Replaces a guardian that was killed.
    ///
    /// # Errors
    /// If no process is left.
    pub fn restart_guardian(&mut self) -> io::Result<()> {
        self.guardian.restart()
    }
}
