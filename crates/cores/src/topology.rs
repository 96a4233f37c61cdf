//! The machine's topology, as far as this process may use it.

mod arrange;
mod display;
mod object;
#[cfg(test)]
pub(crate) mod tests;

use serde::{Deserialize, Serialize};

use crate::cpu_set::CpuSet;
pub use object::{Counts, CpuQuota, Level, Object, Warning};

/// The usable part of a machine: its cpus, and the groups of cpus that share something.
///
/// A cpu is *usable* if it is online and allowed by the cpuset and the affinity mask. Groups hold
/// usable cpus only. A group without cpus is kept if it has usable memory.
///
/// [`Display`](std::fmt::Display) draws the topology as a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub struct Topology {
    parts: Parts,
    /// The usable cpus in topological order.
    order: Vec<u32>,
}

/// A topology without the data derived from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Parts {
    pub(crate) cpus: CpuSet,
    pub(crate) online: CpuSet,
    pub(crate) isolated: CpuSet,
    pub(crate) nohz_full: CpuSet,
    pub(crate) objects: Vec<Object>,
    /// The fastest first; a single set for a machine with one kind of core.
    pub(crate) kinds: Vec<CpuSet>,
    /// One row per node: its number, and its distances to the nodes of `objects` in their order.
    pub(crate) distances: Vec<(u32, Vec<u32>)>,
    pub(crate) quota: Option<CpuQuota>,
    pub(crate) warnings: Vec<Warning>,
}

impl From<Parts> for Topology {
    /// Never fails: contradictions are dropped with a warning.
    fn from(mut parts: Parts) -> Self {
        parts.objects = arrange::nested(std::mem::take(&mut parts.objects), &mut parts.warnings);
        let order = arrange::order(&parts.cpus, &parts.objects, &parts.kinds);
        Self { parts, order }
    }
}

impl From<Topology> for Parts {
    fn from(topology: Topology) -> Self {
        topology.parts
    }
}

impl Topology {
    /// Creates a topology of cpus about which nothing else is known.
    pub fn flat(cpus: CpuSet) -> Self {
        Parts { online: cpus.clone(), kinds: vec![cpus.clone()], cpus, ..Parts::default() }.into()
    }

    /// Returns the usable cpus.
    pub fn cpus(&self) -> &CpuSet {
        &self.parts.cpus
    }

    /// Returns all cpus that are online, usable or not.
    pub fn online(&self) -> &CpuSet {
        &self.parts.online
    }

    /// Returns the cpus that the kernel's scheduler leaves alone (`isolcpus`), usable or not. Only
    /// pinned threads run there, and threads pinned to a set of several are not balanced among
    /// them.
    pub fn isolated(&self) -> &CpuSet {
        &self.parts.isolated
    }

    /// Returns the cpus without a scheduling tick while a single thread runs (`nohz_full`), usable
    /// or not.
    pub fn nohz_full(&self) -> &CpuSet {
        &self.parts.nohz_full
    }

    /// Returns the usable cpus in topological order: those that share most are adjacent.
    /// [`Policy::Contiguous`](crate::Policy::Contiguous) takes an interval of it.
    ///
    /// Sorted by kind of core (the fastest first), then by the enclosing groups (package, node,
    /// cache, core), then by number.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns the groups of one level, ordered by their first cpu.
    ///
    /// Only those that the machine describes: one that does not describe its cores has no object of
    /// [`Level::Core`].
    pub fn objects(&self, level: Level) -> impl Iterator<Item = &Object> {
        self.parts.objects.iter().filter(move |object| object.level == level)
    }

    /// Returns the group of `level` that `cpu` belongs to.
    pub fn object_of(&self, cpu: u32, level: Level) -> Option<&Object> {
        self.objects(level).find(|object| object.cpus.contains(cpu))
    }

    /// Returns the cpus that are in no group of `level`, divided as the other groups suggest.
    pub(crate) fn ungrouped(&self, level: Level) -> Vec<CpuSet> {
        arrange::ungrouped(&self.parts.cpus, &self.parts.objects, level)
    }

    /// Returns the closest level that all of `cpus` share.
    pub fn span(&self, cpus: &CpuSet) -> Level {
        if cpus.len() == 1 {
            return Level::Core;
        }
        let holding = self.parts.objects.iter().filter(|object| cpus.is_subset(&object.cpus));
        holding
            .min_by_key(|object| (object.cpus.len(), object.level))
            .map_or(Level::Machine, |object| object.level)
    }

    /// Returns the number of groups of `level` that contain some of `cpus`.
    pub fn touched(&self, cpus: &CpuSet, level: Level) -> usize {
        self.objects(level).filter(|object| object.cpus.intersects(cpus)).count()
    }

    /// Returns the cpus of each physical core in topological order. A cpu about which nothing is
    /// known counts as a core.
    pub fn cores(&self) -> Vec<CpuSet> {
        let mut cores: Vec<CpuSet> = Vec::new();
        for &cpu in &self.order {
            if cores.last().is_some_and(|core| core.contains(cpu)) {
                continue;
            }
            let core = self.object_of(cpu, Level::Core);
            cores.push(core.map_or_else(|| [cpu].into_iter().collect(), |core| core.cpus.clone()));
        }
        cores
    }

    /// Returns the kinds of core, the fastest first: one set on most machines, two or three on
    /// hybrid ones.
    pub fn kinds(&self) -> &[CpuSet] {
        &self.parts.kinds
    }

    /// Returns the distance of two NUMA nodes, as reported by the firmware: 10 is local, 20 twice
    /// as far.
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        let (_, row) = self.parts.distances.iter().find(|(node, _)| *node == from)?;
        let column = self.parts.distances.iter().position(|(node, _)| *node == to)?;
        row.get(column).copied()
    }

    /// Returns the processor time that the control groups allow, if they limit it.
    pub fn quota(&self) -> Option<CpuQuota> {
        self.parts.quota
    }

    /// Returns the number of threads that can run at the same time: the usable cpus, or what the
    /// quota allows if that is less; at least 1.
    pub fn available_parallelism(&self) -> usize {
        let paid = self.parts.quota.map_or(usize::MAX, CpuQuota::whole_cpus);
        self.parts.cpus.len().min(paid).max(1)
    }

    /// Counts the machine's parts.
    pub fn counts(&self) -> Counts {
        let count = |level| self.objects(level).count();
        Counts {
            units: self.parts.cpus.len(),
            cores: count(Level::Core),
            l3_caches: count(Level::L3),
            packages: count(Level::Package),
            // Without any node, the machine's memory counts as one.
            numa_nodes: self.objects(Level::NumaNode).filter(|node| node.memory).count().max(1),
        }
    }

    /// Descriptions of data that was unreadable, contradictory, or had to be guessed.
    pub fn warnings(&self) -> &[Warning] {
        &self.parts.warnings
    }

    /// Returns this machine reduced to `cpus`; empty if none of them is usable.
    #[must_use]
    pub fn restricted_to(&self, cpus: &CpuSet) -> Self {
        let mut parts = self.parts.clone();
        parts.restrict(cpus, |object| object.cpus.is_empty());
        parts.into()
    }
}

impl Parts {
    /// Removes all other cpus. A group that loses its last cpu is removed too, unless `stays`
    /// returns `true` for its original state.
    pub(crate) fn restrict(&mut self, cpus: &CpuSet, stays: impl Fn(&Object) -> bool) {
        self.cpus = self.cpus.intersection(cpus);
        self.objects.retain_mut(|object| {
            let rest = object.cpus.intersection(cpus);
            let keep = !rest.is_empty() || stays(object);
            object.cpus = rest;
            keep
        });
        for kind in &mut self.kinds {
            *kind = kind.intersection(cpus);
        }
        self.kinds.retain(|kind| !kind.is_empty());
    }
}
