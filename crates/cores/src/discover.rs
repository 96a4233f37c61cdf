//! Reads a machine's topology from sysfs and procfs, of this machine or of a recorded one.
//!
//! Linux is not always right: files are missing or unreadable, the list and the mask of the same
//! cpus disagree, NUMA nodes overlap. None of that is fatal. The rules are those of hwloc, which
//! has seen more machines than any other program: masks take precedence over lists; of two
//! overlapping groups of the same level, the first is kept and the second is dropped as a whole;
//! everything that is dropped is reported as a warning.

mod cgroup;
mod cpus;
mod files;
mod groups;
mod kinds;
mod numa;
mod recording;

use std::path::{Path, PathBuf};

use crate::cpu_set::CpuSet;
use crate::error::DiscoverError;
use crate::topology::{Level, Object, Parts, Topology};
use files::Files;
pub use recording::Recording;

impl Topology {
    /// Discovers this machine, limited to the calling thread's affinity mask.
    pub fn discover() -> Result<Self, DiscoverError> {
        let mask = brigade_sys::affinity::current().map_err(DiscoverError::Affinity)?;
        let root = Path::new("/");
        read(&mut Files::folder(root), root, Some(&CpuSet::from_words(mask)))
    }

    /// Discovers the machine whose `sys` and `proc` folders are below `root`. Affinity masks are
    /// not files, so they limit nothing here; see [`restricted_to`](Self::restricted_to).
    pub fn discover_in(root: impl AsRef<Path>) -> Result<Self, DiscoverError> {
        let root = root.as_ref();
        read(&mut Files::folder(root), root, None)
    }

    /// Discovers a recorded machine.
    pub fn replay(recording: &Recording) -> Result<Self, DiscoverError> {
        read(&mut Files::recording(recording), Path::new("the recording"), None)
    }
}

fn read(
    files: &mut Files<'_>,
    root: &Path,
    affinity: Option<&CpuSet>,
) -> Result<Topology, DiscoverError> {
    let Some(online) = cpus::online(files).or_else(|| affinity.cloned()) else {
        return Err(DiscoverError::NoCpus { root: PathBuf::from(root) });
    };
    let groups = groups::read(files, &online);
    let numa = numa::read(files, &online);
    let kinds = kinds::read(files, &online);
    let (isolated, nohz_full) = cpus::special(files);
    let limits = cgroup::read(files);

    let mut parts = Parts {
        cpus: online.clone(),
        online: online.clone(),
        isolated,
        nohz_full,
        objects: groups,
        kinds,
        distances: numa.distances,
        quota: limits.quota,
        warnings: Vec::new(),
    };
    parts.objects.extend(numa.nodes);
    if let Some(allowed) = &limits.memory {
        for node in parts.objects.iter_mut().filter(|object| object.level == Level::NumaNode) {
            node.memory = node.id.is_some_and(|id| allowed.contains(id));
        }
    }
    // Doubtful groups are dropped before any cpus are removed: the remains of two groups may nest
    // by accident.
    let mut parts = Parts::from(Topology::from(parts));
    let mut allowed = online;
    if let Some(cpuset) = limits.cpus {
        if !cpuset.intersects(&allowed) {
            return Err(DiscoverError::NoneUsable { online: allowed, cpuset });
        }
        allowed = allowed.intersection(&cpuset);
    }
    match affinity {
        // The kernel runs the thread on these cpus, so the files are wrong.
        Some(affinity) if !affinity.intersects(&allowed) => {
            let problem = format!("cpus {affinity} are not in sysfs; their topology is unknown");
            files.warn("affinity mask", problem);
            parts = Parts::from(Topology::flat(affinity.clone()));
        }
        affinity => {
            let allowed = affinity.map_or(allowed.clone(), |mask| mask.intersection(&allowed));
            let objects = parts.objects.clone();
            parts.restrict(&allowed, |object| holds_memory(object, &objects));
        }
    }
    parts.warnings.extend(files.take_warnings());
    for warning in &parts.warnings {
        tracing::debug!(subject = warning.subject, problem = warning.problem, "doubtful topology");
    }
    Ok(parts.into())
}

/// Returns `true` if a group has usable memory, so that it is kept when it loses its last cpu. The
/// memory of a node belongs to every larger group, and to the outermost group of the same size.
fn holds_memory(group: &Object, all: &[Object]) -> bool {
    if group.level == Level::NumaNode {
        return group.memory;
    }
    let outermost = || {
        !all.iter().any(|other| {
            other.level > group.level && other.level != Level::NumaNode && other.cpus == group.cpus
        })
    };
    all.iter().any(|node| {
        node.level == Level::NumaNode
            && node.memory
            && !node.cpus.is_empty()
            && node.cpus.is_subset(&group.cpus)
            && (node.cpus != group.cpus || outermost())
    })
}
