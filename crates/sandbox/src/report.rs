//! The report of what holds on this machine, layer by layer.

use std::fmt;

use brigade_sys::confine::{Confinement, Isolation};

use crate::group::Groups;
use crate::sandbox::{Level, Sandbox};

brigade_sys::named! {
    /// A kind of rights or resources that a sandbox or a limit takes away.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Layer, fn name {
        /// Files and folders.
        Files = "files",
        /// Sockets, and connections to other machines.
        Network = "network",
        /// Signals to other processes, and access to their memory.
        Processes = "other processes",
        /// System calls.
        Calls = "system calls",
        /// Capabilities, and rights that programs would give.
        Privileges = "privileges",
        /// Variables of the environment.
        Environment = "environment",
        /// Namespaces of its own.
        Namespaces = "namespaces",
        /// The limit on memory.
        Memory = "memory",
        /// The limit on processor time.
        CpuTime = "processor time",
        /// The limit on processes.
        ProcessCount = "number of processes",
    }
}

/// The state of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// It is enforced, by the means that the text names.
    Enforced(String),
    /// It is enforced only in part, as the text says.
    Partly(String),
    /// It cannot be enforced, for the reason in the text.
    Missing(String),
}

/// The layers of a sandbox and its limits, and whether they hold. Layers that were not asked for
/// are not in it.
///
/// Its text has a line for each layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxReport {
    holds: Vec<(Layer, Hold)>,
}

impl SandboxReport {
    pub(crate) fn add(&mut self, layer: Layer, hold: Hold) {
        self.holds.retain(|(other, _)| *other != layer);
        self.holds.push((layer, hold));
        self.holds.sort_by_key(|(layer, _)| *layer);
    }

    /// Adds a layer that is enforced by these means.
    #[doc(hidden)]
    pub fn enforced(&mut self, layer: Layer, means: impl Into<String>) {
        self.add(layer, Hold::Enforced(means.into()));
    }

    /// Adds a layer that is enforced in part.
    #[doc(hidden)]
    pub fn partly(&mut self, layer: Layer, means: impl Into<String>) {
        self.add(layer, Hold::Partly(means.into()));
    }

    /// Adds a layer that is not enforced.
    #[doc(hidden)]
    pub fn missing(&mut self, layer: Layer, reason: impl Into<String>) {
        self.add(layer, Hold::Missing(reason.into()));
    }

    /// Adds whether this process may make these namespaces, and returns that.
    pub(crate) fn try_isolation(&mut self, isolation: &Isolation) -> bool {
        let plan = Confinement { isolation: Some(isolation.clone()), ..Confinement::default() };
        let made = plan.restrictions(None).probe();
        match &made {
            Ok(Ok(())) => {
                let network = if isolation.network { ", networks" } else { "" };
                let files = if isolation.files.is_some() { ", files" } else { "" };
                self.enforced(Layer::Namespaces, format!("System V IPC{network}{files}"));
            }
            Err(error) | Ok(Err((_, error))) => self.missing(
                Layer::Namespaces,
                format!(
                    "this user may not make namespaces here: {error}; see \
                     /proc/sys/user/max_user_namespaces, and rules of AppArmor or of the container"
                ),
            ),
        }
        matches!(made, Ok(Ok(())))
    }

    /// Adds the layers of another report.
    #[doc(hidden)]
    pub fn extend(&mut self, other: Self) {
        self.holds.extend(other.holds);
        self.holds.sort_by_key(|(layer, _)| *layer);
    }

    /// Returns the layers that this machine can enforce for this user, and those that it cannot,
    /// whatever is asked for.
    pub fn of_this_machine() -> Self {
        let mut report = Self::default();
        match Sandbox::read_only().best_effort().prepare() {
            Ok(prepared) => report.extend(prepared.report),
            Err(error) => report.missing(Layer::Files, error.to_string()),
        }
        report.try_isolation(&Isolation { network: true, files: Some(Vec::new()) });
        let groups = Groups::find();
        match groups.memory_means() {
            Some(means) => report.enforced(Layer::Memory, means),
            None => report.partly(Layer::Memory, WATCHED),
        }
        match groups.process_means() {
            Some(means) => report.enforced(Layer::ProcessCount, means),
            None => report.missing(Layer::ProcessCount, NO_GROUP),
        }
        report.enforced(Layer::CpuTime, CPU_MEANS);
        report
    }

    /// Returns whether a layer holds; `None` if it was not asked for.
    pub fn get(&self, layer: Layer) -> Option<&Hold> {
        self.holds.iter().find(|(other, _)| *other == layer).map(|(_, hold)| hold)
    }

    /// Returns all layers.
    pub fn iter(&self) -> impl Iterator<Item = (Layer, &Hold)> {
        self.holds.iter().map(|(layer, hold)| (*layer, hold))
    }

    /// Returns `true` if everything that was asked for is enforced.
    pub fn is_complete(&self) -> bool {
        !self.holds.iter().any(|(_, hold)| matches!(hold, Hold::Missing(_)))
    }

    /// Returns a sentence for each layer that does not hold.
    #[doc(hidden)]
    pub fn missing_layers(&self) -> Vec<String> {
        let missing = self.holds.iter().filter_map(|(layer, hold)| match hold {
            Hold::Missing(reason) => Some(format!("{} ({reason})", layer.name())),
            Hold::Enforced(_) | Hold::Partly(_) => None,
        });
        missing.collect()
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (layer, hold)) in self.holds.iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            let name = layer.name();
            match hold {
                Hold::Enforced(means) => write!(out, "{name}: {means}")?,
                Hold::Partly(means) => write!(out, "{name}: in part: {means}")?,
                Hold::Missing(reason) => write!(out, "{name}: NOT ENFORCED: {reason}")?,
            }
        }
        Ok(())
    }
}

/// Returns what holds of a sandbox on a kernel with this interface of Landlock, and perhaps with
/// filters of system calls.
pub(crate) fn report(sandbox: &Sandbox, landlock: u32, filters: bool) -> SandboxReport {
    let mut report = SandboxReport::default();
    let by_landlock = format!("Landlock, interface {landlock}");
    let lacks = |least, kernel| needs_landlock(least, landlock, kernel);
    let (has_level, strict) = (sandbox.level > Level::NoNetwork, sandbox.level == Level::Strict);
    if has_level && landlock >= FILES {
        report.enforced(Layer::Files, &by_landlock);
    } else if has_level {
        report.missing(Layer::Files, lacks(FILES, "6.2"));
    }
    let rights = match sandbox.level {
        Level::NoNetwork => "no_new_privs",
        Level::ReadOnly => "no_new_privs, and capabilities are dropped",
        Level::Strict => "no_new_privs, capabilities are dropped, and limits only fall",
    };
    report.enforced(Layer::Privileges, rights);
    if filters {
        report.enforced(Layer::Calls, "seccomp");
    } else {
        report.missing(Layer::Calls, NO_FILTERS);
    }
    let means = match (filters, sandbox.ports.is_empty(), landlock) {
        (false, ..) => Err(NO_FILTERS.to_owned()),
        (true, false, ..PORTS) => Err(lacks(PORTS, "6.7")),
        (true, false, _) => Ok(format!("seccomp; ports: {by_landlock}")),
        (true, true, ..PORTS) => Ok("seccomp".to_owned()),
        (true, true, _) => Ok(format!("seccomp; {by_landlock}")),
    };
    let is_alone = strict || sandbox.isolate && sandbox.ports.is_empty();
    match means {
        Err(reason) => report.missing(Layer::Network, reason),
        Ok(means) if is_alone || landlock >= SIGNALS => report.enforced(Layer::Network, means),
        Ok(means) => {
            let reason = lacks(SIGNALS, "6.12");
            let open = format!("{means}; abstract sockets of others are open: {reason}");
            report.partly(Layer::Network, open);
        }
    }
    match (landlock, strict && !sandbox.processes) {
        _ if !has_level => {}
        _ if !filters => report.missing(Layer::Processes, NO_FILTERS),
        (SIGNALS.., _) => report.enforced(Layer::Processes, format!("seccomp; {by_landlock}")),
        (_, true) => report.enforced(Layer::Processes, "seccomp"),
        _ => report.missing(Layer::Processes, lacks(SIGNALS, "6.12")),
    }
    if strict {
        report.enforced(Layer::Environment, "empty, but for what `env` sets");
    }
    report
}

/// The interface of Landlock that closes files against truncation, and its kernel: 6.2.
const FILES: u32 = 3;

/// The interface of Landlock that knows ports, and its kernel: 6.7.
pub(crate) const PORTS: u32 = 4;

/// The interface of Landlock that keeps signals inside, and its kernel: 6.12.
pub(crate) const SIGNALS: u32 = 6;

const NO_FILTERS: &str =
    "the kernel has no filters of system calls (seccomp), or refuses them to this process";

/// The means of the limit on memory where there is no control group.
pub const WATCHED: &str = "RLIMIT_DATA for private memory, and looks at the resident size";

/// The reason why there is no limit on processes.
pub const NO_GROUP: &str = "no control group that this user may divide has the controller; \
                            delegate one, as with `systemd-run --user --scope -p Delegate=yes`";

/// The means of the limit on processor time.
pub const CPU_MEANS: &str = "the clock of the worker's process, read by the host";

/// The means of the limit on processor time of jobs.
pub const CPU_OF_JOBS: &str = "RLIMIT_CPU of each process, in whole seconds";

/// Explains that an interface is too old.
fn needs_landlock(least: u32, version: u32, kernel: &str) -> String {
    if version == 0 {
        return format!(
            "the kernel has no Landlock, or it is switched off, or refuses more of it to this process; \
             {kernel} has what it takes"
        );
    }
    format!("needs Landlock interface {least} (Linux {kernel}), and this kernel has {version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_each_layer_once_and_in_order() {
        let mut report = SandboxReport::default();
        report.missing(Layer::Memory, "no reason");
        report.enforced(Layer::Files, "magic");
        assert_eq!(report.to_string(), "files: magic\nmemory: NOT ENFORCED: no reason");
        assert!(!report.is_complete());
        assert_eq!(report.missing_layers(), ["memory (no reason)"]);
        assert_eq!(report.get(Layer::Network), None);
    }

    #[test]
    fn this_machine_says_something_of_each_layer() {
        let report = SandboxReport::of_this_machine();
        assert!(report.iter().count() >= 8, "{report}");
    }
}
