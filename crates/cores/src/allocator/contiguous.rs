//! Allocates intervals of the topological order.

use std::cmp::Reverse;

use crate::bits::Bits;

/// Returns the first interval of `count` free positions.
pub(super) fn first_fit(free: &Bits, count: usize) -> Option<Bits> {
    let run = free.runs().find(|run| run.len() >= count)?;
    Some((run.start..run.start + count).collect())
}

/// Returns as few intervals as possible. The last one is the start of the shortest run that is long
/// enough.
pub(super) fn fewest_runs(free: &Bits, count: usize) -> Option<Bits> {
    let mut runs: Vec<_> = free.runs().collect();
    if runs.iter().map(ExactSizeIterator::len).sum::<usize>() < count {
        return None;
    }
    runs.sort_by_key(|run| Reverse(run.len()));
    let mut taken = Bits::default();
    let mut left = count;
    for (index, run) in runs.iter().enumerate() {
        if run.len() >= left {
            let shortest = runs[index..].iter().rev().find(|run| run.len() >= left).unwrap_or(run);
            taken.extend(shortest.start..shortest.start + left);
            break;
        }
        taken.extend(run.clone());
        left -= run.len();
    }
    Some(taken)
}
