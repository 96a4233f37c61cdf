//! Runs each task in a copy of this worker, which has not run any, as AFL's fork server runs
//! inputs.
//!
//! The copy waits for the task, so it exists before the task arrives, and uses the link in place of
//! this process, which waits for its end. A copy may leave something behind that the next one would
//! not have, such as a buffer that the host still reads. Then it asks the host to replace the
//! worker, and this process ends with it.

use std::time::Duration;

use brigade_sys::copies::{self, Copies, end_like};
use brigade_sys::sibling;
use brigade_wire::codec;
use brigade_wire::link::{LinkReceiver, LinkSender};

use crate::context;
use crate::event_loop::{EventLoop, LoopEnd, Turn};
use crate::exit_code;
use crate::panic_capture;
use crate::stderr::report_end;

/// The numbers that a copy leaves to this process.
const STOPPED: u64 = 1;
const DONE: u64 = 2;
const WORN: u64 = 3;
const PASSED: u64 = 4;
/// Added to these if the copy has looked for the names of functions.
const NAMED: u64 = 8;

/// Longest time that a copy may take to exit. Tasks wait for that, so it has an end.
const MAX_GRACE: Duration = Duration::from_secs(60);

/// A copy of the worker, which has the event loop to itself.
pub(crate) struct Copy {
    copies: Copies,
    grace: Duration,
}

impl Copy {
    /// Limits the time from now until the exit.
    pub(crate) fn exit_soon(&self) {
        self.copies.end_after(self.grace);
    }

    /// Tells the worker how the event loop has ended. Without that, it ends as this copy does.
    pub(crate) fn leave(&self, end: LoopEnd) {
        let (what, blocks) = match end {
            LoopEnd::Stopped => (STOPPED, Vec::new()),
            LoopEnd::Done(blocks) => (DONE, blocks),
            LoopEnd::Worn => (WORN, Vec::new()),
            LoopEnd::Passed(blocks) => (PASSED, blocks),
        };
        let named = if panic_capture::has_named() { NAMED } else { 0 };
        self.copies.leave(what | named, blocks.into_iter().flatten());
    }
}

/// Returns in each copy of this process, which may take `grace` to exit. The process itself ends
/// here, or returns `None` to run one task before it is replaced: if it cannot be copied, if copies
/// may take no time to exit, and if the host wants it to.
pub(crate) fn next<S: LinkSender, R: LinkReceiver>(
    event_loop: &mut EventLoop<S, R>,
    grace: Duration,
) -> Option<Copy> {
    let grace = grace.min(MAX_GRACE);
    sibling::flush_output();
    event_loop.set_turn(Turn::Last);
    if grace.is_zero() {
        return None;
    }
    let mut copies = match Copies::new() {
        Ok(copies) => copies,
        Err(reason) => {
            tracing::debug!(reason, "a worker is not copied for its tasks, but replaced");
            return None;
        }
    };
    loop {
        let left = match copies.copy() {
            Ok(copies::Turn::Copy(number)) => {
                context::become_copy(number);
                event_loop.set_turn(Turn::Copy);
                return Some(Copy { copies, grace });
            }
            Ok(copies::Turn::Left(left)) if [DONE, PASSED].contains(&(left & !NAMED)) => left,
            // Its exit handlers are for its copies.
            Ok(copies::Turn::Left(_) | copies::Turn::LeftProcesses) => {
                sibling::end_at_once(exit_code::STOPPED)
            }
            Ok(copies::Turn::Ended(exit)) => end_like(exit),
            Err(error) => {
                tracing::warn!(%error, "a worker cannot copy itself for a task, and is replaced");
                return None;
            }
        };
        let words: Vec<_> = copies.words().collect();
        if let Err(error) = event_loop.resume(words.as_chunks().0) {
            report_end(&codec::chain(&error));
            sibling::end_at_once(error.exit_code());
        }
        if left & !NAMED == PASSED {
            return None;
        }
        if left & NAMED != 0 {
            panic_capture::prepare_names();
        }
    }
}
