//! Reads cores, clusters, dies, packages, books, drawers and caches from the sysfs description of
//! each cpu.

use super::cpus::CPUS;
use super::files::Files;
use crate::cpu_set::CpuSet;
use crate::topology::{Level, Object};

/// Maximum number of caches of a cpu. All have fewer; ia64 has five.
const MAX_CACHES: usize = 10;

/// Reads the groups of the online cpus. The groups of one level never overlap.
pub(super) fn read(files: &mut Files<'_>, online: &CpuSet) -> Vec<Object> {
    let mut levels =
        [Level::Core, Level::Cluster, Level::Die, Level::Package, Level::L2, Level::L3]
            .map(Partition::new);
    let mut books_and_drawers = books_and_drawers(files, online);
    for cpu in online.iter() {
        let folder = format!("{CPUS}/cpu{cpu}");
        let [core, cluster, die, package, l2, l3] = &mut levels;
        let inner = [&mut *core, package].into_iter();
        for partition in inner.chain(&mut books_and_drawers).chain([cluster, die]) {
            partition.add_siblings(files, cpu, &folder, online);
        }
        read_caches(files, cpu, &folder, online, core, [(2, l2), (3, l3)]);
    }
    let [core, mut cluster, mut die, package, l2, l3] = levels;
    // Some architectures report a cluster per core, or a die per package, if they have no clusters
    // or dies.
    cluster.objects.retain(|cluster| core.objects.iter().all(|core| core.cpus != cluster.cpus));
    die.objects.retain(|die| package.objects.iter().all(|package| package.cpus != die.cpus));
    let levels = [core, cluster, die, package, l2, l3].into_iter().chain(books_and_drawers);
    levels.flat_map(|level| level.objects).collect()
}

/// Returns books and drawers on machines that have them (s390), so that other machines are not
/// searched for them cpu by cpu.
fn books_and_drawers(files: &mut Files<'_>, online: &CpuSet) -> Vec<Partition> {
    let Some(first) = online.first() else { return Vec::new() };
    let names = files.names(&format!("{CPUS}/cpu{first}/topology"));
    let levels = [(Level::Book, "book_siblings"), (Level::Drawer, "drawer_siblings")];
    let there = levels.into_iter().filter(|(_, name)| names.contains(*name));
    there.map(|(level, _)| Partition::new(level)).collect()
}

fn siblings(files: &mut Files<'_>, folder: &str, name: &str, old_name: &str) -> Option<CpuSet> {
    let mut read = |name: &str| {
        files.cpus(&format!("{folder}/topology/{name}"), &format!("{folder}/topology/{name}_list"))
    };
    read(name).or_else(|| if old_name.is_empty() { None } else { read(old_name) })
}

/// Splits siblings with different core ids: the modules of AMD's Bulldozer share some units and are
/// reported as siblings, but their cpus are separate cores.
fn same_core(files: &mut Files<'_>, cpu: u32, siblings: &CpuSet) -> CpuSet {
    if siblings.len() < 2 {
        return siblings.clone();
    }
    let mut core_id = |cpu| files.number(&format!("{CPUS}/cpu{cpu}/topology/core_id"));
    let own = core_id(cpu);
    siblings.iter().filter(|sibling| core_id(*sibling) == own).collect()
}

fn read_caches(
    files: &mut Files<'_>,
    cpu: u32,
    folder: &str,
    online: &CpuSet,
    cores: &Partition,
    mut levels: [(i64, &mut Partition); 2],
) {
    // The numbers may have gaps.
    let indices = files.numbered(&format!("{folder}/cache"), "index");
    for index in indices.iter().take(MAX_CACHES) {
        let cache = format!("{folder}/cache/index{index}");
        let Some(level) = files.number(&format!("{cache}/level")) else { continue };
        let Some((_, partition)) = levels.iter_mut().find(|(known, _)| *known == level) else {
            continue;
        };
        if !partition.is_missing(cpu)
            || files.text(&format!("{cache}/type")).as_deref() == Some("Instruction")
        {
            continue;
        }
        let map = format!("{cache}/shared_cpu_map");
        let Some(mut cpus) = files.cpus(&map, &format!("{cache}/shared_cpu_list")) else {
            continue;
        };
        if cpus.is_empty() {
            // Itanium leaves some maps empty; such a cache belongs to the core alone.
            cpus = cores.of(cpu).unwrap_or_default();
        }
        let size = size_kib(files, &format!("{cache}/size"));
        if size == Some(0) {
            // Knights Landing without a memory-side cache.
            continue;
        }
        let id = files.id(&format!("{cache}/id"));
        if let Some(object) = partition.add(files, cpu, &cpus.intersection(online), id) {
            object.size_kib = size;
        }
    }
}

fn size_kib(files: &mut Files<'_>, path: &str) -> Option<u64> {
    let text = files.text(path)?;
    text.strip_suffix('K').unwrap_or(&text).parse().ok()
}

/// The groups of one level so far. The first cpu of a group defines it for all its cpus.
struct Partition {
    level: Level,
    objects: Vec<Object>,
    grouped: CpuSet,
    /// Cpus whose description was rejected.
    disputed: CpuSet,
    /// The set that was left out last: the other cpus of a group usually report the same one.
    left_out: CpuSet,
}

impl Partition {
    fn new(level: Level) -> Self {
        Self {
            level,
            objects: Vec::new(),
            grouped: CpuSet::new(),
            disputed: CpuSet::new(),
            left_out: CpuSet::new(),
        }
    }

    /// Adds the group of a cpu that sysfs describes by a set of siblings.
    fn add_siblings(&mut self, files: &mut Files<'_>, cpu: u32, folder: &str, online: &CpuSet) {
        let (name, old_name, id) = match self.level {
            Level::Core => ("core_cpus", "thread_siblings", "core_id"),
            Level::Package => ("package_cpus", "core_siblings", "physical_package_id"),
            Level::Book => ("book_siblings", "", "book_id"),
            Level::Drawer => ("drawer_siblings", "", "drawer_id"),
            Level::Cluster => ("cluster_cpus", "", "cluster_id"),
            _ => ("die_cpus", "", "die_id"),
        };
        if !self.is_missing(cpu) {
            return;
        }
        let Some(cpus) = siblings(files, folder, name, old_name) else { return };
        let mut cpus = cpus.intersection(online);
        match self.level {
            Level::Core => cpus = same_core(files, cpu, &cpus),
            // Machines without dies or clusters report one for each cpu.
            Level::Cluster | Level::Die if cpus.len() < 2 => return,
            _ => {}
        }
        let id = files.id(&format!("{folder}/topology/{id}"));
        self.add(files, cpu, &cpus, id);
    }

    fn is_missing(&self, cpu: u32) -> bool {
        !self.grouped.contains(cpu)
    }

    fn of(&self, cpu: u32) -> Option<CpuSet> {
        Some(self.objects.iter().find(|object| object.cpus.contains(cpu))?.cpus.clone())
    }

    /// Adds and returns a new group, unless it contradicts those of other cpus.
    fn add(
        &mut self,
        files: &mut Files<'_>,
        cpu: u32,
        cpus: &CpuSet,
        id: Option<u32>,
    ) -> Option<&mut Object> {
        let problem = if !cpus.contains(cpu) {
            "which does not contain the cpu itself"
        } else if cpus.intersects(&self.grouped) || cpus.intersects(&self.disputed) {
            "which contradicts other cpus"
        } else {
            self.grouped = self.grouped.union(cpus);
            self.objects.push(Object::new(self.level, id, cpus.clone()));
            return self.objects.last_mut();
        };
        self.disputed.insert(cpu);
        if self.left_out != *cpus {
            let subject = format!("{} of cpu {cpu}", self.level);
            files.warn(&subject, format!("lists {cpus}, {problem}; left out"));
            self.left_out = cpus.clone();
        }
        None
    }
}
