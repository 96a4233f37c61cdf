//! What the machine looks like, as far as this process may use it.

mod arrange;
mod display;
mod object;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::cpu_set::CpuSet;
pub use object::{Counts, CpuQuota, Level, Object, Warning};

/// The usable part of a machine: its cpus, and what groups of them share.
///
/// *Usable* are the cpus that are online and that cpuset and affinity mask allow. Groups hold usable cpus only; one without any
/// is kept if it holds memory that may be used.
///
/// [`Display`](std::fmt::Display) draws it as a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Parts", into = "Parts")]
pub struct Topology {
    parts: Parts,
    /// The usable cpus in topological order.
    order: Vec<u32>,
}

/// A topology without what follows from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Parts {
    pub(crate) cpus: CpuSet,
    pub(crate) online: CpuSet,
    pub(crate) isolated: CpuSet,
    pub(crate) nohz_full: CpuSet,
    pub(crate) objects: Vec<Object>,
    /// The fastest first; one for a machine with cores of one kind.
    pub(crate) kinds: Vec<CpuSet>,
    /// Each row: a node's number, and its distance to each node of `objects` in their order.
    pub(crate) distances: Vec<(u32, Vec<u32>)>,
    pub(crate) quota: Option<CpuQuota>,
    pub(crate) warnings: Vec<Warning>,
}

impl From<Parts> for Topology {
    /// Total: what contradicts itself is dropped with a warning.
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
    /// A machine of which nothing is known but its cpus.
    pub fn flat(cpus: CpuSet) -> Self {
        Parts { online: cpus.clone(), kinds: vec![cpus.clone()], cpus, ..Parts::default() }.into()
    }

    /// The usable cpus.
    pub fn cpus(&self) -> &CpuSet {
        &self.parts.cpus
    }

    /// All cpus that are online, usable or not.
    pub fn online(&self) -> &CpuSet {
        &self.parts.online
    }

    /// The cpus that the kernel's scheduler leaves alone (`isolcpus`), usable or not: nothing runs there that is not pinned, and
    /// several threads pinned to the same set of them are not balanced.
    pub fn isolated(&self) -> &CpuSet {
        &self.parts.isolated
    }

    /// The cpus without a scheduling tick while a single thread runs (`nohz_full`), usable or not.
    pub fn nohz_full(&self) -> &CpuSet {
        &self.parts.nohz_full
    }

    /// The usable cpus in topological order: those that share most are next to each other. An interval of it is what
    /// [`Policy::Contiguous`](crate::Policy::Contiguous) takes.
    ///
    /// Sorted by kind of core (the fastest first), then by what contains them (package, node, cache, core), then by number.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The groups of one level, by their first cpu.
    ///
    /// Only what the machine told: a machine that says nothing about cores has no object of [`Level::Core`].
    pub fn objects(&self, level: Level) -> impl Iterator<Item = &Object> {
        self.parts.objects.iter().filter(move |object| object.level == level)
    }

    /// The group of `level` that `cpu` belongs to.
    pub fn object_of(&self, cpu: u32, level: Level) -> Option<&Object> {
        self.objects(level).find(|object| object.cpus.contains(cpu))
    }

    /// The cpus that are in no group of `level`, divided as the other groups suggest.
    pub(crate) fn ungrouped(&self, level: Level) -> Vec<CpuSet> {
        arrange::ungrouped(&self.parts.cpus, &self.parts.objects, level)
    }

    /// The closest thing that all of `cpus` share.
    pub fn span(&self, cpus: &CpuSet) -> Level {
        if cpus.len() == 1 {
            return Level::Core;
        }
        let holding = self.parts.objects.iter().filter(|object| cpus.is_subset(&object.cpus));
        holding
            .min_by_key(|object| (object.cpus.len(), object.level))
            .map_or(Level::Machine, |object| object.level)
    }

    /// How many groups of `level` have some of `cpus`.
    pub fn touched(&self, cpus: &CpuSet, level: Level) -> usize {
        self.objects(level).filter(|object| object.cpus.intersects(cpus)).count()
    }

    /// The cpus of each physical core in topological order. A cpu of which nothing is known counts as a core of its own.
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

    /// The kinds of core, the fastest first: one set on most machines, two or three on hybrid ones.
    pub fn kinds(&self) -> &[CpuSet] {
        &self.parts.kinds
    }

    /// How far two NUMA nodes are from each other, as the firmware says: 10 is local, 20 twice as far.
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        let (_, row) = self.parts.distances.iter().find(|(node, _)| *node == from)?;
        let column = self.parts.distances.iter().position(|(node, _)| *node == to)?;
        row.get(column).copied()
    }

    /// How much processor time the control groups allow, if they limit it.
    pub fn quota(&self) -> Option<CpuQuota> {
        self.parts.quota
    }

    /// How many threads can run at the same time: the usable cpus, or what the quota pays for if that is less; never 0.
    pub fn available_parallelism(&self) -> usize {
        let paid = self.parts.quota.map_or(usize::MAX, CpuQuota::whole_cpus);
        self.parts.cpus.len().min(paid).max(1)
    }

    /// How many of each there are.
    pub fn counts(&self) -> Counts {
        let count = |level| self.objects(level).count();
        Counts {
            units: self.parts.cpus.len(),
            cores: count(Level::Core),
            l3_caches: count(Level::L3),
            packages: count(Level::Package),
            // Without any, the machine's memory is one node.
            numa_nodes: self.objects(Level::NumaNode).filter(|node| node.memory).count().max(1),
        }
    }

    /// What could not be read, was nonsense, or had to be assumed.
    pub fn warnings(&self) -> &[Warning] {
        &self.parts.warnings
    }

    /// The part of this machine that `cpus` leave; nothing of it if they have none in common.
    #[must_use]
    pub fn restricted_to(&self, cpus: &CpuSet) -> Self {
        let mut parts = self.parts.clone();
        parts.restrict(cpus, |object| object.cpus.is_empty());
        parts.into()
    }
}

impl Parts {
    /// Takes cpus away from everything. A group that loses its last cpu goes, unless it `stays` as it was before.
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
