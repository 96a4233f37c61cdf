//! What is asked for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the cores of a lease lie to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Policy {
    /// An interval of the [topological order](crate::Topology::order), the first that is free.
    #[default]
    Contiguous,
    /// As few NUMA nodes and caches as possible, in the group where the least is left over.
    Compact,
    /// As many packages, NUMA nodes, caches and cores as possible, evenly: for the most memory bandwidth and cache.
    Scatter,
}

/// What is counted, and whether hardware threads of one core may go to different leases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Smt {
    /// Counts hardware threads; those of one core may go to different leases.
    #[default]
    Share,
    /// Counts physical cores; the lease has all hardware threads of each that the pool has.
    Whole,
    /// Counts physical cores; the lease has the first hardware thread of each, the others stay idle.
    Isolate,
}

/// Cores of which kind, on a machine with several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoreKind {
    /// The fastest kind; all cores of a machine that has one kind.
    Performance,
    /// All other kinds; no core of a machine that has one kind.
    Efficient,
}

/// A number of cores and how they shall lie.
///
/// ```
/// use brigade_cores::{CoreRequest, Policy};
///
/// let request = CoreRequest::new(4).policy(Policy::Compact).whole_cores().numa_node(1);
/// assert_eq!(request.to_string(), "4 whole cores (compact, strict) on NUMA node 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[must_use]
pub struct CoreRequest {
    pub(crate) count: usize,
    #[serde(default)]
    pub(crate) policy: Policy,
    #[serde(default)]
    pub(crate) smt: Smt,
    #[serde(default)]
    pub(crate) best_effort: bool,
    #[serde(default)]
    pub(crate) kind: Option<CoreKind>,
    #[serde(default)]
    pub(crate) numa_node: Option<u32>,
}

impl CoreRequest {
    /// `count` hardware threads, contiguous and strict. With 0 it is refused when it is made.
    pub fn new(count: usize) -> Self {
        Self {
            count,
            policy: Policy::default(),
            smt: Smt::default(),
            best_effort: false,
            kind: None,
            numa_node: None,
        }
    }

    /// How the cores shall lie to each other.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// What is counted.
    pub fn smt(self, smt: Smt) -> Self {
        Self { smt, ..self }
    }

    /// Physical cores with all their hardware threads: [`Smt::Whole`].
    pub fn whole_cores(self) -> Self {
        self.smt(Smt::Whole)
    }

    /// Physical cores with one hardware thread each, the others idle: [`Smt::Isolate`].
    pub fn one_thread_per_core(self) -> Self {
        self.smt(Smt::Isolate)
    }

    /// Takes a worse placement rather than wait for a good one: several intervals, more nodes, less spread.
    ///
    /// Without it a request is *strict*: contiguous cores are one interval; compact ones are in no more packages, NUMA nodes and
    /// L3 caches, and scattered ones in no fewer, than they would be if the whole pool were free. Count, kind, node and what is
    /// counted hold either way.
    pub fn best_effort(self) -> Self {
        Self { best_effort: true, ..self }
    }

    /// Cores of one kind only.
    pub fn kind(self, kind: CoreKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Cores of one NUMA node only, by the kernel's number.
    pub fn numa_node(self, node: u32) -> Self {
        Self { numa_node: Some(node), ..self }
    }

    /// How many are asked for.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether it waits for a good placement.
    pub fn is_strict(&self) -> bool {
        !self.best_effort
    }
}

impl fmt::Display for CoreRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.smt {
            Smt::Share => "cpu",
            Smt::Whole => "whole core",
            Smt::Isolate => "core without its siblings",
        };
        let plural = if self.count == 1 || self.smt == Smt::Isolate { "" } else { "s" };
        let policy = match self.policy {
            Policy::Contiguous => "contiguous",
            Policy::Compact => "compact",
            Policy::Scatter => "scattered",
        };
        let strict = if self.best_effort { "best effort" } else { "strict" };
        write!(f, "{} {unit}{plural} ({policy}, {strict})", self.count)?;
        match self.kind {
            Some(CoreKind::Performance) => f.write_str(" of the fastest kind")?,
            Some(CoreKind::Efficient) => f.write_str(" of an efficient kind")?,
            None => {}
        }
        self.numa_node.map_or(Ok(()), |node| write!(f, " on NUMA node {node}"))
    }
}
