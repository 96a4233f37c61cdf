//! Packs positions into whole groups.

use std::cmp::Reverse;

use super::groups::Groups;
use crate::bits::Bits;

/// Chooses `count` free positions: whole groups, the fullest first, and the rest from the group
/// with the best fit. `free` must hold at least `count`.
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
            .filter(|(room, _)| *room >= left)
            .min_by_key(|(room, at)| (level.distance(*at, &chosen), *room, *at));
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
        let (room, at) = open.remove(fullest);
        taken.union_with(&level.members[at].part_of(&free));
        chosen.push(at);
        left -= room;
    }
}

/// Returns the groups with free positions: the number of free positions, and the group's index.
pub(super) fn open_groups(level: &Groups, free: &Bits) -> Vec<(usize, usize)> {
    if free.len() >= level.members.len() {
        let groups = level.members.iter().enumerate();
        return groups
            .map(|(at, group)| (group.common(free), at))
            .filter(|(room, _)| *room > 0)
            .collect();
    }
    // There are fewer positions than groups, so the groups are looked up by position instead.
    let mut groups: Vec<usize> = free.iter().map(|position| level.member_of[position]).collect();
    groups.sort_unstable();
    groups.chunk_by(|a, b| a == b).map(|same| (same.len(), same[0])).collect()
}
