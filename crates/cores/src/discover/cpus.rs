//! Which cpus there are.

use super::files::Files;
use crate::cpu_set::CpuSet;

pub(super) const CPUS: &str = "sys/devices/system/cpu";

/// The cpus that are online; nothing if no file names one.
pub(super) fn online(files: &mut Files<'_>) -> Option<CpuSet> {
    let named = files.list(&format!("{CPUS}/online")).filter(|online| !online.is_empty());
    let online = named.or_else(|| switched_on(files)).map(|online| described(files, online));
    online.or_else(|| running(files))
}

/// The kernel describes a cpu only while it is online: one without a description, beside others that have one, is about to go.
fn described(files: &mut Files<'_>, online: CpuSet) -> CpuSet {
    let has_topology = |cpu: &u32| files.has_folder(&format!("{CPUS}/cpu{cpu}/topology"));
    let described: CpuSet = online.iter().filter(has_topology).collect();
    if described.is_empty() || described == online {
        return online;
    }
    let rest = online.difference(&described);
    files.warn(
        CPUS,
        format!("cpus {rest} are online but not described as the others are; left out"),
    );
    described
}

/// Old kernels have no list; a cpu that cannot be switched off has no switch.
fn switched_on(files: &mut Files<'_>) -> Option<CpuSet> {
    let present = files.numbered(CPUS, "cpu");
    let on =
        present.iter().filter(|cpu| files.number(&format!("{CPUS}/cpu{cpu}/online")) != Some(0));
    Some(on.collect::<CpuSet>()).filter(|on| !on.is_empty())
}

/// Without sysfs, procfs at least has numbers.
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
    files.warn(CPUS, "is not there; the cpus are from proc/cpuinfo, what they share is not known");
    Some(running)
}

/// The isolated cpus, and those without a tick.
pub(super) fn special(files: &mut Files<'_>) -> (CpuSet, CpuSet) {
    let isolated = files.list(&format!("{CPUS}/isolated")).unwrap_or_default();
    // Kernels without the feature write "(null)".
    let path = format!("{CPUS}/nohz_full");
    let nohz_full = files.text(&path).filter(|text| text != "(null)");
    (isolated, nohz_full.and_then(|text| text.parse().ok()).unwrap_or_default())
}
