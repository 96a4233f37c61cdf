//! Machines of many kinds, including badly described ones.

use std::fs;
use std::thread;

use brigade_cores::{
    CoreKind, CorePool, CoreRequest, Counts, CpuSet, DiscoverError, Level, Topology,
};
use brigade_testkit::repetitions;
use proptest::prelude::*;

use crate::synthetic::{CPU, Machine, NODE, mask, set};

fn counts(topology: &Topology) -> [usize; 5] {
    let Counts { units, cores, l3_caches, packages, numa_nodes, .. } = topology.counts();
    [units, cores, l3_caches, packages, numa_nodes]
}

#[test]
fn a_regular_machine_is_found_from_files_and_from_a_recording() {
    let machine = Machine::regular(2, 4, 2);
    let root = tempfile::tempdir().unwrap();
    machine.write(root.path());
    let topology = Topology::discover_in(root.path()).unwrap();
    assert_eq!(counts(&topology), [16, 8, 2, 2, 2]);
    assert_eq!(topology.warnings(), []);
    assert_eq!(topology, machine.topology());
    // Siblings are adjacent, and packages are not mixed.
    assert_eq!(topology.order(), [0, 8, 2, 10, 4, 12, 6, 14, 1, 9, 3, 11, 5, 13, 7, 15]);
    assert_eq!(topology.distance(0, 1), Some(21));
    assert_eq!(topology.objects(Level::L3).next().unwrap().size_kib, Some(32_768));
}

#[test]
fn more_cpus_than_a_c_cpu_set_holds_are_found() {
    assert_eq!(counts(&Machine::regular(4, 300, 2).topology()), [2_400, 1_200, 4, 4, 4]);
}

#[test]
fn this_machine_is_limited_to_the_affinity_of_the_thread() {
    let whole = Topology::discover().unwrap();
    let mask = CpuSet::of_current_thread().unwrap();
    assert!(whole.cpus().is_subset(&mask));
    // As under `taskset -c`.
    let one: CpuSet = mask.first().into_iter().collect();
    let narrow = {
        let one = one.clone();
        thread::spawn(move || {
            assert!(one.pin_current_thread().unwrap().is_exact());
            (Topology::discover().unwrap(), CorePool::new().unwrap())
        })
    };
    let (topology, pool) = narrow.join().unwrap();
    assert_eq!((topology.counts().units, topology.available_parallelism()), (1, 1));
    assert_eq!(pool.cpus(), &one);
}

#[test]
fn an_empty_root_is_a_clear_error() {
    let root = tempfile::tempdir().unwrap();
    let error = Topology::discover_in(root.path()).unwrap_err();
    assert!(matches!(error, DiscoverError::NoCpus { .. }));
    assert!(error.to_string().contains("sys/devices/system/cpu"), "{error}");
}

#[test]
fn without_sysfs_the_machine_is_flat_with_cpus_from_procfs() {
    let machine =
        Machine::default().with("proc/cpuinfo", "processor\t: 0\nmodel: x\n\nprocessor\t: 1\n");
    let topology = machine.topology();
    assert_eq!(counts(&topology), [2, 0, 0, 0, 1]);
    assert_eq!(topology.cores().len(), 2);
    assert_eq!(topology.warnings().len(), 1);
    let pool = CorePool::builder().topology(topology).build().unwrap();
    assert_eq!(pool.reserve(CoreRequest::new(2).whole_cores()).unwrap().to_string(), "0-1");
}

#[test]
fn an_unreadable_file_is_a_warning_and_the_rest_is_used() {
    let root = tempfile::tempdir().unwrap();
    Machine::regular(2, 2, 1).write(root.path());
    // File modes do not stop root, but nobody can read a folder as a file.
    let file = root.path().join(CPU).join("cpu0/topology/package_cpus");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let topology = Topology::discover_in(root.path()).unwrap();
    assert!(topology.warnings().iter().any(|warning| warning.subject.ends_with("package_cpus")));
    assert_eq!(topology.counts().units, 4);
    // The sibling of the unreadable cpu defines the package for both.
    assert_eq!(topology.counts().packages, 2);
}

#[test]
fn a_mask_takes_precedence_over_the_list_of_the_same_cpus() {
    let machine = Machine::regular(1, 4, 1)
        .with(&format!("{NODE}/node0/cpulist"), "0-1\n\0")
        .with(&format!("{CPU}/cpu0/topology/core_cpus_list"), "0-3\n");
    assert_eq!(machine.topology().objects(Level::NumaNode).next().unwrap().cpus, set("0-3"));
    assert_eq!(machine.topology().counts().cores, 4);
    let only_list = machine.with(&format!("{NODE}/node0/cpumap"), "what?");
    let topology = only_list.topology();
    assert_eq!(topology.objects(Level::NumaNode).next().unwrap().cpus, set("0-1"));
    assert_eq!(topology.warnings().len(), 1);
}

#[test]
fn offline_cpus_are_left_out_with_and_without_a_list() {
    let mut machine = Machine::regular(2, 2, 2).with(&format!("{CPU}/cpu3/online"), "0\n");
    machine.put(format!("{CPU}/online"), "0-2,4-7\n");
    assert_eq!(machine.topology().cpus(), &set("0-2,4-7"));
    assert_eq!(machine.topology().counts().cores, 4);
    machine.0.remove(&format!("{CPU}/online"));
    assert_eq!(machine.topology().cpus(), &set("0-2,4-7"));
    machine.put(format!("{CPU}/online"), "none of your business");
    assert_eq!(machine.topology().cpus(), &set("0-2,4-7"));
}

#[test]
fn a_cpu_without_a_description_is_left_out() {
    let machine = Machine::regular(1, 4, 1).with(&format!("{CPU}/online"), "0-4\n");
    let topology = machine.topology();
    assert_eq!(topology.cpus(), &set("0-3"));
    assert_eq!(topology.warnings().len(), 1);
}

#[test]
fn graphics_memory_and_caches_of_size_zero_do_not_count() {
    let mut machine = Machine::regular(1, 2, 1)
        .with(&format!("{NODE}/online"), "0,255")
        .with(&format!("{NODE}/node255/cpumap"), "0")
        .with("proc/driver/nvidia/gpus/0004:04:00.0/numa_status", "Node: \t255\nStatus: online");
    assert_eq!(counts(&machine.topology()), [2, 2, 1, 1, 1]);
    for cpu in 0..2 {
        machine.put(format!("{CPU}/cpu{cpu}/cache/index1/size"), "0K");
    }
    assert_eq!(counts(&machine.topology()), [2, 2, 0, 1, 1]);
}

#[test]
fn cache_numbers_may_have_gaps() {
    let mut machine = Machine::regular(2, 2, 1);
    for cpu in 0..4 {
        let cache = format!("{CPU}/cpu{cpu}/cache/index");
        for name in ["level", "type", "size", "shared_cpu_map"] {
            let content = machine.0.remove(&format!("{cache}1/{name}")).unwrap();
            machine.put(format!("{cache}4/{name}"), content);
        }
    }
    let caches = |topology: Topology| {
        assert_eq!(topology.warnings(), []);
        topology.objects(Level::L3).map(|cache| cache.cpus.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(caches(machine.topology()), ["0,2", "1,3"]);
    let root = tempfile::tempdir().unwrap();
    machine.write(root.path());
    assert_eq!(caches(Topology::discover_in(root.path()).unwrap()), ["0,2", "1,3"]);
}

#[test]
fn a_group_that_contradicts_an_earlier_one_is_dropped_whole() {
    // Cpus 1, 3, 5 and 7 are the second package, and the first of them claims that 0 belongs to it
    // too.
    let mut machine = Machine::regular(2, 4, 1);
    let package = |cpu: u32| format!("{CPU}/cpu{cpu}/topology/package_cpus");
    let cache = |cpu: u32| format!("{CPU}/cpu{cpu}/cache/index1/shared_cpu_map");
    machine.put(package(1), mask(&set("0-1")));
    machine.put(cache(1), mask(&set("0,1,3")));
    let topology = machine.topology();
    let groups = |topology: &Topology, level| {
        topology.objects(level).map(|group| group.cpus.to_string()).collect::<Vec<_>>()
    };
    for level in [Level::Package, Level::L3] {
        assert_eq!(groups(&topology, level), ["0,2,4,6"], "{level}");
    }
    // Reported once for the first cpu, and once for all the others, which agree with each other.
    let packages =
        topology.warnings().iter().filter(|warning| warning.subject.starts_with("package"));
    assert_eq!(packages.count(), 2);
    // A set without the cpu itself is rejected too.
    machine.put(package(1), mask(&set("0")));
    assert_eq!(groups(&machine.topology(), Level::Package), ["0,2,4,6"]);
}

#[test]
fn books_and_drawers_hold_packages() {
    let mut machine = Machine::regular(4, 2, 1);
    // Packages 0 and 2 form one book, 1 and 3 another, and both books form a drawer.
    for cpu in 0..8_u32 {
        let book: CpuSet = (0..8).filter(|other| other % 2 == cpu % 2).collect();
        let folder = format!("{CPU}/cpu{cpu}/topology");
        machine.put(format!("{folder}/book_siblings"), mask(&book));
        machine.put(format!("{folder}/book_id"), (cpu % 2).to_string());
        machine.put(format!("{folder}/drawer_siblings"), mask(&set("0-7")));
        machine.put(format!("{folder}/drawer_id"), "4");
    }
    let topology = machine.topology();
    assert_eq!(topology.order(), [0, 4, 2, 6, 1, 5, 3, 7]);
    assert_eq!(topology.span(&set("0,2")), Level::Book);
    assert_eq!(topology.span(&set("0-1")), Level::Drawer);
    assert!(topology.to_string().contains("drawer 4: 0-7"), "{topology}");
}

#[test]
fn different_capacities_take_precedence_over_frequencies() {
    let mut machine = Machine::regular(1, 4, 1);
    for (cpu, base, capacity) in
        [(0, 1_200, 1_024), (1, 2_500, 1_024), (2, 1_200, 500), (3, 2_500, 500)]
    {
        machine.put(format!("{CPU}/cpu{cpu}/cpufreq/base_frequency"), base.to_string());
        machine.put(format!("{CPU}/cpu{cpu}/cpu_capacity"), capacity.to_string());
    }
    assert_eq!(machine.topology().kinds(), [set("0-1"), set("2-3")]);
    for cpu in 0..4 {
        machine.put(format!("{CPU}/cpu{cpu}/cpu_capacity"), "1024");
    }
    assert_eq!(machine.topology().kinds(), [set("1,3"), set("0,2")]);
}

#[test]
fn nodes_may_have_gaps_no_cpus_or_cpus_of_others() {
    let mut machine = Machine::regular(1, 4, 1);
    machine.put(format!("{NODE}/online"), "0,33,250-251");
    machine.put(format!("{NODE}/node33/cpumap"), "00000000");
    machine.put(format!("{NODE}/node250/cpulist"), "\n");
    machine.put(format!("{NODE}/node251/cpumap"), "f");
    let topology = machine.topology();
    let nodes: Vec<_> =
        topology.objects(Level::NumaNode).map(|node| (node.id, node.cpus.len())).collect();
    assert_eq!(nodes, [(Some(0), 4), (Some(33), 0), (Some(250), 0)]);
    assert!(topology.warnings().iter().any(|warning| warning.subject.contains("node251")));
    // The row of node 0 has no columns for the other nodes.
    assert_eq!(topology.distance(0, 0), None);
}

const V2: &str = "36 25 0:30 / /elsewhere/cg rw - cgroup2 cgroup2 rw\n";

#[test]
fn a_cpuset_of_version_2_applies_wherever_it_is_mounted() {
    let machine = Machine::regular(1, 8, 1)
        .with("proc/self/mountinfo", V2)
        .with("proc/self/cgroup", "0::/a/b/c\n")
        // The controller is not enabled in the innermost group.
        .with("elsewhere/cg/a/b/cpuset.cpus.effective", "2-5\n")
        .with("elsewhere/cg/cpuset.cpus.effective", "0-7\n")
        .with("elsewhere/cg/a/b/c/cpu.max", "max 100000\n")
        .with("elsewhere/cg/a/cpu.max", "250000 100000\n");
    let topology = machine.topology();
    assert_eq!(topology.cpus(), &set("2-5"));
    assert_eq!(topology.online(), &set("0-7"));
    assert_eq!(topology.quota().unwrap().millicpus(), 2_500);
    assert_eq!(topology.available_parallelism(), 2);
}

#[test]
fn a_container_sees_its_own_group_as_the_root() {
    let machine = Machine::regular(1, 8, 1)
        .with(
            "proc/self/mountinfo",
            "36 25 0:30 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
        )
        .with("proc/self/cgroup", "0::/docker/x/inner\n")
        .with("sys/fs/cgroup/inner/cpuset.cpus.effective", "1\n")
        .with("sys/fs/cgroup/cpuset.cpus.effective", "0-3\n");
    assert_eq!(machine.topology().cpus(), &set("1"));
    for outside in ["0::/\n", "0::/../../other\n", "0::/docker/xy\n"] {
        let machine = machine.clone().with("proc/self/cgroup", outside);
        assert_eq!(machine.topology().cpus(), &set("0-3"), "{outside}");
    }
}

#[test]
fn a_namespace_with_outer_mounts_is_limited_by_its_own_group() {
    // Outside the namespace, the group is /jobs/7.
    let mounts = "36 25 0:30 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    let machine = Machine::regular(1, 8, 1)
        .with("proc/self/mountinfo", mounts)
        .with("proc/self/cgroup", "0::/\n")
        .with("proc/self/stat", "4711 (program) R 1 4711 0\n")
        .with("sys/fs/cgroup/jobs/6/cgroup.procs", "47\n")
        .with("sys/fs/cgroup/jobs/6/cpu.max", "100000 100000\n")
        .with("sys/fs/cgroup/jobs/7/cgroup.procs", "12\n4711\n")
        .with("sys/fs/cgroup/jobs/7/cpu.max", "250000 100000\n")
        .with("sys/fs/cgroup/jobs/cpuset.cpus.effective", "0-5\n")
        .with("sys/fs/cgroup/cpuset.cpus.effective", "0-7\n");
    let limits = |machine: &Machine| {
        let topology = machine.topology();
        assert_eq!(topology.warnings(), []);
        (topology.cpus().len(), topology.available_parallelism())
    };
    assert_eq!(limits(&machine), (6, 2));
    // In a child group of the namespace's root, and in a sibling group of that root.
    let inner = machine
        .clone()
        .with("proc/self/cgroup", "0::/inner\n")
        .with("sys/fs/cgroup/jobs/7/cgroup.procs", "12\n")
        .with("sys/fs/cgroup/jobs/7/inner/cgroup.procs", "4711\n");
    assert_eq!(limits(&inner), (6, 2));
    let beside = machine
        .clone()
        .with("proc/self/cgroup", "0::/../6\n")
        .with("sys/fs/cgroup/jobs/6/cgroup.procs", "4711\n");
    assert_eq!(limits(&beside), (6, 1));
    // The group is not found: the limits of the mount apply, with a warning.
    let lost = machine.with("sys/fs/cgroup/jobs/7/cgroup.procs", "");
    assert_eq!(lost.topology().cpus().len(), 8);
    assert_eq!(lost.topology().warnings().len(), 1);
}

#[test]
fn version_1_limits_cpus_and_time() {
    let machine = Machine::regular(1, 8, 1)
        .with(
            "proc/self/mountinfo",
            "33 31 0:30 / /cg/cpu\\040time rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
             34 31 0:31 / /cg/sets rw - cgroup cgroup rw,cpuset\n",
        )
        .with("proc/self/cgroup", "4:cpuset:/job\n3:cpu,cpuacct:/job/step\n")
        .with("cg/sets/job/cpuset.cpus", "0-6\n")
        .with("cg/sets/job/cpuset.effective_cpus", "4-6\n")
        .with("cg/cpu time/job/step/cpu.cfs_quota_us", "-1\n")
        .with("cg/cpu time/job/step/cpu.cfs_period_us", "100000\n")
        .with("cg/cpu time/job/cpu.cfs_quota_us", "50000\n")
        .with("cg/cpu time/job/cpu.cfs_period_us", "100000\n");
    assert_eq!(machine.topology().cpus(), &set("4-6"));
    assert_eq!(machine.topology().available_parallelism(), 1);
}

#[test]
fn a_cpuset_without_any_online_cpu_is_a_clear_error() {
    let machine = Machine::regular(1, 2, 1)
        .with("proc/self/mountinfo", V2)
        .with("proc/self/cgroup", "0::/\n")
        .with("elsewhere/cg/cpuset.cpus.effective", "8-9\n");
    let error = Topology::replay(&machine.recording()).unwrap_err();
    assert_eq!(error.to_string(), "none of the online cpus 0-1 is in the cpuset 8-9");
}

#[test]
fn turbo_frequencies_do_not_distinguish_kinds_of_core() {
    let mut machine = Machine::regular(1, 6, 1);
    for (cpu, base, max) in [
        (0, 1_900, 5_000),
        (1, 1_900, 5_200),
        (2, 1_900, 5_200),
        (3, 1_500, 3_900),
        (4, 1_500, 3_900),
        (5, 1_500, 3_900),
    ] {
        machine.put(format!("{CPU}/cpu{cpu}/cpufreq/base_frequency"), base.to_string());
        machine.put(format!("{CPU}/cpu{cpu}/cpufreq/cpuinfo_max_freq"), max.to_string());
        machine.put(format!("{CPU}/cpu{cpu}/cpu_capacity"), (max / 5).to_string());
    }
    let topology = machine.topology();
    assert_eq!(topology.kinds(), [set("0-2"), set("3-5")]);
    let pool = CorePool::builder().topology(topology).build().unwrap();
    let efficient = CoreRequest::new(2).kind(CoreKind::Efficient);
    assert_eq!(pool.reserve(efficient).unwrap().to_string(), "3-4");
    assert!(pool.reserve(CoreRequest::new(4).kind(CoreKind::Performance)).is_err());
}

#[test]
fn performance_counters_take_precedence() {
    let machine = Machine::regular(1, 6, 1)
        .with("sys/devices/cpu_atom/cpus", "0-1\n")
        .with("sys/devices/cpu_lowpower/cpus", "4\n")
        .with("sys/devices/cpu_core/cpus", "2-3,5\n");
    let topology = machine.topology();
    assert_eq!(topology.kinds(), [set("2-3,5"), set("0-1"), set("4")]);
    assert_eq!(topology.order(), [2, 3, 5, 0, 1, 4]);
    // Incomplete counters are ignored.
    let machine = machine.with("sys/devices/cpu_core/cpus", "2-3\n");
    assert_eq!(machine.topology().kinds(), [set("0-5")]);
}

#[test]
fn arm_cores_of_one_model_are_one_kind_at_any_capacity() {
    let mut machine = Machine::regular(1, 4, 1);
    for (cpu, model, capacity) in [
        (0, "0x411fd461", 718),
        (1, "0x410fd461", 731),
        (2, "0x411fd4d0", 997),
        (3, "0x411fd4d0", 1_024),
    ] {
        machine.put(format!("{CPU}/cpu{cpu}/regs/identification/midr_el1"), model);
        machine.put(format!("{CPU}/cpu{cpu}/cpu_capacity"), capacity.to_string());
    }
    assert_eq!(machine.topology().kinds(), [set("2-3"), set("0-1")]);
}

#[test]
fn isolated_cpus_are_leased_on_request_only() {
    let machine = Machine::regular(1, 4, 1).with(&format!("{CPU}/isolated"), "2-3\n");
    let topology = machine.topology();
    let pool = |isolated| {
        CorePool::builder().topology(topology.clone()).include_isolated(isolated).build().unwrap()
    };
    assert_eq!(pool(false).cpus(), &set("0-1"));
    assert_eq!(pool(true).cpus(), &set("0-3"));
    let only = CorePool::builder().topology(topology.restricted_to(&set("2-3"))).build();
    assert!(only.unwrap_err().to_string().contains("include_isolated(true)"));
}

fn nonsense() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-f,\\-]{0,20}",
        any::<String>(),
        Just("-1\n".to_owned()),
        Just("99999999999999999999\n".to_owned()),
        Just("0-4294967295\n".to_owned()),
        Just(mask(&set("0-60000"))),
        Just("ffffffff,ffffffff".to_owned()),
        Just("\0\0\0".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(repetitions(400)))]

    #[test]
    fn nonsense_gives_a_usable_topology_or_a_clear_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(nonsense())), 1..12),
    ) {
        let mut machine = Machine::regular(2, 3, 2)
            .with("proc/self/mountinfo", V2)
            .with("proc/self/cgroup", "0::/a\n")
            .with("elsewhere/cg/a/cpuset.cpus.effective", "0-9\n")
            .with("elsewhere/cg/a/cpu.max", "250000 100000\n")
            .with("sys/devices/cpu_core/cpus", "0-5\n")
            .with("sys/devices/cpu_atom/cpus", "6-11\n");
        let paths: Vec<String> = machine.0.keys().cloned().collect();
        for (path, content) in changes {
            let path = path.get(&paths);
            match content {
                Some(content) => machine.put(path.clone(), content),
                None => drop(machine.0.remove(path)),
            }
        }
        match Topology::replay(&machine.recording()) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(topology) => {
                let order: CpuSet = topology.order().iter().copied().collect();
                prop_assert_eq!(&order, topology.cpus());
                prop_assert!(!topology.to_string().is_empty());
                let all = topology.cpus().len();
                let pool = CorePool::builder().topology(topology).build().unwrap();
                let lease = pool.reserve(CoreRequest::new(all)).unwrap();
                prop_assert_eq!(lease.cores().len(), all);
            }
        }
    }
}
