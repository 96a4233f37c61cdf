//! The right of a host to reach the memory of its worker, and the wait of the worker for its host.
//!
//! A word in the control page of the arena says whether the host may. It finds out when that
//! matters for the first time, so that a worker without large payloads has no such page.

use std::sync::atomic::{AtomicU64, Ordering};

use super::control::{self, Waiting};
use super::result::ResultArena;
use super::result_block::FrozenBlock;
use crate::foreign_memory;

/// Number of bytes from which on a payload is offered, and an argument kept: a smaller one is
/// copied twice in less time than a worker and its host need to wake each other.
pub const OFFERED: usize = 4 << 20;

/// Number of bytes up to which a payload is offered: a larger one would keep a thread of the host
/// for too long.
pub const MAX_OFFERED: usize = 512 << 20;

/// Values of the word in the control page.
const UNKNOWN: u64 = 0;
const REACHES: u64 = 1;
const REFUSES: u64 = 2;

/// The host's knowledge of its worker. The word in the control page is a copy, because the worker
/// can write it.
#[derive(Debug, Default)]
pub(super) struct KnownReader {
    /// 0 while the worker is not known.
    pid: AtomicU64,
    answer: AtomicU64,
}

impl KnownReader {
    pub(super) fn set_worker(&self, pid: u32) {
        self.pid.store(pid.into(), Ordering::Relaxed);
    }

    /// Lets the worker offer payloads and name memory for arguments from now on, if this process
    /// reaches them. It is asked once.
    pub(super) fn decide(&self, word: &AtomicU64) {
        let pid = self.pid();
        if self.answer.load(Ordering::Relaxed) == UNKNOWN && pid != 0 {
            let reaches = foreign_memory::is_readable(pid);
            self.answer(if reaches { REACHES } else { REFUSES }, word);
        }
    }

    /// Lets the worker name no memory any more.
    pub(super) fn refuse(&self, word: &AtomicU64) {
        self.answer(REFUSES, word);
    }

    pub(super) fn reaches(&self) -> bool {
        self.answer.load(Ordering::Relaxed) == REACHES
    }

    fn answer(&self, answer: u64, word: &AtomicU64) {
        self.answer.store(answer, Ordering::Relaxed);
        word.store(answer, Ordering::Release);
    }

    pub(super) fn pid(&self) -> u32 {
        u32::try_from(self.pid.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

impl ResultArena {
    /// Returns `true` if the host has said that it reaches this process's memory.
    pub fn is_reached(&self) -> bool {
        control::offers(self.mapping()).load(Ordering::Acquire) == REACHES
    }
}

/// Blocks until the host has released a block as often as messages have named it.
///
/// The host does so when it handles the message, and kills the worker when it does not go on
/// itself.
pub(super) fn wait_for_release(block: &FrozenBlock) {
    let waiting = Waiting::announce(block.arena().mapping());
    loop {
        let seen = waiting.seen();
        if block.is_released() {
            break;
        }
        waiting.sleep(seen);
    }
}
