//! Finds the online cpus, and those with a special role.

use super::files::Files;
use crate::cpu_set::CpuSet;

pub(super) const CPUS: &str = "sys/devices/system/cpu";

/// Returns the online cpus; `None` if no file lists one.
pub(super) fn online(files: &mut Files<'_>) -> Option<CpuSet> {
    let named = files.list(&format!("{CPUS}/online")).filter(|online| !online.is_empty());
    let online = named.or_else(|| switched_on(files)).map(|online| described(files, online));
    online.or_else(|| running(files))
}

/// Removes cpus that are going offline: the kernel describes a cpu only while it is online, so one
/// without a description, among others that have one, is about to go.
fn described(files: &mut Files<'_>, online: CpuSet) -> CpuSet {
    let has_topology = |cpu: &u32| files.has_folder(&format!("{CPUS}/cpu{cpu}/topology"));
    let described: CpuSet = online.iter().filter(has_topology).collect();
    if described.is_empty() || described == online {
        return online;
    }
    let rest = online.difference(&described);
    files.warn(CPUS, format!("cpus {rest} are online but have no description; left out"));
    described
}

/// Finds online cpus on old kernels, which have no list. A cpu that is always online has no
/// `online` file.
fn switched_on(files: &mut Files<'_>) -> Option<CpuSet> {
    let present = files.numbered(CPUS, "cpu");
    let on =
        present.iter().filter(|cpu| files.number(&format!("{CPUS}/cpu{cpu}/online")) != Some(0));
    Some(on.collect::<CpuSet>()).filter(|on| !on.is_empty())
}

/// Finds cpus without sysfs: procfs has at least their numbers.
fn running(files: &mut Files<'_>) -> Option<CpuSet> {
    let text = files.text("proc/cpuinfo")?;
    let running: CpuSet = text
        .lines()
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == "processor").then(|| value.trim().parse().ok()).flatten()
        })
        .filter(|cpu| *cpu < CpuSet::PARSE_LIMIT)
        .collect();
    if running.is_empty() {
        return None;
    }
    files.warn(
        CPUS,
        "does not exist; the cpus are from proc/cpuinfo, without caches, nodes and packages",
    );
    Some(running)
}

/// Returns the isolated cpus, and those without a scheduling tick.
pub(super) fn special(files: &mut Files<'_>) -> (CpuSet, CpuSet) {
    let isolated = files.list(&format!("{CPUS}/isolated")).unwrap_or_default();
    // Kernels without the feature write "(null)".
    let path = format!("{CPUS}/nohz_full");
    let nohz_full = files.text(&path).filter(|text| text != "(null)");
    (isolated, nohz_full.and_then(|text| text.parse().ok()).unwrap_or_default())
}
