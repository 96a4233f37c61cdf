//! Ping-pong through one word of shared memory for each direction.
//!
//! The caller counts up in the first word, the other side answers with the same number in the
//! second. Spinning, both look all the time. With futexes, both sleep whenever they wait: the one
//! that writes wakes the other, and the kernel lets nobody sleep on a word that has changed.

use std::io::stdin;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_sys::futex;
use brigade_sys::process::Process;
use brigade_sys::segment::Segment;

use super::Echo;
use crate::report::Outcome;

/// Two cache-line pairs, because processors fetch pairs.
const WORDS: usize = 32;
const QUESTION: usize = 0;
const ANSWER: usize = 16;

/// The caller's side.
#[derive(Debug)]
pub(super) struct PingPong {
    segment: Segment,
    count: u64,
    flavour: Echo,
    /// Killed when this is dropped.
    _other: Process,
}

impl PingPong {
    pub(super) fn start(flavour: Echo, core: usize) -> Outcome<Self> {
        let segment = Segment::create("brigade-bench", WORDS)?;
        let other = flavour.start(core, segment.as_fd().try_clone_to_owned()?, None)?;
        Ok(Self { segment, count: 0, flavour, _other: other })
    }

    /// There and back. An answer that never comes is the business of the section's deadline.
    #[expect(clippy::unnecessary_wraps, reason = "has the type of every round trip")]
    pub(super) fn trip(&mut self) -> Outcome<()> {
        let before = self.count;
        self.count = before.wrapping_add(1);
        write(&self.segment.words()[QUESTION], self.count, self.flavour);
        wait_for_change(&self.segment.words()[ANSWER], before, self.flavour);
        Ok(())
    }
}

/// The other side; runs until its parent's death ends it.
pub(super) fn echo(flavour: Echo) -> Outcome<()> {
    let segment = Segment::open(stdin().as_fd().try_clone_to_owned()?, WORDS)?;
    let mut seen = 0;
    loop {
        seen = wait_for_change(&segment.words()[QUESTION], seen, flavour);
        write(&segment.words()[ANSWER], seen, flavour);
    }
}

#[inline]
fn write(word: &AtomicU64, value: u64, flavour: Echo) {
    word.store(value, Ordering::Release);
    if flavour == Echo::Futex {
        futex::wake(word);
    }
}

#[inline]
fn wait_for_change(word: &AtomicU64, from: u64, flavour: Echo) -> u64 {
    loop {
        let value = word.load(Ordering::Acquire);
        if value != from {
            return value;
        }
        if flavour == Echo::Futex {
            futex::wait(word, from);
        } else {
            std::hint::spin_loop();
        }
    }
}
