//! The fewest groups with enough room: an exact search.
//!
//! The groups of a machine nest, so those that requests are judged by form a tree. The cost of a placement is how many groups of
//! each level it touches, where one group of a larger level weighs more than all groups of the smaller ones. A group that holds no
//! other one costs the same however much of it is taken. From there upwards each group offers, for each cost that is worth it, the
//! most places that can be had for this cost; the offers of a group follow from those of the groups inside it.

use std::collections::HashMap;

use super::place::pack;
use super::view::Groups;
use crate::bits::Bits;

/// A number for each level, the largest level in the highest digits.
type Cost = u128;

const DIGITS: u32 = 32;

/// The groups of all judged levels.
#[derive(Debug)]
pub(super) struct Tree {
    /// The groups inside come before those around them.
    branches: Vec<Branch>,
    /// Those that are in no other one.
    outermost: Vec<usize>,
}

#[derive(Debug)]
struct Branch {
    level: usize,
    /// Which group of the level.
    member: usize,
    cost: Cost,
    around: Option<usize>,
    /// The next smaller groups; together they have all places of this one.
    inside: Vec<usize>,
}

/// The most places for a cost.
#[derive(Debug, Clone, Copy)]
struct Offer {
    cost: Cost,
    places: usize,
    /// Which offer of the groups before, and which of the group that was added last, it is made of.
    parts: (usize, usize),
}

const NOTHING: Offer = Offer { cost: 0, places: 0, parts: (0, 0) };

/// Offers with ascending cost and places: of no group, of the first one, of the first two, and so on.
type Sums = Vec<Vec<Offer>>;

impl Tree {
    /// Nothing if groups overlap without being part of each other, or if there are more levels than a cost has numbers.
    pub(super) fn new(levels: &[Groups]) -> Option<Self> {
        let judged: Vec<usize> = (0..levels.len()).filter(|level| levels[*level].judged).collect();
        let mut branches = Vec::new();
        for (digit, &level) in (0..).zip(&judged) {
            let cost = Cost::from(1_u8).checked_shl(digit * DIGITS)?;
            branches.extend((0..levels[level].members.len()).map(|member| Branch {
                level,
                member,
                cost,
                around: None,
                inside: Vec::new(),
            }));
        }
        let group = |branch: &Branch| &levels[branch.level].members[branch.member];
        branches.sort_by_key(|branch| (group(branch).len(), branch.level));
        let position: HashMap<(usize, usize), usize> =
            branches.iter().enumerate().map(|(at, one)| ((one.level, one.member), at)).collect();
        let mut outermost = Vec::new();
        for index in 0..branches.len() {
            let inner = group(&branches[index]);
            let same_place = judged
                .iter()
                .map(|level| position[&(*level, levels[*level].member_of[inner.first()])]);
            let around = same_place.filter(|other| *other > index).min();
            match around {
                Some(around) if !inner.is_subset(group(&branches[around])) => return None,
                Some(around) => branches[around].inside.push(index),
                None => outermost.push(index),
            }
            branches[index].around = around;
        }
        Some(Self { branches, outermost })
    }

    /// `count` of the free places in the fewest groups. There must be enough.
    pub(super) fn fewest(&self, levels: &[Groups], free: &Bits, count: usize) -> Bits {
        let room = |branch: &Branch| levels[branch.level].members[branch.member].common(free);
        let room: Vec<usize> = self.branches.iter().map(room).collect();
        let mut offers: Vec<Vec<Offer>> = Vec::with_capacity(self.branches.len());
        let mut sums: Vec<Sums> = Vec::with_capacity(self.branches.len());
        for (branch, room) in self.branches.iter().zip(&room) {
            let sum = add_up(&branch.inside, &offers, count);
            let mut own = match sum.last() {
                _ if *room == 0 => vec![NOTHING],
                Some(all) if !branch.inside.is_empty() => all.clone(),
                _ => vec![NOTHING, Offer { places: *room.min(&count), ..NOTHING }],
            };
            for offer in own.iter_mut().skip(1) {
                offer.cost += branch.cost;
            }
            offers.push(own);
            sums.push(sum);
        }
        let all = add_up(&self.outermost, &offers, count);
        let cheapest =
            all.last().and_then(|all| all.iter().position(|offer| offer.places >= count));
        let mut chosen = Vec::new();
        if let Some(cheapest) = cheapest {
            self.collect(&self.outermost, &all, &sums, cheapest, &mut chosen);
        }
        self.fill(levels, free, count, &room, chosen)
    }

    /// The innermost groups of which an offer of `inside` is made.
    fn collect(
        &self,
        inside: &[usize],
        sum: &Sums,
        sums: &[Sums],
        mut offer: usize,
        chosen: &mut Vec<usize>,
    ) {
        for (&branch, after) in inside.iter().zip(&sum[1..]).rev() {
            let (before, theirs) = after[offer].parts;
            match self.branches[branch].inside.as_slice() {
                _ if theirs == 0 => {}
                [] => chosen.push(branch),
                inside => self.collect(inside, &sums[branch], sums, theirs, chosen),
            }
            offer = before;
        }
    }

    /// All free places of the chosen groups but one; the rest from that one, or from a neighbour that it fits better.
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
        let neighbours = self.branches[largest]
            .around
            .map_or(&self.outermost, |around| &self.branches[around].inside);
        let alike = |branch: &usize| {
            let (one, other) = (&self.branches[*branch], &self.branches[largest]);
            one.inside.is_empty() && one.cost == other.cost && !chosen.contains(branch)
        };
        let fitting = neighbours.iter().filter(|branch| alike(branch) && room[**branch] >= left);
        let last = fitting.copied().min_by_key(|branch| (room[*branch], *branch));
        let (level, places) = of(last.unwrap_or(largest));
        taken.union_with(&pack(&levels[..level], places, left));
        taken
    }
}

fn add_up(groups: &[usize], offers: &[Vec<Offer>], count: usize) -> Sums {
    let mut sums = vec![vec![NOTHING]];
    for group in groups {
        let before = sums.last().map_or(&[NOTHING][..], Vec::as_slice);
        let mut both: Vec<Offer> = Vec::with_capacity(before.len() * offers[*group].len());
        for (theirs, more) in offers[*group].iter().enumerate() {
            both.extend(before.iter().enumerate().map(|(ours, offer)| Offer {
                cost: offer.cost + more.cost,
                places: (offer.places + more.places).min(count),
                parts: (ours, theirs),
            }));
        }
        // A stable sort of runs that are sorted merges them.
        both.sort_by(|a, b| a.cost.cmp(&b.cost).then(b.places.cmp(&a.places)));
        let mut most = None;
        both.retain(|offer| {
            let better = most.is_none_or(|most| offer.places > most);
            most = most.max(Some(offer.places));
            better
        });
        sums.push(both);
    }
    sums
}
