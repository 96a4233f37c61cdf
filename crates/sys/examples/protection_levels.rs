//! Times the hand-over of one buffer from a worker to the host, at each level of protection, and
//! one copy of the same bytes.
//!
//! All take turns in one run, so that other load on the machine disturbs them alike: look at the
//! ratios.
//!
//! `cargo run --release -p brigade-sys --example protection_levels`

#![expect(clippy::expect_used, reason = "an example, which may end with a message")]

use std::hint::black_box;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_sys::arena::{
    ArgumentArena, Protection, ResultArena, ResultView, SharedBlock, Terms, WhenFull,
};

const MEBIBYTE: usize = 1 << 20;
const ROUNDS: usize = 41;

struct Side {
    arena: Arc<ResultArena>,
    view: Arc<ResultView>,
    copies: Option<Arc<ArgumentArena>>,
}

impl Side {
    fn new(protection: Protection) -> Self {
        let (bytes, budget) = (1024 * MEBIBYTE, 512 * MEBIBYTE);
        let view = ResultView::create("example", bytes, bytes, Terms { budget, protection })
            .expect("memory");
        let descriptor = view.as_fd().try_clone_to_owned().expect("a descriptor");
        let arena = ResultArena::open(descriptor, view.len(), view.terms()).expect("an arena");
        let copies = (protection == Protection::Copied)
            .then(|| ArgumentArena::create("example", bytes, budget).expect("memory"));
        Self { arena, view, copies }
    }

    /// Allocates and writes a buffer, then times its way from the end of writing to the host's
    /// first look at both ends, and to the reuse of the block.
    fn hand_over(&self, length: usize) -> Duration {
        let mut block = self.arena.allocate_block(length, WhenFull::Fail).expect("room");
        block.as_mut_bytes().fill(7);
        let begin = Instant::now();
        let block = block.freeze().expect("few mappings");
        block.export();
        let loan = self.view.loan_buffer(block.offset(), length).expect("a block");
        let copy: Option<SharedBlock> =
            self.copies.as_ref().map(|copies| copies.copy(&loan).expect("room"));
        let bytes = copy.as_ref().map_or(loan.as_bytes(), SharedBlock::as_bytes);
        black_box((bytes[0], bytes[length - 1]));
        drop((copy, loan, block));
        self.arena.reclaim();
        begin.elapsed()
    }
}

/// Copies between vectors that have their pages.
fn copy(from: &[u8], into: &mut [u8]) -> Duration {
    let begin = Instant::now();
    into.copy_from_slice(from);
    black_box(into.last());
    begin.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let levels = [Protection::Trusted, Protection::ReadOnly, Protection::Copied];
    let sides = levels.map(Side::new);
    for length in [64 << 10, MEBIBYTE, 16 * MEBIBYTE, 256 * MEBIBYTE] {
        let (from, mut into) = (vec![1_u8; length], vec![2_u8; length]);
        let mut times = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            for (times, side) in times.iter_mut().zip(&sides) {
                times.push(side.hand_over(length));
            }
            times[3].push(copy(&from, &mut into));
        }
        let [trusted, read_only, copied, memcpy] = times.map(median);
        #[expect(clippy::print_stdout, reason = "an example shows what it does")]
        {
            println!(
                "{:>7} KiB: Trusted {trusted:?}, ReadOnly {read_only:?}, Copied {copied:?}, one copy {memcpy:?}",
                length >> 10
            );
        }
    }
}
