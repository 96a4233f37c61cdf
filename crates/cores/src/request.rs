//! Requests for cores.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The placement of a lease's cores relative to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Policy {
    /// The first free interval of the [topological order](crate::Topology::order).
    #[default]
    Contiguous,
    /// As few NUMA nodes and caches as possible, in the group where the least is left over.
    Compact,
    /// As many packages, NUMA nodes, caches and cores as possible, evenly, for the most memory
    /// bandwidth and cache.
    Scatter,
}

/// The unit that a request counts, and the use of the hardware threads of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Smt {
    /// Counts hardware threads. Those of one core may go to different leases.
    #[default]
    Share,
    /// Counts physical cores. The lease gets all hardware threads of each that the pool has.
    Whole,
    /// Counts physical cores. The lease gets the first hardware thread of each; the others stay
    /// idle.
    Isolate,
}

/// A kind of core, on a machine with several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CoreKind {
    /// The fastest kind; every core of a machine with a single kind.
    Performance,
    /// All other kinds; no core of a machine with a single kind.
    Efficient,
}

/// A number of cores and their placement.
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
    /// Requests `count` hardware threads, contiguous and strict. A request for 0 is refused by the
    /// pool.
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
}

brigade_sys::setters! {
    impl CoreRequest;

    /// Sets the placement of the cores relative to each other.
    pub fn policy(self, policy: Policy) { self.policy = policy }

    /// Sets the unit that is counted.
    pub fn smt(self, smt: Smt) { self.smt = smt }

    /// Requests physical cores with all their hardware threads: [`Smt::Whole`].
    pub fn whole_cores(self) { self.smt = Smt::Whole }

    /// Requests physical cores with one hardware thread each and the others idle: [`Smt::Isolate`].
    pub fn one_thread_per_core(self) { self.smt = Smt::Isolate }

    /// Accepts a worse placement instead of waiting for a good one: several intervals, more nodes,
    /// less spread.
    ///
    /// Without it a request is *strict*: contiguous cores form one interval; compact ones touch no
    /// more packages, NUMA nodes and L3 caches, and scattered ones no fewer, than they would if the
    /// whole pool were free. The count, its unit, the kind and the node apply either way.
    pub fn best_effort(self) { self.best_effort = true }

    /// Requests cores of one kind only.
    pub fn kind(self, kind: CoreKind) { self.kind = Some(kind) }

    /// Requests cores of one NUMA node only, by the kernel's number.
    pub fn numa_node(self, node: u32) { self.numa_node = Some(node) }
}

impl CoreRequest {
    /// Returns the number of requested cores or hardware threads.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns `true` if the request waits for a good placement.
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
