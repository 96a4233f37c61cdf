//! A topology as the allocator sees it: places in an order, and groups of places.

use std::collections::HashMap;
use std::ops::Range;

use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::topology::Topology;

use super::view::View;

/// What never changes while a pool lives.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The cpu at each place.
    ids: Vec<u32>,
    /// The places of each core: an interval, because a core's cpus are next to each other in the order.
    core_places: Vec<Range<usize>>,
    core_of: Vec<usize>,
    pub(super) cpus: View,
    pub(super) cores: View,
}

impl Layout {
    pub(crate) fn new(topology: &Topology) -> Self {
        let ids = topology.order().to_vec();
        let mut core_places: Vec<Range<usize>> = Vec::new();
        let mut core_of = Vec::with_capacity(ids.len());
        for core in topology.cores() {
            let start = core_of.len();
            // A core whose cpus are of two kinds would be nonsense, and is then two cores.
            let length = ids[start..].iter().take_while(|cpu| core.contains(**cpu)).count();
            core_of.extend(std::iter::repeat_n(core_places.len(), length));
            core_places.push(start..start + length);
        }
        let places: HashMap<u32, usize> =
            ids.iter().enumerate().map(|(place, cpu)| (*cpu, place)).collect();
        let to_places = |cpus: &CpuSet| {
            cpus.iter().filter_map(|cpu| places.get(&cpu).copied()).collect::<Bits>()
        };
        let to_cores = |cpus: &CpuSet| to_places(cpus).iter().map(|place| core_of[place]).collect();
        let cpus = View::new(topology, ids.len(), to_places);
        let cores = View::new(topology, core_places.len(), to_cores);
        Self { ids, core_places, core_of, cpus, cores }
    }

    /// How many cpus there are.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The system's numbers of the cpus at some places.
    pub(crate) fn cpu_ids(&self, places: &Bits) -> CpuSet {
        places.iter().map(|place| self.ids[place]).collect()
    }

    pub(crate) fn cpu_id(&self, place: usize) -> u32 {
        self.ids[place]
    }

    pub(super) fn core_of(&self, place: usize) -> usize {
        self.core_of[place]
    }

    pub(super) fn cpus_of(&self, core: usize) -> Range<usize> {
        self.core_places[core].clone()
    }
}
