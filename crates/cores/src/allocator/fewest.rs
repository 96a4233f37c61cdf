//! Finds the fewest groups with enough room, by dynamic programming over the tree of groups.
//!
//! The groups of a machine nest, so those of the compared levels form a tree. The cost of a
//! placement is the number of groups of each level that it touches, where one group of a larger
//! level costs more than all groups of the smaller levels. A group that contains no other group
//! costs the same however much of it is taken. From the leaves upward, each group lists, for each
//! cost worth considering, the largest number of positions available at that cost. The choices of a
//! group are computed from those of the groups inside it.

use std::collections::HashMap;

use super::groups::Groups;
use super::pack::pack;
use crate::bits::Bits;

/// One number per level, the largest level in the highest digits.
type Cost = u128;

const DIGITS: u32 = 32;

/// The groups of all compared levels.
#[derive(Debug)]
pub(super) struct Tree {
    /// Children come before their parents.
    branches: Vec<Branch>,
    /// The groups without a parent.
    roots: Vec<usize>,
}

#[derive(Debug)]
struct Branch {
    level: usize,
    /// The group's index in its level.
    member: usize,
    cost: Cost,
    parent: Option<usize>,
    /// The next smaller groups, which together hold all positions of this one.
    children: Vec<usize>,
}

/// The largest number of positions available at a cost.
#[derive(Debug, Clone, Copy)]
struct Choice {
    cost: Cost,
    positions: usize,
    /// The choices that this one combines: that of the groups before, and that of the group added
    /// last.
    parts: (usize, usize),
}

const NOTHING: Choice = Choice { cost: 0, positions: 0, parts: (0, 0) };

/// Choices with ascending cost and positions: of no group, of the first one, of the first two, and
/// so on.
type Sums = Vec<Vec<Choice>>;

impl Tree {
    /// Returns `None` if groups overlap without nesting, or if there are more levels than a cost
    /// has digits.
    pub(super) fn new(levels: &[Groups]) -> Option<Self> {
        let compared: Vec<usize> =
            (0..levels.len()).filter(|level| levels[*level].compared).collect();
        let mut branches = Vec::new();
        for (digit, &level) in (0..).zip(&compared) {
            let cost = Cost::from(1_u8).checked_shl(digit * DIGITS)?;
            branches.extend((0..levels[level].members.len()).map(|member| Branch {
                level,
                member,
                cost,
                parent: None,
                children: Vec::new(),
            }));
        }
        let group = |branch: &Branch| &levels[branch.level].members[branch.member];
        branches.sort_by_key(|branch| (group(branch).len(), branch.level));
        let position: HashMap<(usize, usize), usize> =
            branches.iter().enumerate().map(|(at, one)| ((one.level, one.member), at)).collect();
        let mut roots = Vec::new();
        for index in 0..branches.len() {
            let inner = group(&branches[index]);
            let enclosing = compared
                .iter()
                .map(|level| position[&(*level, levels[*level].member_of[inner.first()])]);
            let parent = enclosing.filter(|other| *other > index).min();
            match parent {
                Some(parent) if !inner.is_subset(group(&branches[parent])) => return None,
                Some(parent) => branches[parent].children.push(index),
                None => roots.push(index),
            }
            branches[index].parent = parent;
        }
        Some(Self { branches, roots })
    }

    /// Chooses `count` free positions in the fewest groups. `free` must hold at least `count`.
    pub(super) fn fewest(&self, levels: &[Groups], free: &Bits, count: usize) -> Bits {
        let room = |branch: &Branch| levels[branch.level].members[branch.member].common(free);
        let room: Vec<usize> = self.branches.iter().map(room).collect();
        let mut choices: Vec<Vec<Choice>> = Vec::with_capacity(self.branches.len());
        let mut sums: Vec<Sums> = Vec::with_capacity(self.branches.len());
        for (branch, room) in self.branches.iter().zip(&room) {
            let sum = add_up(&branch.children, &choices, count);
            let mut own = match sum.last() {
                _ if *room == 0 => vec![NOTHING],
                Some(all) if !branch.children.is_empty() => all.clone(),
                _ => vec![NOTHING, Choice { positions: *room.min(&count), ..NOTHING }],
            };
            for choice in own.iter_mut().skip(1) {
                choice.cost += branch.cost;
            }
            choices.push(own);
            sums.push(sum);
        }
        let all = add_up(&self.roots, &choices, count);
        let cheapest =
            all.last().and_then(|all| all.iter().position(|choice| choice.positions >= count));
        let mut chosen = Vec::new();
        if let Some(cheapest) = cheapest {
            self.collect(&self.roots, &all, &sums, cheapest, &mut chosen);
        }
        self.fill(levels, free, count, &room, chosen)
    }

    /// Collects the leaves that a choice of `children` is made of.
    fn collect(
        &self,
        children: &[usize],
        sum: &Sums,
        sums: &[Sums],
        mut choice: usize,
        chosen: &mut Vec<usize>,
    ) {
        for (&branch, after) in children.iter().zip(&sum[1..]).rev() {
            let (before, theirs) = after[choice].parts;
            match self.branches[branch].children.as_slice() {
                _ if theirs == 0 => {}
                [] => chosen.push(branch),
                children => self.collect(children, &sums[branch], sums, theirs, chosen),
            }
            choice = before;
        }
    }

    /// Takes all free positions of the chosen groups but one, and the rest from that one, or from a
    /// sibling with a better fit.
    fn fill(
        &self,
        levels: &[Groups],
        free: &Bits,
        count: usize,
        room: &[usize],
        mut chosen: Vec<usize>,
    ) -> Bits {
        chosen.sort_unstable_by_key(|branch| (room[*branch], *branch));
        let Some(largest) = chosen.pop() else { return Bits::default() };
        let of = |branch: usize| {
            let Branch { level, member, .. } = self.branches[branch];
            (level, levels[level].members[member].part_of(free))
        };
        let mut taken = Bits::default();
        for &branch in &chosen {
            taken.union_with(&of(branch).1);
        }
        let left = count - taken.len();
        let siblings = self.branches[largest]
            .parent
            .map_or(&self.roots, |parent| &self.branches[parent].children);
        let alike = |branch: &usize| {
            let (one, other) = (&self.branches[*branch], &self.branches[largest]);
            one.children.is_empty() && one.cost == other.cost && !chosen.contains(branch)
        };
        let fitting = siblings.iter().filter(|branch| alike(branch) && room[**branch] >= left);
        let last = fitting.copied().min_by_key(|branch| (room[*branch], *branch));
        let (level, positions) = of(last.unwrap_or(largest));
        taken.union_with(&pack(&levels[..level], positions, left));
        taken
    }
}

fn add_up(groups: &[usize], choices: &[Vec<Choice>], count: usize) -> Sums {
    let mut sums = vec![vec![NOTHING]];
    for group in groups {
        let before = sums.last().map_or(&[NOTHING][..], Vec::as_slice);
        let mut both: Vec<Choice> = Vec::with_capacity(before.len() * choices[*group].len());
        for (theirs, more) in choices[*group].iter().enumerate() {
            both.extend(before.iter().enumerate().map(|(ours, choice)| Choice {
                cost: choice.cost + more.cost,
                positions: (choice.positions + more.positions).min(count),
                parts: (ours, theirs),
            }));
        }
        // A stable sort of sorted runs merges them.
        both.sort_by(|a, b| a.cost.cmp(&b.cost).then(b.positions.cmp(&a.positions)));
        let mut most = None;
        both.retain(|choice| {
            let better = most.is_none_or(|most| choice.positions > most);
            most = most.max(Some(choice.positions));
            better
        });
        sums.push(both);
    }
    sums
}
