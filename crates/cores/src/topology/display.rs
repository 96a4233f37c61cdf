//! Draws a topology as a tree.

use std::fmt;

use super::{Level, Object, Topology};
use crate::cpu_set::CpuSet;

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        write!(f, "machine: {} cpus ({})", counts.units, self.cpus())?;
        if let Some(quota) = self.quota() {
            write!(f, ", quota {quota}")?;
        }
        writeln!(f)?;
        let mut rest: Vec<&Object> = self.parts.objects.iter().collect();
        rest.sort_by_key(|object| {
            (std::cmp::Reverse(object.cpus.len()), std::cmp::Reverse(object.level))
        });
        let (memory, groups): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|object| object.cpus.is_empty());
        self.draw(f, self.cpus(), &groups, "")?;
        for object in memory.iter().filter(|object| object.level == Level::NumaNode) {
            writeln!(f, "{}, memory only", name(object))?;
        }
        if self.kinds().len() > 1 {
            for (rank, kind) in self.kinds().iter().enumerate() {
                writeln!(f, "kind {rank}{}: {kind}", if rank == 0 { " (fastest)" } else { "" })?;
            }
        }
        for (name, cpus) in [("isolated", self.isolated()), ("nohz_full", self.nohz_full())] {
            if !cpus.is_empty() {
                writeln!(f, "{name}: {cpus}")?;
            }
        }
        for warning in self.warnings() {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

impl Topology {
    /// Draws the contents of `within`. `groups` are all groups in it, the larger ones first.
    fn draw(
        &self,
        f: &mut fmt::Formatter<'_>,
        within: &CpuSet,
        groups: &[&Object],
        indent: &str,
    ) -> fmt::Result {
        let mut branches: Vec<(CpuSet, Vec<&Object>)> = Vec::new();
        for &group in groups {
            match branches.iter_mut().find(|(cpus, _)| group.cpus.is_subset(cpus)) {
                Some((_, inside)) => inside.push(group),
                None => branches.push((group.cpus.clone(), vec![group])),
            }
        }
        let grouped = branches.iter().fold(CpuSet::new(), |all, (cpus, _)| all.union(cpus));
        branches.extend(
            within.difference(&grouped).iter().map(|cpu| (CpuSet::from_iter([cpu]), Vec::new())),
        );
        branches.sort_by_key(|(cpus, _)| {
            self.order.iter().position(|cpu| cpus.contains(*cpu)).unwrap_or(usize::MAX)
        });
        let last = branches.len().saturating_sub(1);
        for (index, (cpus, groups)) in branches.iter().enumerate() {
            let (branch, trunk) =
                if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            // Groups with the same cpus share a line.
            let same = groups.iter().take_while(|group| group.cpus == *cpus).count();
            let names: Vec<String> = groups[..same].iter().map(|group| name(group)).collect();
            let names = if names.is_empty() { "cpu".to_owned() } else { names.join(" = ") };
            writeln!(f, "{indent}{branch}{names}: {cpus}")?;
            let inside = &groups[same..];
            let core = groups[..same].iter().any(|group| group.level == Level::Core);
            if !core && cpus.len() > 1 {
                self.draw(f, cpus, inside, &format!("{indent}{trunk}"))?;
            }
        }
        Ok(())
    }
}

fn name(object: &Object) -> String {
    let mut name = object.level.to_string();
    // The numbers of caches and clusters mean nothing to a reader.
    if !matches!(object.level, Level::L2 | Level::L3 | Level::Cluster)
        && let Some(id) = object.id
    {
        name = format!("{name} {id}");
    }
    match object.size_kib {
        Some(kib) if kib.is_multiple_of(1_024) => format!("{name} ({} MiB)", kib / 1_024),
        Some(kib) => format!("{name} ({kib} KiB)"),
        None => name,
    }
}
