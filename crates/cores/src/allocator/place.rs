//! Places close together, or far apart.

use std::cmp::Reverse;

use super::view::{Groups, View};
use crate::bits::Bits;

/// `count` of the free places in as few packages as possible, and of those in as few nodes, and so on down to the caches: inside the
/// smallest group that has enough, and of those the one where the least is left over. There must be enough.
pub(super) fn compact(view: &View, free: &Bits, count: usize) -> Bits {
    let chosen = closest(view, free, count);
    let touched = Shape::of(view, &chosen).touched();
    let judged = view.levels.iter().rev().filter(|level| level.judged);
    let mut levels = judged.zip(&touched);
    if levels.all(|(level, touched)| *touched == 1 || *touched == least(level, free, count)) {
        return chosen;
    }
    // The fewest of one level may cost more of another one: only a search tells.
    let Some(tree) = &view.tree else { return chosen };
    let fewest = tree.fewest(&view.levels, free, count);
    if Shape::of(view, &fewest).touched() < touched { fewest } else { chosen }
}

/// How many groups of a level `count` of the free places touch at least.
fn least(level: &Groups, free: &Bits, count: usize) -> usize {
    let mut rooms: Vec<usize> =
        open_groups(level, free).into_iter().map(|(there, _)| there).collect();
    rooms.sort_unstable_by_key(|there| Reverse(*there));
    let mut left = count;
    let touched = rooms.iter().take_while(|there| {
        let some_left = left > 0;
        left = left.saturating_sub(**there);
        some_left
    });
    touched.count()
}

/// `count` of the free places, group by group: inside the smallest group that has enough, and of those the one where the least is
/// left over; else whole groups from the fullest on. There must be enough.
fn closest(view: &View, free: &Bits, count: usize) -> Bits {
    for (index, level) in view.levels.iter().enumerate() {
        if level.largest < count {
            continue;
        }
        let mut enough: Vec<(usize, usize)> = open_groups(level, free);
        enough.retain(|(there, _)| *there >= count);
        let below = &view.levels[..index];
        if level.kinds {
            // Kinds do not lie inside caches and nodes as everything else does: to be of one kind must not cost a second cache.
            enough.retain(|(_, at)| {
                let chosen = pack(below, level.members[*at].part_of(free), count);
                is_in_one_group_where_possible(view, free, &chosen, count)
            });
        }
        if enough.len() > 1 && below.iter().any(|level| level.judged) {
            // To touch few groups inside matters more than what is left over.
            let touched = |at: usize| {
                let chosen = pack(below, level.members[at].part_of(free), count);
                Shape::of(view, &chosen).touched()
            };
            keep_least(&mut enough, |(_, at)| touched(at));
        }
        keep_least(&mut enough, |(there, _)| there);
        for above in &view.levels[index + 1..] {
            if enough.len() < 2 {
                break;
            }
            // What is left over should be in one place too, so that wide requests still find room.
            let around = |at: usize| &above.members[above.member_of[level.members[at].first()]];
            keep_least(&mut enough, |(_, at)| around(at).common(free));
        }
        if let Some((_, at)) = enough.first() {
            return pack(below, level.members[*at].part_of(free), count);
        }
    }
    pack(&view.levels, free.clone(), count)
}

/// Whether these places touch a single group of each judged level of which some group has room for as many.
fn is_in_one_group_where_possible(view: &View, free: &Bits, chosen: &Bits, count: usize) -> bool {
    let mut judged = view.levels.iter().filter(|level| level.judged);
    judged.all(|level| {
        open_groups(level, chosen).len() == 1
            || open_groups(level, free).iter().all(|(there, _)| *there < count)
    })
}

/// Keeps the candidates with the least value.
fn keep_least<K: Ord>(candidates: &mut Vec<(usize, usize)>, value: impl Fn((usize, usize)) -> K) {
    let values: Vec<K> = candidates.iter().map(|candidate| value(*candidate)).collect();
    let Some(least) = values.iter().min() else { return };
    let mut values = values.iter();
    candidates.retain(|_| values.next() == Some(least));
}

/// `count` of the free places: whole groups from the fullest on, the rest from the one that it fits best. There must be enough.
pub(super) fn pack(levels: &[Groups], free: Bits, count: usize) -> Bits {
    let Some((level, below)) = levels.split_last() else {
        return free.iter().take(count).collect();
    };
    if free.len() == count {
        return free;
    }
    let mut open = open_groups(level, &free);
    let mut chosen = Vec::new();
    let mut taken = Bits::default();
    let mut left = count;
    loop {
        let rest = open
            .iter()
            .filter(|(there, _)| *there >= left)
            .min_by_key(|(there, at)| (level.distance(*at, &chosen), *there, *at));
        if let Some((_, at)) = rest {
            taken.union_with(&pack(below, level.members[*at].part_of(&free), left));
            return taken;
        }
        let fullest = (0..open.len()).max_by_key(|index| {
            (open[*index].0, Reverse(level.distance(open[*index].1, &chosen)), Reverse(*index))
        });
        let Some(fullest) = fullest else {
            return taken;
        };
        let (there, at) = open.remove(fullest);
        taken.union_with(&level.members[at].part_of(&free));
        chosen.push(at);
        left -= there;
    }
}

/// `count` of the free places, spread evenly over the groups of each level, the largest groups first. There must be enough.
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

/// The groups with free places: how many, and which.
fn open_groups(level: &Groups, free: &Bits) -> Vec<(usize, usize)> {
    if free.len() >= level.members.len() {
        let groups = level.members.iter().enumerate();
        return groups
            .map(|(at, group)| (group.common(free), at))
            .filter(|(there, _)| *there > 0)
            .collect();
    }
    // A few places are in fewer groups than there are: not each group is asked.
    let mut groups: Vec<usize> = free.iter().map(|place| level.member_of[place]).collect();
    groups.sort_unstable();
    groups.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect()
}

/// How many groups of each judged level a set of places touches, and how many places are in the fullest; the largest groups first.
#[derive(Debug, Clone)]
pub(super) struct Shape(Vec<(usize, usize)>);

impl Shape {
    pub(super) fn of(view: &View, places: &Bits) -> Self {
        let judged = view.levels.iter().rev().filter(|level| level.judged);
        Self(
            judged
                .map(|level| {
                    let shares = open_groups(level, places);
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
