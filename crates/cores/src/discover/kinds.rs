//! Detects the kinds of core on hybrid machines.
//!
//! Maximum frequencies do not distinguish kinds: turbo modes give some cores of a kind a higher
//! one. The first of these sources that covers all cpus decides: the kinds named by the kernel's
//! performance counters (Intel), the model of each core (ARM), capacities if they differ, base
//! frequencies, nominal performance (ACPI).

use std::collections::BTreeMap;

use super::cpus::CPUS;
use super::files::Files;
use crate::cpu_set::CpuSet;

/// Intel's names of the counters, the fastest kind first.
const COUNTERS: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];

/// Returns the kinds of the online cpus, the fastest first; a single set if no source distinguishes
/// them.
pub(super) fn read(files: &mut Files<'_>, online: &CpuSet) -> Vec<CpuSet> {
    let kinds = by_counters(files, online)
        .or_else(|| by_model(files, online))
        // A kernel without capacities writes the same one for each cpu.
        .or_else(|| by_figure(files, online, "cpu_capacity").filter(|kinds| kinds.len() > 1))
        .or_else(|| by_figure(files, online, "cpufreq/base_frequency"))
        .or_else(|| by_figure(files, online, "acpi_cppc/nominal_perf"));
    kinds.unwrap_or_else(|| vec![online.clone()])
}

fn by_counters(files: &mut Files<'_>, online: &CpuSet) -> Option<Vec<CpuSet>> {
    let mut left = online.clone();
    let mut kinds = Vec::new();
    for name in COUNTERS {
        let cpus = files.list(&format!("sys/devices/{name}/cpus")).unwrap_or_default();
        let kind = cpus.intersection(&left);
        left = left.difference(&kind);
        kinds.push(kind);
    }
    kinds.retain(|kind| !kind.is_empty());
    left.is_empty().then_some(kinds)
}

/// Groups cpus by the vendor (bits 24 to 31) and model (bits 4 to 15) in ARM's main id register.
/// The other bits are revisions.
fn by_model(files: &mut Files<'_>, online: &CpuSet) -> Option<Vec<CpuSet>> {
    const MAKER_AND_MODEL: u64 = 0xff00_fff0;
    let mut models: BTreeMap<u64, CpuSet> = BTreeMap::new();
    for cpu in online.iter() {
        let text = files.text(&format!("{CPUS}/cpu{cpu}/regs/identification/midr_el1"))?;
        let model = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()? & MAKER_AND_MODEL;
        models.entry(model).or_default().insert(cpu);
    }
    let mut kinds: Vec<CpuSet> = models.into_values().collect();
    if kinds.len() > 1 {
        let mut capacity = |kind: &CpuSet| {
            let of = |cpu| files.number(&format!("{CPUS}/cpu{cpu}/cpu_capacity")).unwrap_or(0);
            kind.iter().map(of).max()
        };
        kinds.sort_by_cached_key(|kind| std::cmp::Reverse(capacity(kind)));
    }
    Some(kinds)
}

/// Groups cpus by a figure. Figures that differ by at most a tenth belong to one kind.
fn by_figure(files: &mut Files<'_>, online: &CpuSet, file: &str) -> Option<Vec<CpuSet>> {
    let mut figures: BTreeMap<i64, CpuSet> = BTreeMap::new();
    for cpu in online.iter() {
        let figure =
            files.number(&format!("{CPUS}/cpu{cpu}/{file}")).filter(|figure| *figure > 0)?;
        figures.entry(figure).or_default().insert(cpu);
    }
    let mut kinds: Vec<(i64, CpuSet)> = Vec::new();
    for (figure, cpus) in figures.into_iter().rev() {
        match kinds.last_mut() {
            Some((highest, kind)) if figure >= *highest - *highest / 10 => {
                *kind = kind.union(&cpus);
            }
            _ => kinds.push((figure, cpus)),
        }
    }
    Some(kinds.into_iter().map(|(_, cpus)| cpus).collect())
}
