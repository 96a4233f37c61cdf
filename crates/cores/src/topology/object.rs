//! The parts of a topology.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cpu_set::CpuSet;

brigade_sys::named! {
    /// The level of a group: what its cpus share, the closest level first.
    ///
    /// This is the usual order. On machines with several NUMA nodes below one L3 cache, those two
    /// are swapped.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[non_exhaustive]
    pub enum Level, fn name {
        /// A physical core. Its cpus are hardware threads that share everything.
        Core = "core",
        /// A second-level cache.
        L2 = "L2 cache",
        /// Cores that the firmware calls a cluster. Most share a cache or its tags.
        Cluster = "cluster",
        /// A third-level cache.
        L3 = "L3 cache",
        /// A die, in a package with several.
        Die = "die",
        /// A NUMA node, with local memory.
        NumaNode = "NUMA node",
        /// A socket.
        Package = "package",
        /// Sockets mounted together, on mainframes.
        Book = "book",
        /// Books mounted together, on mainframes.
        Drawer = "drawer",
        /// The whole machine.
        Machine = "machine",
    }
}

/// A group of cpus that share something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Object {
    /// The level of the group.
    pub level: Level,
    /// The kernel's number; unique only for NUMA nodes (core numbers repeat in each package).
    pub id: Option<u32>,
    /// The usable cpus; empty for memory without cpus.
    pub cpus: CpuSet,
    /// The size of a cache in KiB.
    #[serde(default)]
    pub size_kib: Option<u64>,
    /// `true` if its memory may be used; `false` only for NUMA nodes that the cpuset forbids.
    #[serde(default = "yes")]
    pub memory: bool,
}

fn yes() -> bool {
    true
}

impl Object {
    pub(crate) fn new(level: Level, id: Option<u32>, cpus: CpuSet) -> Self {
        Self { level, id, cpus, size_kib: None, memory: true }
    }
}

/// Number of parts of each level that the machine describes; the same numbers as hwloc's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Counts {
    /// Usable cpus: hardware threads.
    pub units: usize,
    /// Physical cores.
    pub cores: usize,
    /// Third-level caches.
    pub l3_caches: usize,
    /// Sockets.
    pub packages: usize,
    /// NUMA nodes whose memory may be used, including those without cpus; at least 1.
    pub numa_nodes: usize,
}

/// A limit on processor time per period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CpuQuota {
    /// Microseconds of processor time in each period.
    pub quota_us: u64,
    /// Length of a period in microseconds.
    pub period_us: u64,
}

impl CpuQuota {
    /// Returns the limit in thousandths of a cpu.
    pub fn millicpus(self) -> u64 {
        self.quota_us.saturating_mul(1_000) / self.period_us.max(1)
    }

    /// Returns the number of cpus that can be kept busy all the time; at least 1.
    pub fn whole_cpus(self) -> usize {
        usize::try_from(self.millicpus() / 1_000).unwrap_or(usize::MAX).max(1)
    }
}

impl fmt::Display for CpuQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millicpus = self.millicpus();
        write!(f, "{}.{:03} cpus", millicpus / 1_000, millicpus % 1_000)
    }
}

/// A problem with a machine's description: data that was unreadable, contradictory, or had to be
/// guessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// A file below the root folder, or a part of the machine.
    pub subject: String,
    /// The problem, and how it was handled.
    pub problem: String,
}

impl Warning {
    pub(crate) fn new(subject: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self { subject: subject.into(), problem: problem.to_string() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.problem)
    }
}
