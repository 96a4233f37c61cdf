//! Facts about the machine, without which figures mean nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread;

use crate::figures::Outcome;

/// Returns the number of cores that this process may use.
pub(crate) fn cores() -> Outcome<u32> {
    Ok(u32::try_from(thread::available_parallelism()?.get())?)
}

pub(crate) fn facts() -> BTreeMap<String, String> {
    let caches = distinct("cache/index3/shared_cpu_list");
    let sockets = distinct("topology/physical_package_id");
    let facts = [
        ("processor", field("/proc/cpuinfo", "model name")),
        ("caches of the last level", caches),
        ("sockets", sockets),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("load before", read("/proc/loadavg")),
        ("version", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("commit", option_env!("BRIGADE_COMMIT").map(str::to_owned)),
    ];
    let unknown = || "unknown".to_owned();
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.unwrap_or_else(unknown)))
        .collect()
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim_start_matches([' ', '\t', ':']).to_owned())
}

/// Returns how many different texts a file has that each cpu has.
fn distinct(file: &str) -> Option<String> {
    let cpus = fs::read_dir("/sys/devices/system/cpu").ok()?;
    let texts = cpus.filter_map(|cpu| read(cpu.ok()?.path().join(file).to_str()?));
    let texts: BTreeSet<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.len().to_string())
}
