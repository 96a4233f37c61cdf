//! Places requests compactly or scattered.

use std::cmp::Reverse;

use super::groups::Groups;
use super::pack::{open_groups, pack};
use super::view::View;
use crate::bits::Bits;

/// Chooses `count` free positions in as few packages as possible, then as few nodes, and so on down
/// to the caches: inside the smallest group that has enough, and among those the one where the
/// least is left over. `free` must hold at least `count`.
pub(super) fn compact(view: &View, free: &Bits, count: usize) -> Bits {
    let chosen = closest(view, free, count);
    let touched = PlacementShape::of(view, &chosen).touched();
    let compared = view.levels.iter().rev().filter(|level| level.compared);
    let mut levels = compared.zip(&touched);
    if levels.all(|(level, touched)| *touched == 1 || *touched == least(level, free, count)) {
        return chosen;
    }
    // The fewest groups of one level may cost more groups of another level. Only a search finds the
    // best.
    let Some(tree) = &view.tree else { return chosen };
    let fewest = tree.fewest(&view.levels, free, count);
    if PlacementShape::of(view, &fewest).touched() < touched { fewest } else { chosen }
}

/// Returns the minimum number of groups of a level that `count` free positions touch.
fn least(level: &Groups, free: &Bits, count: usize) -> usize {
    let mut rooms: Vec<usize> =
        open_groups(level, free).into_iter().map(|(room, _)| room).collect();
    rooms.sort_unstable_by_key(|room| Reverse(*room));
    let mut left = count;
    let touched = rooms.iter().take_while(|room| {
        let some_left = left > 0;
        left = left.saturating_sub(**room);
        some_left
    });
    touched.count()
}

/// Chooses `count` free positions group by group: inside the smallest group that has enough, and
/// among those the one where the least is left over; otherwise whole groups, the fullest first.
/// `free` must hold at least `count`.
fn closest(view: &View, free: &Bits, count: usize) -> Bits {
    for (index, level) in view.levels.iter().enumerate() {
        if level.largest < count {
            continue;
        }
        let mut enough: Vec<(usize, usize)> = open_groups(level, free);
        enough.retain(|(room, _)| *room >= count);
        let below = &view.levels[..index];
        if level.kinds {
            // Kinds do not nest inside caches and nodes as everything else does: staying within one
            // kind must not cost a second cache.
            enough.retain(|(_, at)| {
                let chosen = pack(below, level.members[*at].part_of(free), count);
                is_in_one_group_where_possible(view, free, &chosen, count)
            });
        }
        if enough.len() > 1 && below.iter().any(|level| level.compared) {
            // Touching few groups inside matters more than what is left over.
            let touched = |at: usize| {
                let chosen = pack(below, level.members[at].part_of(free), count);
                PlacementShape::of(view, &chosen).touched()
            };
            keep_least(&mut enough, |(_, at)| touched(at));
        }
        keep_least(&mut enough, |(room, _)| room);
        for above in &view.levels[index + 1..] {
            if enough.len() < 2 {
                break;
            }
            // What is left over should be together too, so that wide requests still find room.
            let around = |at: usize| &above.members[above.member_of[level.members[at].first()]];
            keep_least(&mut enough, |(_, at)| around(at).common(free));
        }
        if let Some((_, at)) = enough.first() {
            return pack(below, level.members[*at].part_of(free), count);
        }
    }
    pack(&view.levels, free.clone(), count)
}

/// Returns `true` if the chosen positions touch a single group of each compared level that has a
/// group with room for `count`.
fn is_in_one_group_where_possible(view: &View, free: &Bits, chosen: &Bits, count: usize) -> bool {
    let mut compared = view.levels.iter().filter(|level| level.compared);
    compared.all(|level| {
        open_groups(level, chosen).len() == 1
            || open_groups(level, free).iter().all(|(room, _)| *room < count)
    })
}

/// Keeps the candidates with the smallest value.
fn keep_least<K: Ord>(candidates: &mut Vec<(usize, usize)>, value: impl Fn((usize, usize)) -> K) {
    let values: Vec<K> = candidates.iter().map(|candidate| value(*candidate)).collect();
    let Some(least) = values.iter().min() else { return };
    let mut values = values.iter();
    candidates.retain(|_| values.next() == Some(least));
}

/// Chooses `count` free positions, spread evenly over the groups of each level, the largest groups
/// first. `free` must hold at least `count`.
pub(super) fn scattered(view: &View, free: &Bits, count: usize) -> Bits {
    spread(&view.levels, free.clone(), count)
}

fn spread(levels: &[Groups], free: Bits, count: usize) -> Bits {
    let Some((level, below)) = levels.split_last() else {
        return free.iter().take(count).collect();
    };
    if free.len() == count {
        return free;
    }
    if level.kinds {
        return spread(below, free, count);
    }
    let open = open_groups(level, &free);
    let mut shares = vec![0; open.len()];
    for _ in 0..count {
        let emptiest = (0..open.len())
            .filter(|index| shares[*index] < open[*index].0)
            .min_by_key(|index| (shares[*index], Reverse(open[*index].0 - shares[*index]), *index));
        if let Some(index) = emptiest {
            shares[index] += 1;
        }
    }
    let mut taken = Bits::default();
    for ((_, at), share) in open.into_iter().zip(shares).filter(|(_, share)| *share > 0) {
        taken.union_with(&spread(below, level.members[at].part_of(&free), share));
    }
    taken
}

/// The number of groups of each compared level that a set of positions touches, and the number of
/// positions in the fullest one; the largest groups first.
#[derive(Debug, Clone)]
pub(super) struct PlacementShape(Vec<(usize, usize)>);

impl PlacementShape {
    pub(super) fn of(view: &View, positions: &Bits) -> Self {
        let compared = view.levels.iter().rev().filter(|level| level.compared);
        Self(
            compared
                .map(|level| {
                    let shares = open_groups(level, positions);
                    (shares.len(), shares.into_iter().map(|(share, _)| share).max().unwrap_or(0))
                })
                .collect(),
        )
    }

    fn touched(&self) -> Vec<usize> {
        self.0.iter().map(|(touched, _)| *touched).collect()
    }

    pub(super) fn is_as_compact_as(&self, best: &Self) -> bool {
        self.0.iter().zip(&best.0).all(|((touched, _), (least, _))| touched <= least)
    }

    pub(super) fn is_as_spread_as(&self, best: &Self) -> bool {
        let mut levels = self.0.iter().zip(&best.0);
        levels.all(|((touched, fullest), (most, least))| touched >= most && fullest <= least)
    }
}
