//! A ping-pong through one word of shared memory for each direction.
//!
//! The caller increments the first word, and the other side writes the same number to the second.
//! With [`Echo::Spin`], both sides spin while they wait. With [`Echo::Futex`], both sides sleep:
//! the writer wakes the other side, and the kernel does not let it sleep on a word that has already
//! changed.

use std::io::stdin;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_sys::futex;
use brigade_sys::process::Process;
use brigade_sys::segment::Segment;

use super::Echo;
use crate::report::Outcome;

/// Two pairs of cache lines, because processors fetch pairs.
const WORDS: usize = 32;
const REQUEST: usize = 0;
const REPLY: usize = 16;

/// The caller's side.
#[derive(Debug)]
pub(super) struct PingPong {
    segment: Segment,
    count: u64,
    kind: Echo,
    /// Killed when this is dropped.
    _other: Process,
}

impl PingPong {
    pub(super) fn start(kind: Echo, core: usize) -> Outcome<Self> {
        let segment = Segment::create("brigade-bench", WORDS)?;
        let other = kind.start(core, segment.as_fd().try_clone_to_owned()?, None)?;
        Ok(Self { segment, count: 0, kind, _other: other })
    }

    /// Makes one round trip. The section's deadline ends a wait for a reply that never comes.
    #[expect(clippy::unnecessary_wraps, reason = "has the type of every round trip")]
    pub(super) fn trip(&mut self) -> Outcome<()> {
        let before = self.count;
        self.count = before.wrapping_add(1);
        write(&self.segment.words()[REQUEST], self.count, self.kind);
        wait_for_change(&self.segment.words()[REPLY], before, self.kind);
        Ok(())
    }
}

/// Runs the other side until its parent's death ends it.
pub(super) fn echo(kind: Echo) -> Outcome<()> {
    let segment = Segment::open(stdin().as_fd().try_clone_to_owned()?, WORDS)?;
    let mut seen = 0;
    loop {
        seen = wait_for_change(&segment.words()[REQUEST], seen, kind);
        write(&segment.words()[REPLY], seen, kind);
    }
}

#[inline]
fn write(word: &AtomicU64, value: u64, kind: Echo) {
    word.store(value, Ordering::Release);
    if kind == Echo::Futex {
        futex::wake(word);
    }
}

#[inline]
fn wait_for_change(word: &AtomicU64, from: u64, kind: Echo) -> u64 {
    loop {
        let value = word.load(Ordering::Acquire);
        if value != from {
            return value;
        }
        if kind == Echo::Futex {
            futex::wait(word, from);
        } else {
            std::hint::spin_loop();
        }
    }
}
