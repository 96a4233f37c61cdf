//! NUMA nodes and their distances.

use super::files::Files;
use crate::cpu_set::CpuSet;
use crate::topology::{Level, Object};

const NODES: &str = "sys/devices/system/node";

#[derive(Default)]
pub(super) struct Numa {
    pub(super) nodes: Vec<Object>,
    /// Each row: a node, and its distance to each node in the same order.
    pub(super) distances: Vec<(u32, Vec<u32>)>,
}

/// The nodes with their online cpus, also those without cpus. Numbers may have holes.
pub(super) fn read(files: &mut Files<'_>, online: &CpuSet) -> Numa {
    let listed = files.list(&format!("{NODES}/online"));
    let ids = listed.unwrap_or_else(|| files.numbered(NODES, "node"));
    let mut numa = Numa::default();
    let mut grouped = CpuSet::new();
    for id in ids.iter() {
        let folder = format!("{NODES}/node{id}");
        let Some(cpus) = files.cpus(&format!("{folder}/cpumap"), &format!("{folder}/cpulist"))
        else {
            continue;
        };
        if let Some(row) = distances(files, &format!("{folder}/distance"), ids.len()) {
            numa.distances.push((id, row));
        }
        if cpus.intersects(&grouped) {
            files.warn(
                &folder,
                format!("claims cpus {cpus}, some of which belong to an earlier node; left out"),
            );
            continue;
        }
        grouped = grouped.union(&cpus);
        numa.nodes.push(Object::new(Level::NumaNode, Some(id), cpus.intersection(online)));
    }
    // A table with holes says nothing reliable about its columns.
    if numa.distances.len() != ids.len() {
        numa.distances.clear();
    }
    numa
}

fn distances(files: &mut Files<'_>, path: &str, nodes: usize) -> Option<Vec<u32>> {
    let text = files.text(path)?;
    let row: Option<Vec<u32>> =
        text.split_whitespace().map(|distance| distance.parse().ok()).collect();
    let row = row.filter(|row| row.len() == nodes);
    if row.is_none() {
        files.warn(path, format!("is no row of {nodes} distances; ignored"));
    }
    row
}
