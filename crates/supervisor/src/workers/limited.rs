//! The limits of a worker that is ready: how the kernel enforces them, and what the worker uses.
//!
//! The worker enters its control group before its program is executed, and the limits are set when
//! it is ready, above what it has used until then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brigade_sandbox::{Group, Limit, Limits};
use brigade_sys::clock::cpu_time_of;
use brigade_sys::memory::{private_of, resident_of, threads_of};
use brigade_sys::resource_limit::{self, Limited as Resource};

use crate::workers::settings::Settings;

/// The limits of a worker.
///
/// Its memory is limited in a control group of its own, in which everything counts that it uses
/// from now on. Without one, the kernel limits its private memory, and the owner has to look at the
/// rest.
#[derive(Debug)]
pub struct Limited {
    pid: u32,
    limits: Limits,
    group: Option<Group>,
    /// The limit on memory that holds now, in bytes; 0 for none.
    memory: AtomicU64,
    /// The bytes of the worker when the limit was set: those of its group, or the resident ones.
    before: AtomicU64,
    /// Number of threads of the worker when it was ready.
    threads: u64,
}

/// Number of looks at the threads of a worker that has too many: one that has ended may be seen for
/// some time.
const LOOKS: u32 = 16;

impl Limited {
    /// Makes the limits of the settings hold for a process.
    pub(crate) fn enforce(
        settings: &Settings,
        pid: u32,
        group: Option<Group>,
    ) -> Result<Self, String> {
        let limits = settings.limits;
        // A worker with a sandbox sets them when it enters that, which takes descriptors.
        settings.sandbox.as_ref().map_or_else(|| limits.set(pid), |_| Ok(()))?;
        if let (Some(group), Some(count)) = (&group, limits.process_limit()) {
            let set = group.set_processes(count);
            set.map_err(|error| format!("its limit `processes` cannot be set: {error}"))?;
        }
        let (memory_now, before) = (AtomicU64::new(0), AtomicU64::new(0));
        let threads = threads_of(pid).unwrap_or(u64::MAX);
        let limited = Self { pid, limits, group, memory: memory_now, before, threads };
        if let Some(memory) = limits.memory_limit() {
            let set = limited.limit_memory(memory);
            set.map_err(|error| format!("its limit `memory` cannot be set: {error}"))?;
        }
        Ok(limited)
    }

    /// Limits the memory above what the worker has now, which is idle.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn limit_memory(&self, bytes: u64) -> std::io::Result<()> {
        self.memory.store(bytes, Ordering::Relaxed);
        match &self.group {
            Some(group) if group.limits_memory() => {
                let used = group.memory_used().unwrap_or(0);
                self.before.store(used, Ordering::Relaxed);
                group.set_memory(used.saturating_add(bytes))
            }
            _ => {
                self.before.store(resident_of(self.pid)?, Ordering::Relaxed);
                let limit = private_of(self.pid)?.saturating_add(bytes);
                // Not the last word: the next task may have a higher limit.
                resource_limit::set(self.pid, Resource::Data, limit, false)
            }
        }
    }

    /// Limits the memory of the next task, unless that limit holds already. The worker is idle.
    ///
    /// # Errors
    /// As [`limit_memory`](Self::limit_memory).
    pub fn prepare_for(&self, memory: Option<u64>) -> std::io::Result<()> {
        let wanted = memory.or(self.limits.memory_limit()).unwrap_or(u64::MAX >> 12);
        if memory.is_none() && self.memory.load(Ordering::Relaxed) == wanted {
            return Ok(());
        }
        self.limit_memory(wanted)
    }

    /// Returns `true` if the worker, which has ended a task, has more threads than it had when it
    /// was ready: what they take would be charged to the next task.
    pub fn has_left_threads(&self) -> bool {
        (0..LOOKS).all(|_| threads_of(self.pid).is_ok_and(|now| now > self.threads))
    }

    /// Returns `true` if the kernel enforces the limit on memory, and nobody has to look.
    pub fn kernel_limits_memory(&self) -> bool {
        self.group.as_ref().is_some_and(Group::limits_memory)
    }

    /// Returns the processor time that the worker has taken.
    pub fn cpu_time(&self) -> Option<Duration> {
        cpu_time_of(self.pid)
    }

    /// Returns the resident bytes above those that the worker had when its limit was set.
    pub fn resident(&self) -> u64 {
        let before = self.before.load(Ordering::Relaxed);
        resident_of(self.pid).unwrap_or(0).saturating_sub(before)
    }

    /// Returns the limit on memory that holds, and the most that was used, if the kernel has killed
    /// a process because of it.
    pub(crate) fn killed_for_memory(&self) -> Option<(Limit, Option<Limit>)> {
        let group = self.group.as_ref().filter(|group| group.killed_for_memory() > 0)?;
        let memory = self.memory.load(Ordering::Relaxed);
        let limit = Limit::Memory(memory);
        let before = self.before.load(Ordering::Relaxed);
        // An earlier task with a higher limit may have used more.
        let used = group.most_memory_used().map(|most| most.saturating_sub(before).min(memory));
        Some((limit, used.map(Limit::Memory)))
    }

    /// Returns the limit that an allocation of this size has failed for: one on private memory
    /// makes allocations fail, and without one the machine refuses what is larger than any limit.
    pub(crate) fn limit_of_allocation(&self, bytes: Option<u64>) -> Option<Limit> {
        let memory = self.memory.load(Ordering::Relaxed);
        let fails = !self.kernel_limits_memory() || bytes.is_some_and(|bytes| bytes > memory);
        (memory > 0 && fails).then_some(Limit::Memory(memory))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
}
