//! Reads NUMA nodes and their distances.

use super::files::Files;
use crate::cpu_set::CpuSet;
use crate::topology::{Level, Object};

const NODES: &str = "sys/devices/system/node";

#[derive(Default)]
pub(super) struct Numa {
    pub(super) nodes: Vec<Object>,
    /// One row per node: its number, and its distances to all nodes in the same order.
    pub(super) distances: Vec<(u32, Vec<u32>)>,
}

/// Reads the nodes with their online cpus, including nodes without cpus. Node numbers may have
/// gaps.
pub(super) fn read(files: &mut Files<'_>, online: &CpuSet) -> Numa {
    let listed = files.list(&format!("{NODES}/online"));
    let ids = listed.unwrap_or_else(|| files.numbered(NODES, "node"));
    let mut numa = Numa::default();
    let mut grouped = CpuSet::new();
    let of_graphics = graphics_memory(files);
    for id in ids.iter() {
        let folder = format!("{NODES}/node{id}");
        if of_graphics.contains(id) {
            continue;
        }
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
    // In a table with gaps, the columns cannot be matched to nodes.
    if numa.distances.len() != ids.len() {
        numa.distances.clear();
    }
    numa
}

/// Returns the nodes that hold the memory of NVIDIA's graphics cards on POWER, which is not working
/// memory.
fn graphics_memory(files: &mut Files<'_>) -> CpuSet {
    const CARDS: &str = "proc/driver/nvidia/gpus";
    let cards = files.names(CARDS);
    let node = |card: &String| {
        let status = files.text(&format!("{CARDS}/{card}/numa_status"))?;
        let (_, node) = status.split_once("Node:")?;
        node.split_whitespace().next()?.parse().ok()
    };
    cards.iter().filter_map(node).filter(|node| *node < CpuSet::PARSE_LIMIT).collect()
}

fn distances(files: &mut Files<'_>, path: &str, nodes: usize) -> Option<Vec<u32>> {
    let text = files.text(path)?;
    let row: Option<Vec<u32>> =
        text.split_whitespace().map(|distance| distance.parse().ok()).collect();
    let row = row.filter(|row| row.len() == nodes);
    if row.is_none() {
        files.warn(path, format!("is not a row of {nodes} distances; ignored"));
    }
    row
}
