//! What hwloc finds on recorded machines is found here too.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

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

fn fixtures() -> PathBuf {
    std::env::var_os("BRIGADE_TOPOLOGY_FIXTURES").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/topology"),
        PathBuf::from,
    )
}

#[test]
fn every_recorded_machine_has_the_counts_that_hwloc_finds() {
    let folder = fixtures();
    let expected: BTreeMap<String, Expected> =
        serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let mut differences = Vec::new();
    for (name, expected) in &expected {
        let file = fs::read(folder.join(format!("{name}.json"))).unwrap();
        let recording: Recording = serde_json::from_slice(&file).unwrap();
        let topology = Topology::replay(&recording).unwrap();
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
