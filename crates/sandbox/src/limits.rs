//! Limits on the resources of a worker and its tasks.

use std::time::Duration;

use brigade_sys::resource_limit::{self, Limited, highest};

use crate::limit::Limit;

/// Limits on what a worker and its tasks may take. Without a call, there is no limit.
///
/// A task that exceeds its memory, its processor time, the size of a file or the stack ends with
/// its worker, and its error names the limit. More descriptors or processes are an ordinary error
/// of the call that asked for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Limits {
    pub(crate) memory: Option<u64>,
    pub(crate) cpu_time: Option<Duration>,
    pub(crate) open_files: Option<u64>,
    pub(crate) file_size: Option<u64>,
    pub(crate) processes: Option<u64>,
    pub(crate) stack: Option<u64>,
    pub(crate) core_size: Option<u64>,
}

impl Limits {
    /// Returns no limits.
    pub fn new() -> Self {
        Self::default()
    }
}

brigade_sys::setters! {
    impl Limits;

    /// Limits the memory of a task, in bytes above what its worker had when it became ready.
    ///
    /// In a control group, the kernel enforces it exactly, shared pages and the processes that the
    /// task starts included. Elsewhere the kernel limits the private memory of the worker, so that
    /// an allocation fails, and the pool looks at the rest while a task runs. The pool's report
    /// says which holds.
    pub fn memory(self, bytes: u64) { self.memory = Some(bytes) }

    /// Limits the processor time of a task, that of all its threads together. Time in which it
    /// waits does not count, so that no task ends early on a machine that is busy.
    pub fn cpu_time(self, time: Duration) { self.cpu_time = Some(time) }

    /// Limits the descriptors that a worker may have open at a time.
    pub fn open_files(self, count: u64) { self.open_files = Some(count) }

    /// Limits the bytes of each file that a task writes to.
    pub fn file_size(self, bytes: u64) { self.file_size = Some(bytes) }

    /// Limits the processes and threads of a worker, with its own.
    ///
    /// Needs a control group, because the limit that the kernel offers elsewhere counts all
    /// processes of a user, and none of root.
    pub fn processes(self, count: u64) { self.processes = Some(count) }

    /// Limits the stack of the thread that runs tasks, in bytes.
    pub fn stack(self, bytes: u64) { self.stack = Some(bytes) }

    /// Limits core dumps, in bytes; 0 for none.
    pub fn core_size(self, bytes: u64) { self.core_size = Some(bytes) }
}

impl Limits {
    /// Returns the limit on memory in bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory
    }

    /// Returns the limit on processor time.
    pub fn cpu_time_limit(&self) -> Option<Duration> {
        self.cpu_time
    }

    /// Returns the limit on processes.
    pub fn process_limit(&self) -> Option<u64> {
        self.processes
    }

    /// Returns the limit on the size of files.
    pub fn file_size_limit(&self) -> Option<Limit> {
        self.file_size.map(Limit::FileSize)
    }

    /// Returns the limit on the stack.
    pub fn stack_limit(&self) -> Option<Limit> {
        self.stack.map(Limit::Stack)
    }

    /// Checks that each limit can be set. The error is a part of a sentence that names it.
    ///
    /// # Errors
    /// If a limit is 0 and nothing could run, or above what this process may set.
    pub fn check(&self) -> Result<(), String> {
        let least = [
            ("memory", self.memory, 1 << 20),
            ("open_files", self.open_files, 8),
            ("processes", self.processes, 1),
            ("stack", self.stack, 64 << 10),
            ("cpu_time", self.cpu_time.map(|time| u64::from(!time.is_zero())), 1),
        ];
        for (name, limit, least) in least {
            if limit.is_some_and(|limit| limit < least) {
                return Err(format!("`{name}` must be at least {least}, or nothing could run"));
            }
        }
        for (name, limited, limit) in self.of_process() {
            if let Some(most) = highest(limited).filter(|most| *most < limit) {
                return Err(format!(
                    "`{name}` is {limit}, but this process may set at most {most}; see `ulimit -H`"
                ));
            }
        }
        Ok(())
    }

    /// Sets the limits that the kernel has for single processes.
    ///
    /// # Errors
    /// A part of a sentence that names the limit and the problem.
    pub fn set(&self, pid: u32) -> Result<(), String> {
        self.of_process().into_iter().try_for_each(|(name, limited, limit)| {
            resource_limit::set(pid, limited, limit, true)
                .map_err(|error| format!("its limit `{name}` cannot be set: {error}"))
        })
    }

    /// Returns the limits that the kernel has for single processes.
    pub fn of_process(&self) -> Vec<(&'static str, Limited, u64)> {
        let all = [
            ("open_files", Limited::OpenFiles, self.open_files),
            ("file_size", Limited::FileSize, self.file_size),
            ("stack", Limited::Stack, self.stack),
            ("core_size", Limited::Core, self.core_size),
        ];
        let set = all.into_iter();
        set.filter_map(|(name, limited, limit)| Some((name, limited, limit?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_with_which_nothing_could_run_are_named() {
        for (limits, name) in [
            (Limits::new().memory(0), "memory"),
            (Limits::new().open_files(2), "open_files"),
            (Limits::new().processes(0), "processes"),
            (Limits::new().stack(1), "stack"),
            (Limits::new().cpu_time(Duration::ZERO), "cpu_time"),
        ] {
            let problem = limits.check().unwrap_err();
            assert!(problem.contains(name), "{problem}");
        }
        Limits::new().memory(1 << 20).core_size(0).check().unwrap();
    }

    #[test]
    fn a_limit_above_our_own_is_named() {
        if let Some(most) = highest(Limited::OpenFiles).filter(|most| *most < u64::MAX) {
            let problem = Limits::new().open_files(most + 1).check().unwrap_err();
            assert!(problem.contains("open_files"), "{problem}");
        }
    }
}
