//! Handles workers that have crashed and are about to end, or that the kernel has killed.

use std::sync::Arc;
use std::time::Duration;

use brigade_crash::CrashReport;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::memory_limit::out_of_memory_kills;
use brigade_sys::process::{Exit, Process};

use super::ReaperThread;
use crate::workers::supervised::Supervised;
use crate::workers::threads::cleaner;
use crate::workers::worker_process::WorkerProcess;

/// A worker that has announced a crash ends within this time, or is killed: it may have lied. Twice
/// the time slice of a machine on which dozens of threads wait for each processor.
const CRASH_TAKES: Duration = Duration::from_secs(1);

/// A core dump may take this many times as long.
const DUMP_TAKES: u32 = 60;

/// The signal of a kill.
const SIGKILL: i32 = 9;

/// A crash that a worker has announced.
#[derive(Clone, Copy)]
pub(super) struct Crash {
    /// Then the process is killed, unless its core is being dumped.
    pub(super) until: Monotonic,
    /// Number of times that the end was waited for.
    waited: u32,
}

impl<S: Supervised> ReaperThread<'_, S> {
    /// Handles the notice of a crash. The process ends by itself, so that its exit status and a
    /// core dump are what they are without us.
    pub(super) fn crashed(&mut self, token: u64, signal: i32) {
        let Some(entry) = self.watched.get_mut(&token) else { return };
        entry.crash = Some(Crash { until: now().saturating_add(CRASH_TAKES), waited: 0 });
        let process = Arc::clone(&entry.process);
        if let Some(process) = process.process() {
            process.make_way();
        }
        if self.owner.crashed(&process) {
            process.allow_early_report(Exit::Signal(signal));
        }
    }

    /// Kills workers that go on after they have announced a crash.
    pub(super) fn end_crashed(&mut self) {
        let now = now();
        let is_dumping = |it: &WorkerProcess| it.process().is_some_and(Process::is_dumping_core);
        for entry in self.watched.values_mut() {
            let Some(crash) = entry.crash.as_mut().filter(|crash| crash.until <= now) else {
                continue;
            };
            crash.waited += 1;
            if crash.waited < DUMP_TAKES && is_dumping(&entry.process) {
                crash.until = now.saturating_add(CRASH_TAKES);
            } else {
                entry.crash = None;
                cleaner::kill_later(self.owner, &entry.process, false);
            }
        }
    }

    /// Returns the report of a worker that the kernel has killed because memory ran out, according
    /// to the events of its control group.
    pub(super) fn killed_for_memory(
        &mut self,
        process: &WorkerProcess,
        exit: Exit,
    ) -> Option<CrashReport> {
        if exit != Exit::Signal(SIGKILL) || process.is_killed() {
            return None;
        }
        let now = out_of_memory_kills();
        let before = std::mem::replace(&mut self.out_of_memory, now);
        (now? > before?).then(CrashReport::out_of_memory)
    }
}
