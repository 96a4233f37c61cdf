//! A topology as the allocator sees it: ordered positions, and groups of them.

use std::collections::HashMap;
use std::ops::Range;

use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::topology::Topology;

use super::view::View;

/// The part of the allocator that never changes.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The cpu at each position.
    ids: Vec<u32>,
    /// The positions of each core: an interval, because a core's cpus are adjacent in the order.
    core_positions: Vec<Range<usize>>,
    core_of: Vec<usize>,
    pub(super) cpus: View,
    pub(super) cores: View,
}

impl Layout {
    pub(crate) fn new(topology: &Topology) -> Self {
        let ids = topology.order().to_vec();
        let mut core_positions: Vec<Range<usize>> = Vec::new();
        let mut core_of = Vec::with_capacity(ids.len());
        for core in topology.cores() {
            let start = core_of.len();
            // A core whose cpus are of two kinds would be nonsense; it is treated as two cores.
            let length = ids[start..].iter().take_while(|cpu| core.contains(**cpu)).count();
            core_of.extend(std::iter::repeat_n(core_positions.len(), length));
            core_positions.push(start..start + length);
        }
        let positions: HashMap<u32, usize> =
            ids.iter().enumerate().map(|(position, cpu)| (*cpu, position)).collect();
        let to_positions = |cpus: &CpuSet| {
            cpus.iter().filter_map(|cpu| positions.get(&cpu).copied()).collect::<Bits>()
        };
        let to_cores =
            |cpus: &CpuSet| to_positions(cpus).iter().map(|position| core_of[position]).collect();
        let cpus = View::new(topology, ids.len(), to_positions);
        let cores = View::new(topology, core_positions.len(), to_cores);
        Self { ids, core_positions, core_of, cpus, cores }
    }

    /// Returns the number of cpus.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns the system's numbers of the cpus at these positions.
    pub(crate) fn cpu_ids(&self, positions: &Bits) -> CpuSet {
        positions.iter().map(|position| self.ids[position]).collect()
    }

    /// Returns the positions of those of these cpus that there are.
    pub(crate) fn positions(&self, cpus: &CpuSet) -> Bits {
        (0..self.len()).filter(|position| cpus.contains(self.ids[*position])).collect()
    }

    pub(crate) fn cpu_id(&self, position: usize) -> u32 {
        self.ids[position]
    }

    pub(super) fn core_of(&self, position: usize) -> usize {
        self.core_of[position]
    }

    pub(super) fn cpus_of(&self, core: usize) -> Range<usize> {
        self.core_positions[core].clone()
    }
}
