//! Synthetic machines for tests.

use proptest::prelude::*;

use crate::cpu_set::CpuSet;
use crate::topology::{Level, Object, Parts, Topology};

/// A regular machine: the number of parts of each level within the next larger one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) packages: u32,
    pub(crate) nodes: u32,
    pub(crate) caches: u32,
    pub(crate) cores: u32,
    pub(crate) threads: u32,
}

impl Shape {
    fn cpus(self) -> u32 {
        self.packages * self.nodes * self.caches * self.cores * self.threads
    }

    /// Returns the machine whose cpus have these numbers, in topological order.
    pub(crate) fn topology(self, numbers: &[u32]) -> Topology {
        let mut objects = Vec::new();
        let mut divide = |level, size: u32| {
            for (id, numbers) in (0..).zip(numbers.chunks(size as usize)) {
                objects.push(Object::new(level, Some(id), numbers.iter().copied().collect()));
            }
        };
        let mut size = self.threads;
        divide(Level::Core, size);
        size *= self.cores;
        divide(Level::L3, size);
        size *= self.caches;
        divide(Level::NumaNode, size);
        size *= self.nodes;
        divide(Level::Package, size);
        let cpus: CpuSet = numbers.iter().copied().collect();
        Parts { online: cpus.clone(), kinds: vec![cpus.clone()], cpus, objects, ..Parts::default() }
            .into()
    }

    /// Returns the machine with cpus numbered in topological order.
    pub(crate) fn numbered(self) -> Topology {
        self.topology(&(0..self.cpus()).collect::<Vec<_>>())
    }
}

/// Generates small machines with odd numbering, missing cpus, and up to two kinds of core.
pub(crate) fn any_topology() -> impl Strategy<Value = Topology> {
    let shape = (1..3_u32, 1..3_u32, 1..3_u32, 1..4_u32, 1..3_u32).prop_map(
        |(packages, nodes, caches, cores, threads)| Shape {
            packages,
            nodes,
            caches,
            cores,
            threads,
        },
    );
    shape
        .prop_flat_map(|shape| {
            let numbers: Vec<u32> = (0..shape.cpus()).map(|cpu| cpu * 3).collect();
            let cpus = numbers.len();
            let missing = prop::collection::vec(prop::bool::weighted(0.2), cpus);
            let slow = prop_oneof![Just(0), 0..=shape.cpus()];
            (Just(shape), Just(numbers).prop_shuffle(), missing, slow)
        })
        .prop_map(|(shape, numbers, missing, slow)| {
            let topology = shape.topology(&numbers);
            let cores = topology.cores();
            let mut parts = Parts::from(topology);
            let slow: CpuSet =
                cores.iter().take((slow / shape.threads) as usize).flat_map(CpuSet::iter).collect();
            let fast = parts.cpus.difference(&slow);
            parts.kinds = [fast, slow].into_iter().filter(|kind| !kind.is_empty()).collect();
            let mut there: CpuSet = numbers
                .iter()
                .zip(missing)
                .filter_map(|(cpu, missing)| (!missing).then_some(*cpu))
                .collect();
            there.insert(numbers[0]);
            Topology::from(parts).restricted_to(&there)
        })
}
