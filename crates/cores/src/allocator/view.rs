//! Groups of positions (of cpus or of whole cores), level by level.

use std::collections::HashMap;

use super::fewest::Tree;
use super::groups::Groups;
use crate::bits::Bits;
use crate::cpu_set::CpuSet;
use crate::request::{CoreKind, CoreRequest};
use crate::topology::{Level, Topology};

/// The levels that divide a machine. `true` marks those by which strict requests compare
/// placements: which of the cores below one L3 cache they get does not matter to them.
const LEVELS: [(Level, bool); 9] = [
    (Level::Core, false),
    (Level::L2, false),
    (Level::Cluster, false),
    (Level::L3, true),
    (Level::Die, true),
    (Level::NumaNode, true),
    (Level::Package, true),
    (Level::Book, false),
    (Level::Drawer, false),
];

#[derive(Debug)]
pub(super) struct View {
    size: usize,
    /// The smallest groups first. The last level is one group of everything.
    pub(super) levels: Vec<Groups>,
    /// `None` if the machine's groups do not nest.
    pub(super) tree: Option<Tree>,
    /// The positions that requests with a restriction may get.
    eligible: HashMap<(Option<CoreKind>, Option<u32>), Bits>,
    nothing: Bits,
}

impl View {
    pub(super) fn new(
        topology: &Topology,
        size: usize,
        to_positions: impl Fn(&CpuSet) -> Bits,
    ) -> Self {
        let all = Bits::below(size);
        let mut levels: Vec<Groups> = LEVELS
            .iter()
            .map(|(level, compared)| Groups {
                compared: *compared,
                ..Groups::of_level(topology, *level, size, &to_positions)
            })
            .collect();
        let kinds = topology.kinds().iter().map(&to_positions).collect();
        levels.push(Groups { kinds: true, ..Groups::new(kinds, size) });
        // Groups of one position, and one group of everything, divide nothing.
        levels.retain(|level| level.largest > 1 && level.members.len() > 1);
        levels.sort_by_key(|level| level.largest);
        levels.dedup_by(|level, smaller| {
            let same = level.members == smaller.members;
            if same {
                smaller.compared |= level.compared;
                smaller.kinds &= level.kinds;
                if smaller.distances.is_empty() {
                    smaller.distances = std::mem::take(&mut level.distances);
                }
            }
            same
        });
        levels.push(Groups::new(vec![all.clone()], size));
        Self {
            size,
            tree: Tree::new(&levels),
            levels,
            eligible: eligible(topology, &all, to_positions),
            nothing: Bits::default(),
        }
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the positions that a request may get; `None` if it may get any.
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
    to_positions: impl Fn(&CpuSet) -> Bits,
) -> HashMap<(Option<CoreKind>, Option<u32>), Bits> {
    let (fastest, others) = topology.kinds().split_first().map_or_else(
        || (all.clone(), Bits::default()),
        |(fastest, others)| {
            (
                to_positions(fastest),
                others
                    .iter()
                    .flat_map(|kind| to_positions(kind).iter().collect::<Vec<_>>())
                    .collect(),
            )
        },
    );
    let kinds = [
        (None, all.clone()),
        (Some(CoreKind::Performance), fastest),
        (Some(CoreKind::Efficient), others),
    ];
    let nodes = topology.objects(Level::NumaNode).map(|node| (node.id, to_positions(&node.cpus)));
    let mut nodes: Vec<(Option<u32>, Bits)> = nodes.filter(|(id, _)| id.is_some()).collect();
    if nodes.is_empty() {
        // A machine that describes no nodes is node 0.
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
