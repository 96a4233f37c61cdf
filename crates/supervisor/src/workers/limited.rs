//! The limits of a worker that is ready: how the kernel enforces them, and what the worker uses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brigade_sandbox::{Group, Limit, Limits};
use brigade_sys::clock::cpu_time_of;
use brigade_sys::memory::{private_of, resident_of};
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
    /// The resident bytes of the worker when the limit was set.
    resident: AtomicU64,
}

impl Limited {
    /// Makes the limits of the settings hold for a process.
    pub(crate) fn enforce(settings: &Settings, pid: u32) -> Result<Self, String> {
        let (limits, groups) = (settings.limits, &settings.groups);
        limits.set(pid)?;
        let (memory, processes) = (limits.memory_limit(), limits.process_limit());
        let in_group = memory.is_some() && groups.memory_means().is_some();
        let group = if in_group || processes.is_some() {
            let group = groups.create(memory, processes).and_then(|group| {
                group.add(pid)?;
                Ok(group)
            });
            Some(group.map_err(|error| format!("its control group cannot be made: {error}"))?)
        } else {
            None
        };
        let (memory_now, resident) = (AtomicU64::new(0), AtomicU64::new(0));
        let limited = Self { pid, limits, group, memory: memory_now, resident };
        if let Some(memory) = memory {
            limited
                .limit_memory(memory)
                .map_err(|error| format!("its limit `memory` cannot be set: {error}"))?;
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
                group.set_memory(group.memory_used().unwrap_or(0).saturating_add(bytes))
            }
            _ => {
                self.resident.store(resident_of(self.pid)?, Ordering::Relaxed);
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
        let before = self.resident.load(Ordering::Relaxed);
        resident_of(self.pid).unwrap_or(0).saturating_sub(before)
    }

    /// Returns the limit on memory that holds, and the most that was used, if the kernel has killed
    /// a process because of it.
    pub(crate) fn killed_for_memory(&self) -> Option<(Limit, Option<Limit>)> {
        let group = self.group.as_ref().filter(|group| group.killed_for_memory() > 0)?;
        let limit = Limit::Memory(self.memory.load(Ordering::Relaxed));
        Some((limit, group.most_memory_used().map(Limit::Memory)))
    }

    /// Returns the limit on private memory, which makes allocations fail.
    pub(crate) fn private_limit(&self) -> Option<Limit> {
        let memory = self.memory.load(Ordering::Relaxed);
        (memory > 0 && !self.kernel_limits_memory()).then_some(Limit::Memory(memory))
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
}
