//! The rights and resources that jobs do without.

use std::fs::File;
use std::io;
use std::time::Duration;

use brigade_sandbox::{
    CPU_OF_JOBS, Group, Groups, Layer, Limit, Limits, NO_GROUP, SandboxError, SandboxReport,
};
use brigade_sys::confine::Restrictions;
use brigade_sys::process::{Ended, Exit};
use brigade_sys::resource_limit::Limited;

/// The rights and resources that a job does without, it and everything that it starts.
///
/// It is made once for any number of jobs.
#[derive(Debug)]
pub struct Confinement {
    sandbox: Option<Restrictions>,
    limits: Limits,
    /// The limits of each process.
    own: Vec<(Limited, u64)>,
    groups: Groups,
    report: SandboxReport,
}

/// A confined job that runs.
#[derive(Debug, Default)]
pub(crate) struct Confined {
    group: Option<Group>,
    limits: Limits,
}

const SIGKILL: i32 = 9;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;

impl Confinement {
    /// Makes a confinement that limits resources only.
    ///
    /// # Errors
    /// If a limit is not possible here; the error names it.
    pub fn new(limits: Limits) -> Result<Self, SandboxError> {
        let wrong = |problem| SandboxError::Limit { problem };
        limits.check().map_err(wrong)?;
        let (memory, processes) = (limits.memory_limit(), limits.process_limit());
        let groups = if memory.is_some() || processes.is_some() {
            Groups::find()
        } else {
            Groups::default()
        };
        let mut report = SandboxReport::default();
        let of_process = limits.of_process();
        let mut own: Vec<_> =
            of_process.iter().map(|(_, limited, limit)| (*limited, *limit)).collect();
        match (memory, groups.memory_means()) {
            (None, _) => {}
            (Some(_), Some(means)) => report.enforced(Layer::Memory, means),
            (Some(bytes), None) => {
                own.push((Limited::Data, bytes));
                report.partly(Layer::Memory, "RLIMIT_DATA: private memory of each process");
            }
        }
        if let Some(time) = limits.cpu_time_limit() {
            own.push((Limited::CpuTime, whole_seconds(time)));
            report.enforced(Layer::CpuTime, CPU_OF_JOBS);
        }
        if processes.is_some() {
            let means = groups.process_means();
            let means = means
                .ok_or_else(|| wrong(format!("`processes` cannot be enforced: {NO_GROUP}")))?;
            report.enforced(Layer::ProcessCount, means);
        }
        Ok(Self { sandbox: None, limits, own, groups, report })
    }

    /// Adds a sandbox, in which programs are executed: they may read themselves and their
    /// libraries, and start others.
    ///
    /// # Errors
    /// If a path cannot be opened, or this machine cannot enforce a part of it; the error says
    /// which.
    #[cfg(feature = "sandbox")]
    pub fn sandbox(mut self, sandbox: brigade_sandbox::Sandbox) -> Result<Self, SandboxError> {
        let prepared = sandbox.for_program().prepare()?;
        self.report.extend(prepared.report.clone());
        self.sandbox = Some(prepared.into_restrictions()?);
        Ok(self)
    }

    /// Returns what of it holds on this machine, layer by layer.
    pub fn report(&self) -> &SandboxReport {
        &self.report
    }

    /// Prepares the start of a job. Returns what is kept while it runs, and the files through which
    /// it enters its groups.
    pub(crate) fn begin(&self) -> io::Result<(Confined, Vec<File>)> {
        let group = self.groups.serve(&self.limits).then(|| self.groups.create(&self.limits));
        let group = group.transpose()?;
        if let Some(group) = &group {
            self.limits.memory_limit().map_or(Ok(()), |bytes| group.set_memory(bytes))?;
            self.limits.process_limit().map_or(Ok(()), |count| group.set_processes(count))?;
        }
        let doors = group.as_ref().map_or(Ok(Vec::new()), Group::doors)?;
        Ok((Confined { group, limits: self.limits }, doors))
    }

    /// Returns the part that a program gets as it is executed.
    pub(crate) fn of_launch<'a>(
        &'a self,
        doors: &'a [File],
    ) -> brigade_sys::launch::Confinement<'a> {
        let sandbox = self.sandbox.as_ref();
        brigade_sys::launch::Confinement { doors, limits: &self.own, sandbox }
    }
}

/// The kernel counts whole seconds.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

impl Confined {
    /// Returns the limit that the job has exceeded, if that is why it ended, or if one of its
    /// processes was killed for memory: a shell may have gone on without its result.
    pub(crate) fn exceeded(&self, ended: &Ended) -> Option<Limit> {
        let memory = self.limits.memory_limit().map(Limit::Memory);
        let is_killed = self.group.as_ref().is_some_and(|group| group.killed_for_memory() > 0);
        if let Some(limit) = memory.filter(|_| is_killed) {
            return Some(limit);
        }
        // A shell exits with 128 and the signal of its command.
        let by = |signal| [Exit::Signal(signal), Exit::Code(128 + signal)].contains(&ended.exit);
        // The time is that of all processes together, of which each may use as much.
        let used = ended.usage.user + ended.usage.system;
        if by(SIGXFSZ) {
            return self.limits.file_size_limit();
        }
        let time = self.limits.cpu_time_limit()?;
        (by(SIGXCPU) || (by(SIGKILL) && used >= time)).then_some(Limit::CpuTime(time))
    }
}

#[cfg(test)]
mod tests {
    use brigade_sys::process::Usage;

    use super::*;

    #[test]
    fn only_a_signal_tells_of_a_limit() {
        let limit = Duration::from_secs(1);
        let limits = Limits::new().cpu_time(limit).file_size(1 << 20);
        let confined = Confined { group: None, limits };
        let exceeded = |exit, seconds| {
            let usage = Usage { user: Duration::from_secs(seconds), ..Usage::default() };
            confined.exceeded(&Ended { exit, usage })
        };
        for code in [0, 1, 2] {
            assert_eq!(exceeded(Exit::Code(code), 2), None, "its children used a second each");
        }
        for end in [Exit::Signal, |signal| Exit::Code(128 + signal)] {
            assert_eq!(exceeded(end(SIGXCPU), 1), Some(Limit::CpuTime(limit)));
            assert_eq!(exceeded(end(SIGKILL), 2), Some(Limit::CpuTime(limit)));
            assert_eq!(exceeded(end(SIGKILL), 0), None);
            assert_eq!(exceeded(end(SIGXFSZ), 0), limits.file_size_limit());
            assert!(exceeded(end(SIGXFSZ), 0).is_some());
        }
    }
}
