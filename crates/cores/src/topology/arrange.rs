//! Arranges groups of cpus in a tree, and cpus in the order of that tree.
//!
//! The groups of a sane machine nest. Which level contains which differs (an L3 cache may hold
//! several NUMA nodes, or a node several caches), so sizes decide, and the usual order of the
//! levels only decides between groups of equal size.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cpu_set::CpuSet;
use crate::topology::{Level, Object, Warning};

/// Removes duplicates and groups that overlap others without nesting.
///
/// Sorts by level, then by first cpu, then by number.
pub(super) fn nested(objects: Vec<Object>, warnings: &mut Vec<Warning>) -> Vec<Object> {
    let mut objects = outermost_first(objects);
    // The innermost group so far of each cpu.
    let mut innermost: Vec<Option<usize>> = Vec::new();
    let mut kept: Vec<Object> = Vec::new();
    for object in objects.drain(..) {
        let innermost_of = |cpu: u32| innermost.get(cpu as usize).copied().flatten();
        if let Some(first) = object.cpus.first() {
            let parent = innermost_of(first);
            if object.cpus.iter().any(|cpu| innermost_of(cpu) != parent) {
                let problem = format!(
                    "overlaps another group without being part of it ({}); left out",
                    object.cpus
                );
                warnings.push(Warning::new(object.level.to_string(), problem));
                continue;
            }
            // Duplicates are adjacent after sorting.
            if kept
                .last()
                .is_some_and(|last| last.level == object.level && last.cpus == object.cpus)
            {
                continue;
            }
        }
        for cpu in object.cpus.iter() {
            let cpu = cpu as usize;
            if cpu >= innermost.len() {
                innermost.resize(cpu + 1, None);
            }
            innermost[cpu] = Some(kept.len());
        }
        kept.push(object);
    }
    kept.sort_by_key(|object| {
        (object.level, object.cpus.is_empty(), object.cpus.first(), object.id)
    });
    kept
}

/// Orders cpus by kind, then by the first cpu of each enclosing group from the outermost to the
/// innermost, then by number, as a walk through the tree visits them.
pub(super) fn order(cpus: &CpuSet, objects: &[Object], kinds: &[CpuSet]) -> Vec<u32> {
    let end = cpus.iter().last().map_or(0, |last| last as usize + 1);
    let mut paths: Vec<Vec<u32>> = vec![Vec::new(); end];
    for object in outermost_first(objects.iter().collect::<Vec<_>>()) {
        for cpu in object.cpus.iter().filter(|cpu| cpus.contains(*cpu)) {
            paths[cpu as usize].extend(object.cpus.first());
        }
    }
    let kind_of =
        |cpu: u32| kinds.iter().position(|kind| kind.contains(cpu)).unwrap_or(kinds.len());
    let mut order: Vec<u32> = cpus.iter().collect();
    for &cpu in &order {
        paths[cpu as usize].push(cpu);
    }
    order.sort_by_cached_key(|&cpu| (kind_of(cpu), std::mem::take(&mut paths[cpu as usize])));
    order
}

/// Divides the cpus that are in no group of `level` into groups: those of one larger group belong
/// together. Where no larger group is known, those of the largest smaller group do, and any other
/// cpu is alone.
pub(super) fn ungrouped(cpus: &CpuSet, objects: &[Object], level: Level) -> Vec<CpuSet> {
    let grouped = objects.iter().filter(|object| object.level == level);
    let rest = grouped.fold(cpus.clone(), |rest, group| rest.difference(&group.cpus));
    let Some(last) = rest.iter().last() else { return Vec::new() };
    // For each cpu: the smallest enclosing group that is larger than those of the level, and the
    // largest one that is smaller.
    let mut around = vec![(None, None); last as usize + 1];
    for (index, object) in outermost_first(objects.iter().collect::<Vec<_>>()).iter().enumerate() {
        let smaller = object.level < level && object.cpus.is_subset(&rest);
        for cpu in object.cpus.iter().filter(|cpu| rest.contains(*cpu)) {
            let (above, below) = &mut around[cpu as usize];
            if smaller {
                below.get_or_insert(index);
            } else {
                *above = Some(index);
            }
        }
    }
    let mut groups = BTreeMap::<_, CpuSet>::new();
    for cpu in rest.iter() {
        let (above, below) = around[cpu as usize];
        let key = match (above, below) {
            (Some(_), _) => (above, None, None),
            (None, Some(_)) => (None, below, None),
            (None, None) => (None, None, Some(cpu)),
        };
        groups.entry(key).or_default().insert(cpu);
    }
    groups.into_values().collect()
}

/// Sorts the larger groups first, and of equal ones the group that usually contains the other.
fn outermost_first<T: std::borrow::Borrow<Object>>(mut objects: Vec<T>) -> Vec<T> {
    objects.sort_by_key(|object| {
        let object = object.borrow();
        (Reverse(object.cpus.len()), Reverse(object.level), object.cpus.first())
    });
    objects
}
