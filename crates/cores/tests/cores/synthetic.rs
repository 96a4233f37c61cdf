//! Synthetic machines, built file by file.

use std::collections::BTreeMap;
use std::path::Path;

use brigade_cores::{CpuSet, Recording, Topology};

pub(crate) const CPU: &str = "sys/devices/system/cpu";
pub(crate) const NODE: &str = "sys/devices/system/node";

/// Contents of files by path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine(pub(crate) BTreeMap<String, String>);

impl Machine {
    /// Returns a machine with `cores` cores of `threads` cpus per package. Each package is a NUMA
    /// node with one L3 cache. Cpus are numbered first by thread, then by package, then by core:
    /// siblings are far apart, and adjacent numbers are in different packages.
    pub(crate) fn regular(packages: u32, cores: u32, threads: u32) -> Self {
        let all = packages * cores * threads;
        let mut machine = Self::default();
        machine.put(format!("{CPU}/online"), format!("0-{}\n", all - 1));
        machine.put(format!("{NODE}/online"), format!("0-{}\n", packages - 1));
        let in_package = |package| (0..all).filter(|cpu| cpu % packages == package).collect();
        for package in 0..packages {
            machine.put(format!("{NODE}/node{package}/cpumap"), mask(&in_package(package)));
            let distances: Vec<&str> =
                (0..packages).map(|other| if other == package { "10" } else { "21" }).collect();
            machine.put(format!("{NODE}/node{package}/distance"), distances.join(" "));
        }
        for cpu in 0..all {
            let (core, package) = (cpu % (packages * cores), cpu % packages);
            let siblings = (0..threads).map(|thread| core + thread * packages * cores).collect();
            let folder = format!("{CPU}/cpu{cpu}");
            for (name, content) in [
                ("topology/core_cpus", mask(&siblings)),
                ("topology/core_id", (core / packages).to_string()),
                ("topology/package_cpus", mask(&in_package(package))),
                ("topology/physical_package_id", package.to_string()),
                ("cache/index0/level", "1".to_owned()),
                ("cache/index0/type", "Data".to_owned()),
                ("cache/index0/shared_cpu_map", mask(&siblings)),
                ("cache/index1/level", "3".to_owned()),
                ("cache/index1/type", "Unified".to_owned()),
                ("cache/index1/size", "32768K".to_owned()),
                ("cache/index1/shared_cpu_map", mask(&in_package(package))),
            ] {
                machine.put(format!("{folder}/{name}"), content);
            }
        }
        machine
    }

    pub(crate) fn put(&mut self, path: impl Into<String>, content: impl Into<String>) {
        self.0.insert(path.into(), content.into());
    }

    pub(crate) fn with(mut self, path: &str, content: &str) -> Self {
        self.put(path, content);
        self
    }

    pub(crate) fn recording(&self) -> Recording {
        self.0.clone().into_iter().collect()
    }

    pub(crate) fn topology(&self) -> Topology {
        Topology::replay(&self.recording()).unwrap()
    }

    pub(crate) fn write(&self, root: &Path) {
        for (path, content) in &self.0 {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }
}

pub(crate) fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

/// Writes a mask in the kernel's format.
pub(crate) fn mask(cpus: &CpuSet) -> String {
    let words: Vec<String> = cpus
        .words()
        .iter()
        .rev()
        .map(|word| format!("{:08x},{:08x}", word >> 32, word & 0xffff_ffff))
        .collect();
    format!("{}\n", words.join(","))
}
