//! The groups of a level, such as its nodes, and the positions in them.

use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::topology::{Level, Topology};

/// All positions, divided into groups.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) members: Vec<PositionGroup>,
    /// The group of each position.
    pub(super) member_of: Vec<usize>,
    /// Size of the largest group.
    pub(super) largest: usize,
    /// `true` if strict requests compare placements by these groups.
    pub(super) compared: bool,
    /// `true` if these are kinds of core. No policy spreads over them.
    pub(super) kinds: bool,
    /// Distances between groups, for NUMA nodes.
    pub(super) distances: Vec<Vec<u32>>,
}

/// Positions whose bits lie in a few words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PositionGroup {
    first_word: usize,
    words: Vec<u64>,
}

impl Groups {
    /// Returns the groups of a level, including those that the machine does not describe; a single
    /// group if it describes none.
    pub(super) fn of_level(
        topology: &Topology,
        level: Level,
        size: usize,
        to_positions: impl Fn(&CpuSet) -> Bits,
    ) -> Self {
        let mut cpus: Vec<CpuSet> =
            topology.objects(level).map(|object| object.cpus.clone()).collect();
        if cpus.iter().any(|cpus| !cpus.is_empty()) {
            cpus.extend(topology.ungrouped(level));
        }
        let mut rest = Bits::below(size);
        let mut sets = Vec::new();
        cpus.retain(|cpus| {
            // Groups smaller than a core are the same core.
            let mut positions = to_positions(cpus);
            positions.intersect_with(&rest);
            rest.subtract(&positions);
            let any = !positions.is_empty();
            sets.extend(any.then_some(positions));
            any
        });
        let distances =
            if level < Level::NumaNode { Vec::new() } else { distances(topology, &cpus) };
        Self { distances, ..Self::new(sets, size) }
    }

    /// Positions that are in none of these sets form another group. The sets do not overlap.
    pub(super) fn new(mut sets: Vec<Bits>, size: usize) -> Self {
        let mut rest = Bits::below(size);
        for set in &sets {
            rest.subtract(set);
        }
        sets.push(rest);
        sets.retain(|set| !set.is_empty());
        let mut member_of = vec![0; size];
        for (index, set) in sets.iter().enumerate() {
            for position in set.iter() {
                member_of[position] = index;
            }
        }
        let members: Vec<PositionGroup> = sets.iter().map(PositionGroup::new).collect();
        let largest = members.iter().map(PositionGroup::len).max().unwrap_or(0);
        Self { members, member_of, largest, compared: false, kinds: false, distances: Vec::new() }
    }

    /// Returns the distance of a group from those that are already chosen.
    pub(super) fn distance(&self, group: usize, chosen: &[usize]) -> u64 {
        let row = self.distances.get(group);
        chosen.iter().filter_map(|other| Some(u64::from(*row?.get(*other)?))).sum()
    }
}

impl PositionGroup {
    fn new(positions: &Bits) -> Self {
        let words = positions.words();
        let first_word = words.iter().position(|word| *word != 0).unwrap_or(0);
        Self { first_word, words: words[first_word..].to_vec() }
    }

    pub(super) fn is_subset(&self, other: &Self) -> bool {
        (self.first_word..).zip(&self.words).all(|(index, word)| {
            let theirs = index.checked_sub(other.first_word).and_then(|at| other.words.get(at));
            word & !theirs.unwrap_or(&0) == 0
        })
    }

    /// Returns the lowest position.
    pub(super) fn first(&self) -> usize {
        let zeros = self.words.first().map_or(0, |word| word.trailing_zeros());
        self.first_word * u64::BITS as usize + zeros as usize
    }

    pub(super) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the number of `positions` that are in the group.
    pub(super) fn common(&self, positions: &Bits) -> usize {
        let theirs = positions.words().get(self.first_word..).unwrap_or_default();
        self.words
            .iter()
            .zip(theirs)
            .map(|(word, theirs)| (word & theirs).count_ones() as usize)
            .sum()
    }

    /// Returns the `positions` that are in the group.
    pub(super) fn part_of(&self, positions: &Bits) -> Bits {
        let theirs = positions.words().get(self.first_word..).unwrap_or_default();
        let mut words = vec![0; self.first_word];
        words.extend(self.words.iter().zip(theirs).map(|(word, theirs)| word & theirs));
        Bits::from_words(words)
    }
}

/// Returns the distances between groups of cpus, which are those between the nodes of their first
/// cpus.
fn distances(topology: &Topology, groups: &[CpuSet]) -> Vec<Vec<u32>> {
    let node = |cpu| topology.object_of(cpu, Level::NumaNode).and_then(|node| node.id);
    let nodes: Vec<Option<u32>> = groups.iter().map(|group| node(group.first()?)).collect();
    let distance = |from: Option<u32>, to: Option<u32>| topology.distance(from?, to?);
    nodes
        .iter()
        .map(|from| nodes.iter().map(|to| distance(*from, *to).unwrap_or(u32::MAX)).collect())
        .collect()
}
