//! Leases of cores on a large machine that is half full, and discovery of machines.
//!
//! `cargo bench -p brigade-benches --bench cores`
//!
//! The machine has 512 cpus: 2 packages of 4 NUMA nodes of 4 L3 caches of 8 cores of 2 threads.
//! Leases of 4 cpus fill it, and every other lease is released, so each free interval fits exactly
//! one request.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "there is nothing to measure without the value")]

use std::fs;
use std::hint::black_box;
use std::path::Path;

use brigade_cores::{CoreLease, CorePool, CoreRequest, CpuSet, Policy, Recording, Topology};
use criterion::Criterion;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    lease(&mut criterion);
    discover(&mut criterion);
    criterion.final_summary();
}

fn lease(criterion: &mut Criterion) {
    let topology = Topology::replay(&machine(&[2, 4, 4, 8, 2])).expect("a topology");
    let pool = CorePool::builder().topology(topology).build().expect("a pool");
    let leases: Vec<CoreLease> =
        (0..128).map(|_| pool.try_reserve(CoreRequest::new(4)).expect("a free machine")).collect();
    let held: Vec<CoreLease> = leases.into_iter().step_by(2).collect();
    let contiguous = CoreRequest::new(4);
    for (name, request) in [
        ("contiguous", contiguous),
        ("contiguous, whole cores", CoreRequest::new(2).whole_cores()),
        ("compact", contiguous.policy(Policy::Compact)),
        ("compact, best effort", contiguous.policy(Policy::Compact).best_effort()),
        ("scatter", contiguous.policy(Policy::Scatter)),
        ("scatter, best effort", contiguous.policy(Policy::Scatter).best_effort()),
    ] {
        criterion.bench_function(
            &format!("cores/reserve 4 of 512 and release: {name}"),
            |bencher| {
                bencher.iter(|| drop(pool.reserve(black_box(request)).expect("room for 4")));
            },
        );
    }
    drop(held);
}

fn discover(criterion: &mut Criterion) {
    criterion.bench_function("cores/discover this machine", |bencher| {
        bencher.iter(|| Topology::discover().expect("a topology"));
    });
    let synthetic = machine(&[2, 2, 1, 32, 1]);
    discover_recorded(criterion, "128 cores, synthetic", &synthetic);
    let folder = std::env::var_os("BRIGADE_TOPOLOGY_FIXTURES");
    if let Some(folder) = folder {
        let file = Path::new(&folder).join("128arm-2pa2n8cluster4co.json");
        let text = fs::read(file).expect("the recording of a machine with 128 cores");
        let recording = serde_json::from_slice(&text).expect("a recording");
        discover_recorded(criterion, "128 cores, recorded", &recording);
    }
}

fn discover_recorded(criterion: &mut Criterion, name: &str, recording: &Recording) {
    criterion.bench_function(&format!("cores/replay {name}"), |bencher| {
        bencher.iter(|| Topology::replay(recording).expect("a topology"));
    });
    let root = tempfile::tempdir().expect("a folder");
    let files = serde_json::to_value(recording).expect("a map");
    for (path, content) in files.as_object().expect("a map") {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content.as_str().expect("a text")).expect("room for a file");
    }
    criterion.bench_function(&format!("cores/discover {name}, from files"), |bencher| {
        bencher.iter(|| Topology::discover_in(root.path()).expect("a topology"));
    });
}

/// Returns a machine with the given number of packages, NUMA nodes in each package, L3 caches in
/// each node, cores at each cache, and threads of each core.
fn machine(levels: &[u32; 5]) -> Recording {
    let sizes: Vec<u32> = (0..6).map(|level| levels[level..].iter().product()).collect();
    let mut files =
        vec![("sys/devices/system/cpu/online".to_owned(), format!("0-{}", sizes[0] - 1))];
    let group = |cpu: u32, size: u32| {
        let first = cpu / size * size;
        (first..first + size).collect::<CpuSet>().to_string()
    };
    for cpu in 0..sizes[0] {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}");
        files.extend([
            (format!("{folder}/topology/package_cpus_list"), group(cpu, sizes[1])),
            (format!("{folder}/topology/core_cpus_list"), group(cpu, sizes[4])),
            (format!("{folder}/topology/physical_package_id"), (cpu / sizes[1]).to_string()),
            (format!("{folder}/topology/core_id"), (cpu / sizes[4]).to_string()),
            (format!("{folder}/cache/index0/level"), "3".to_owned()),
            (format!("{folder}/cache/index0/type"), "Unified".to_owned()),
            (format!("{folder}/cache/index0/shared_cpu_list"), group(cpu, sizes[3])),
        ]);
    }
    for (node, cpu) in (0..sizes[0]).step_by(sizes[2] as usize).enumerate() {
        files.push((format!("sys/devices/system/node/node{node}/cpulist"), group(cpu, sizes[2])));
    }
    files.into_iter().collect()
}
