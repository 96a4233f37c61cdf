//! Places (cpus, or whole cores) and the groups that they belong to, level by level.

use std::collections::HashMap;

use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::request::{CoreKind, CoreRequest};
use crate::topology::{Level, Topology};

/// The levels below which strict requests do not care: which of the cores below one L3 cache are taken.
const JUDGED: [Level; 4] = [Level::L3, Level::Die, Level::NumaNode, Level::Package];

#[derive(Debug)]
pub(super) struct View {
    size: usize,
    /// The smallest groups first; the last is one group of everything.
    pub(super) levels: Vec<Groups>,
    /// What requests with a restriction may have.
    eligible: HashMap<(Option<CoreKind>, Option<u32>), Bits>,
    nothing: Bits,
}

/// All places, divided.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) members: Vec<Group>,
    /// The size of the largest group.
    pub(super) largest: usize,
    /// Whether strict requests count these groups.
    pub(super) judged: bool,
    /// Whether these are kinds of core, which nobody wants to be spread over.
    pub(super) kinds: bool,
    /// From each group to each other, for NUMA nodes.
    distances: Vec<Vec<u32>>,
}

/// Places whose bits lie in a few words.
#[derive(Debug)]
pub(super) struct Group {
    first_word: usize,
    words: Vec<u64>,
}

impl View {
    pub(super) fn new(
        topology: &Topology,
        size: usize,
        to_places: impl Fn(&CpuSet) -> Bits,
    ) -> Self {
        let all = Bits::below(size);
        let sets = |level| topology.objects(level).map(|object| to_places(&object.cpus)).collect();
        let mut levels = Vec::new();
        for level in [
            Level::Core,
            Level::L2,
            Level::Cluster,
            Level::L3,
            Level::Die,
            Level::NumaNode,
            Level::Package,
        ] {
            let mut groups = Groups::new(sets(level), &all);
            groups.judged = JUDGED.contains(&level);
            if level == Level::NumaNode {
                groups.distances = distances(topology, groups.members.len());
            }
            levels.push(groups);
        }
        let mut kinds = Groups::new(topology.kinds().iter().map(&to_places).collect(), &all);
        kinds.kinds = true;
        levels.push(kinds);
        levels.push(Groups::new(vec![all.clone()], &all));
        // Groups of one place, and one group of all, divide nothing.
        let last = levels.len() - 1;
        let divides = |groups: &Groups| groups.largest > 1 && groups.members.len() > 1;
        levels = levels
            .into_iter()
            .enumerate()
            .filter_map(|(index, groups)| (index == last || divides(&groups)).then_some(groups))
            .collect();
        levels.sort_by_key(|groups| groups.largest);
        Self {
            size,
            levels,
            eligible: eligible(topology, &all, to_places),
            nothing: Bits::default(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The places that a request may have; nothing if it may have any.
    pub(super) fn eligible(&self, request: &CoreRequest) -> Option<&Bits> {
        if request.kind.is_none() && request.numa_node.is_none() {
            return None;
        }
        Some(self.eligible.get(&(request.kind, request.numa_node)).unwrap_or(&self.nothing))
    }
}

fn eligible(
    topology: &Topology,
    all: &Bits,
    to_places: impl Fn(&CpuSet) -> Bits,
) -> HashMap<(Option<CoreKind>, Option<u32>), Bits> {
    let (fastest, others) = topology.kinds().split_first().map_or_else(
        || (all.clone(), Bits::default()),
        |(fastest, others)| {
            (
                to_places(fastest),
                others.iter().flat_map(|kind| to_places(kind).iter().collect::<Vec<_>>()).collect(),
            )
        },
    );
    let kinds = [
        (None, all.clone()),
        (Some(CoreKind::Performance), fastest),
        (Some(CoreKind::Efficient), others),
    ];
    let nodes = topology.objects(Level::NumaNode).map(|node| (node.id, to_places(&node.cpus)));
    let mut nodes: Vec<(Option<u32>, Bits)> = nodes.filter(|(id, _)| id.is_some()).collect();
    if nodes.is_empty() {
        // A machine that says nothing of nodes is node 0.
        nodes.push((Some(0), all.clone()));
    }
    nodes.push((None, all.clone()));
    let mut eligible = HashMap::new();
    for (kind, of_kind) in &kinds {
        for (node, of_node) in &nodes {
            let mut both = of_kind.clone();
            both.intersect_with(of_node);
            eligible.insert((*kind, *node), both);
        }
    }
    eligible
}

fn distances(topology: &Topology, groups: usize) -> Vec<Vec<u32>> {
    let ids: Vec<Option<u32>> = topology
        .objects(Level::NumaNode)
        .filter(|node| !node.cpus.is_empty())
        .map(|node| node.id)
        .collect();
    // One more group has the cpus without a node.
    if ids.len() != groups {
        return Vec::new();
    }
    let distance = |from: Option<u32>, to: Option<u32>| topology.distance(from?, to?);
    ids.iter()
        .map(|from| ids.iter().map(|to| distance(*from, *to).unwrap_or(u32::MAX)).collect())
        .collect()
}

impl Groups {
    /// Places that are in no group are one group more.
    fn new(sets: Vec<Bits>, all: &Bits) -> Self {
        let mut rest = all.clone();
        for set in &sets {
            rest.subtract(set);
        }
        let members: Vec<Group> =
            sets.iter().chain([&rest]).filter(|set| !set.is_empty()).map(Group::new).collect();
        let largest = members.iter().map(Group::len).max().unwrap_or(0);
        Self { members, largest, judged: false, kinds: false, distances: Vec::new() }
    }

    /// How far a group is from those that were chosen before.
    pub(super) fn distance(&self, group: usize, chosen: &[usize]) -> u64 {
        let row = self.distances.get(group);
        chosen.iter().filter_map(|other| Some(u64::from(*row?.get(*other)?))).sum()
    }
}

impl Group {
    fn new(places: &Bits) -> Self {
        let words = places.words();
        let first_word = words.iter().position(|word| *word != 0).unwrap_or(0);
        Self { first_word, words: words[first_word..].to_vec() }
    }

    pub(super) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How many of `places` are in the group.
    pub(super) fn common(&self, places: &Bits) -> usize {
        let theirs = places.words().get(self.first_word..).unwrap_or_default();
        self.words
            .iter()
            .zip(theirs)
            .map(|(word, theirs)| (word & theirs).count_ones() as usize)
            .sum()
    }

    /// Those of `places` that are in the group.
    pub(super) fn part_of(&self, places: &Bits) -> Bits {
        let theirs = places.words().get(self.first_word..).unwrap_or_default();
        let mut words = vec![0; self.first_word];
        words.extend(self.words.iter().zip(theirs).map(|(word, theirs)| word & theirs));
        Bits::from_words(words)
    }
}
