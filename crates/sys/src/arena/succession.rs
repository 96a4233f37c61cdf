//! Hands the blocks of an arena of results from a copy of a worker over to the worker, which goes
//! on with the next copy.
//!
//! The host still reads them, so the next copy must not reuse them before they are released. It
//! also learns of the memory that is warm, which it uses first, and of which it keeps no more than
//! any worker.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::HEADER;
use super::mapping::{invalid, page_size};
use super::ranges::Ranges;
use super::result::{Block, ResultArena, State};

/// A block that the host has not released: its first byte, its end, its header, and how often
/// messages have named it. Or free and warm memory: its first byte, its end, all ones, 0.
pub type LeftBlock = [u64; 4];

const WARM: u64 = u64::MAX;

impl ResultArena {
    /// Returns the blocks that the host has not released, and the warm memory. Returns `None` if
    /// this process uses blocks itself, if it has protected one, and if there is more than `most`.
    pub fn hand_over(&self, most: usize) -> Option<Vec<LeftBlock>> {
        let mut state = self.state.lock();
        if state.used > 0 {
            self.reclaim_into(&mut state);
        }
        let in_use: usize = state.lent.iter().map(|block| block.range.len()).sum();
        // The protection ends with this process.
        let is_open = state.lent.iter().all(|block| block.protected.is_empty());
        let warm = state.ranges.warm().map(|range| [range.start as u64, range.end as u64, WARM, 0]);
        let parts: Vec<_> = state.lent.iter().map(Block::left).chain(warm).collect();
        (in_use == state.used && is_open && parts.len() <= most).then_some(parts)
    }

    /// Takes over what a copy of this process has left, in place of its own.
    ///
    /// # Errors
    /// `InvalidData` if the parts overlap or exceed the arena.
    pub fn take_over(&self, left: &[LeftBlock]) -> io::Result<()> {
        let mut state = self.state.lock();
        if left.is_empty() && state.used == 0 && state.ranges.warm().next().is_none() {
            return Ok(());
        }
        let mut parts = left.iter().map(Part::new).collect::<Option<Vec<_>>>().unwrap_or_default();
        parts.sort_by_key(|part| part.range.start);
        let end = parts.last().map_or(0, |last| last.range.end);
        let are_apart = parts.is_sorted_by(|one, next| one.range.end <= next.range.start);
        if parts.len() != left.len() || !are_apart || end > self.length() {
            return Err(invalid("the blocks overlap or exceed the arena"));
        }
        *state =
            State { ranges: Ranges::new(self.length(), self.budget), lent: Vec::new(), used: 0 };
        for Part { range, block } in parts {
            state.ranges.remove(range.clone());
            match block {
                Some(block) => {
                    state.used += range.len();
                    state.lent.push(block);
                }
                // The copy had no more than it may keep.
                None => {
                    for leaving in state.ranges.give_back(range) {
                        state.ranges.give_back_cold(leaving);
                    }
                }
            }
        }
        Ok(())
    }
}

/// A part of an arena: a block, or warm memory.
struct Part {
    range: Range<usize>,
    block: Option<Block>,
}

impl Part {
    fn new(&[start, end, header, exported]: &LeftBlock) -> Option<Self> {
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        let page = page_size();
        if !range.start.is_multiple_of(page) || !range.end.is_multiple_of(page) || range.is_empty()
        {
            return None;
        }
        if header == WARM {
            return Some(Self { range, block: None });
        }
        let header = usize::try_from(header).ok()?;
        let is_inside = header >= range.start && header.checked_add(HEADER)? <= range.end;
        if !is_inside || !header.is_multiple_of(HEADER) {
            return None;
        }
        let mut block = Block::new(range.clone(), header);
        block.exported = AtomicU64::new(exported);
        Some(Self { range, block: Some(block) })
    }
}

impl Block {
    fn left(&self) -> LeftBlock {
        let exported = self.exported.load(Ordering::Relaxed);
        [self.range.start as u64, self.range.end as u64, self.header as u64, exported]
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Terms, mapping};
    use super::*;

    const LENGTH: usize = 1 << 20;

    fn arena() -> std::sync::Arc<ResultArena> {
        let (descriptor, _) = mapping::create("test", LENGTH).unwrap();
        ResultArena::open(descriptor, LENGTH, Terms::default()).unwrap()
    }

    #[test]
    fn blocks_that_the_host_reads_are_not_reused_by_the_next_copy() {
        let arena = arena();
        let first = arena.put(&[&[1; 100]]).unwrap();
        let left = arena.hand_over(1).unwrap();
        arena.take_over(&[]).unwrap();
        assert_eq!(arena.put(&[&[1; 100]]), Some(first), "the arena has forgotten the block");
        arena.take_over(&left).unwrap();
        assert_eq!(arena.hand_over(1), Some(left));
        assert_ne!(arena.put(&[&[1; 100]]).unwrap(), first);
        assert_eq!(arena.hand_over(1), None, "there are two");
    }

    #[test]
    fn warm_memory_is_used_first_by_the_next_copy() {
        let (copy, next) = (arena(), arena());
        let blocks =
            [1, 2].map(|_| copy.allocate_block(100, super::super::WhenFull::Fail).unwrap());
        let [_kept, free] = blocks;
        drop(free);
        let (warm, _) = copy.put(&[&[1; 10]]).unwrap();
        let left: Vec<_> = copy
            .state
            .lock()
            .ranges
            .warm()
            .map(|it| [it.start as u64, it.end as u64, WARM, 0])
            .collect();
        assert_eq!(left.len(), 1, "a page is left, and is warm");
        next.take_over(&left).unwrap();
        assert_eq!(next.hand_over(1), Some(left.clone()));
        let (offset, _) = next.put(&[&[1; 10]]).unwrap();
        assert_eq!(offset as u64 / page_size() as u64, left[0][0] / page_size() as u64, "{warm}");
    }

    #[test]
    fn a_block_in_use_is_not_handed_over() {
        let arena = arena();
        let block = arena.allocate_block(100, super::super::WhenFull::Fail).unwrap();
        assert_eq!(arena.hand_over(9), None);
        drop(block);
        let [start, end, kind, _] = arena.hand_over(9).unwrap()[0];
        assert_eq!((start, end, kind), (0, 2 * page_size() as u64, WARM), "it is warm");
        assert_eq!(arena.hand_over(0), None);
    }

    proptest! {
        #[test]
        fn overlapping_blocks_are_refused_and_others_are_not_reused(
            pages in proptest::collection::vec((0..300_u64, 0..40_u64, 0..3_u64), 0..6),
            spoil in 0..4_u64,
        ) {
            let arena = arena();
            let page = page_size() as u64;
            let blocks: Vec<LeftBlock> = pages.iter().map(|&(start, length, header)| {
                let start = start * page + u64::from(spoil == 1);
                [start, start + length * page, start + header * page / 2, 7]
            }).collect();
            if arena.take_over(&blocks).is_ok() {
                let new = arena.put(&[&[1; 100]]);
                if let Some((offset, _)) = new {
                    let offset = offset as u64;
                    prop_assert!(blocks.iter().all(|[start, end, ..]| !(*start..*end).contains(&offset)));
                }
            }
        }
    }
}
