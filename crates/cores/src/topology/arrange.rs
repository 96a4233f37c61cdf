//! From groups of cpus to a tree, and from the tree to an order.
//!
//! Groups of a sane machine nest. Which level is above which differs (an L3 cache holds several NUMA nodes, or a node several
//! caches), so that sizes decide, and the usual order of the levels only between equal groups.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cpu_set::CpuSet;
use crate::topology::{Level, Object, Warning};

/// Drops groups that overlap others without containing them or being contained, and doubles.
///
/// Sorted by level, then by first cpu, then by number.
pub(super) fn nested(objects: Vec<Object>, warnings: &mut Vec<Warning>) -> Vec<Object> {
    let mut objects = from_outside(objects);
    // The innermost group so far that each cpu belongs to.
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
            // Doubles are sorted next to each other.
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

/// The cpus by kind, then by the first cpu of each group from the outermost to the innermost, then by number: the order in which
/// a walk through the tree meets them.
pub(super) fn order(cpus: &CpuSet, objects: &[Object], kinds: &[CpuSet]) -> Vec<u32> {
    let end = cpus.iter().last().map_or(0, |last| last as usize + 1);
    let mut paths: Vec<Vec<u32>> = vec![Vec::new(); end];
    for object in from_outside(objects.iter().collect::<Vec<_>>()) {
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

/// The cpus that are in no group of `level`, divided into groups: those of one larger group are together; where no larger one is
/// known, those of the largest smaller group, or each cpu alone.
pub(super) fn ungrouped(cpus: &CpuSet, objects: &[Object], level: Level) -> Vec<CpuSet> {
    let grouped = objects.iter().filter(|object| object.level == level);
    let rest = grouped.fold(cpus.clone(), |rest, group| rest.difference(&group.cpus));
    let Some(last) = rest.iter().last() else { return Vec::new() };
    // By cpu: the smallest group around it that is larger than those of the level, and the largest that is smaller.
    let mut around = vec![(None, None); last as usize + 1];
    for (index, object) in from_outside(objects.iter().collect::<Vec<_>>()).iter().enumerate() {
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

/// The large ones first; of equal ones the one that usually contains the other.
fn from_outside<T: std::borrow::Borrow<Object>>(mut objects: Vec<T>) -> Vec<T> {
    objects.sort_by_key(|object| {
        let object = object.borrow();
        (Reverse(object.cpus.len()), Reverse(object.level), object.cpus.first())
    });
    objects
}
