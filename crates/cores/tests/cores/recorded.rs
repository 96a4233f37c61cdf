//! Recorded machines have the counts and cpus that hwloc finds.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use brigade_cores::{CpuSet, Recording, Topology};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    pu: usize,
    core: usize,
    l3: usize,
    package: usize,
    numa: usize,
    pu_os_index: Vec<u32>,
}

/// Returns the folder with the recordings. Without it, prints that the test is skipped.
fn recordings() -> Option<PathBuf> {
    let beside =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/topology");
    let folder = std::env::var_os("BRIGADE_TOPOLOGY_FIXTURES").map_or(beside, PathBuf::from);
    if folder.join("expected.json").is_file() {
        return Some(folder);
    }
    let mut output = std::io::stderr();
    let _ = writeln!(
        output,
        "skipped: no recordings in {} (see BRIGADE_TOPOLOGY_FIXTURES)",
        folder.display()
    );
    None
}

fn load(folder: &Path, name: &str) -> Recording {
    serde_json::from_slice(&fs::read(folder.join(format!("{name}.json"))).unwrap()).unwrap()
}

#[test]
fn every_recorded_machine_has_the_counts_that_hwloc_finds() {
    let Some(folder) = recordings() else { return };
    let expected: BTreeMap<String, Expected> =
        serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut differences = Vec::new();
    for (name, expected) in &expected {
        let topology = Topology::replay(&load(&folder, name)).unwrap();
        let counts = topology.counts();
        let cpus: CpuSet = expected.pu_os_index.iter().copied().collect();
        for (what, found, wanted) in [
            ("units", counts.units, expected.pu),
            ("cores", counts.cores, expected.core),
            ("L3 caches", counts.l3_caches, expected.l3),
            ("packages", counts.packages, expected.package),
            ("NUMA nodes", counts.numa_nodes, expected.numa),
        ] {
            if found != wanted {
                differences.push(format!("{name}: {found} {what}, hwloc finds {wanted}"));
            }
        }
        if *topology.cpus() != cpus {
            differences.push(format!("{name}: cpus {}, hwloc finds {cpus}", topology.cpus()));
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}

#[test]
fn base_performance_distinguishes_the_kinds_of_core() {
    let Some(folder) = recordings() else { return };
    let topology = Topology::replay(&load(&folder, "20em64t-hybrid-1p6c2t+2ca4co1t")).unwrap();
    assert_eq!(topology.kinds(), ["0-11".parse().unwrap(), "12-19".parse().unwrap()]);
}
