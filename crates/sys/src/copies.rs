//! Copies this process for one turn after the other: each copy goes on in the place of its
//! original, which waits for its end.
//!
//! A worker makes such a copy for each task, so that each task has a fresh process, for a part of
//! the cost of a new worker. For its host nothing changes: the original is the worker's process,
//! and ends as a copy did that has not ended in order.
//!
//! - Only a process with a single thread is copied, by `fork`: nobody holds a lock that the copy
//!   would wait for.
//! - One copy exists at a time, and uses everything that the original has. It is the
//!   [origin](crate::fork) of all that its original is the origin of.
//! - The kernel kills the copy when its original ends. Both are in one group.
//! - The original adopts the orphans of its copies and reaps them, so it knows whether a copy has
//!   left processes behind. It blocks signals, because those for the group are for the copy.
//! - A copy leaves a number and some words in shared memory. They count only if it exits in order
//!   after that.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, WaitId, WaitIdOptions, getpid, getrlimit,
    set_dumpable_behavior, setrlimit, waitid,
};

use crate::process::{Exit, exit_of};
use crate::segment::Segment;
use crate::signals::{self, Blocked, EXIT_OF_SIGNALS};
use crate::{crash, fork, orphans, parent_death, sibling};

/// Makes copies of this process, one after the other.
#[derive(Debug)]
pub struct Copies {
    /// The will of the present copy: a number, or [`NOTHING`]; the number of words that come with
    /// it; the words.
    left: Segment,
    /// Number of the last copy, from 1.
    number: u64,
    /// In the original: signals for the group are for the copy, and no handler of the program waits
    /// for children.
    blocked: Option<Blocked>,
}

/// The result of [`Copies::copy`], in one process or the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// This process is the copy with this number, from 1.
    Copy(u64),
    /// This is the original. The copy has left this, has exited with code 0, and no process has
    /// survived it.
    Left(u64),
    /// This is the original. The copy has exited in order, and processes that it has started have
    /// survived it.
    LeftProcesses,
    /// This is the original. The copy has ended without a word, or not in order.
    Ended(Exit),
}

const NOTHING: u64 = 0;
const COUNT: usize = 1;
const WORDS: usize = 2;

/// Maximum number of words that a copy may leave. With the two before them they fill a page.
pub const MAX_WORDS: usize = 510;

impl Copies {
    /// Prepares copies of this process.
    ///
    /// # Errors
    /// If this process cannot be copied safely; the text says why.
    pub fn new() -> Result<Self, String> {
        sibling::single_thread()?;
        if !fork::can_be_succeeded() {
            return Err("its kernel has no memory that is empty in copies".into());
        }
        let left = Segment::create("brigade-copies", WORDS + MAX_WORDS)
            .and_then(|left| orphans::adopt().map(|()| left))
            .map_err(|error| format!("it cannot prepare copies of itself: {error}"))?;
        Ok(Self { left, number: 0, blocked: None })
    }

    /// Copies this process. Returns in the copy, and in the original at the end of the copy.
    ///
    /// # Errors
    /// If no process is left.
    pub fn copy(&mut self) -> io::Result<Turn> {
        self.left.words()[0].store(NOTHING, Ordering::Relaxed);
        self.number += 1;
        self.blocked.get_or_insert_with(Blocked::all_but_samples);
        let original = getpid();
        let here = fork::Succession::new();
        // SAFETY: there is no other thread, so the copy may do whatever this process may.
        let copy = match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                here.succeed();
                crash::follow();
                if parent_death::bind(original.as_raw_nonzero().get().unsigned_abs()).is_err() {
                    sibling::end_at_once(0);
                }
                self.blocked = None;
                return Ok(Turn::Copy(self.number));
            }
            copy => copy,
        };
        crash::sample_instead(copy);
        Ok(self.wait(copy))
    }

    /// Ends this copy by a signal if it has not exited after a time.
    pub fn end_after(&self, time: Duration) {
        // Without a timer nothing bounds the time, as in a process that exits.
        let _ = signals::end_after(time);
    }

    /// Leaves a number other than 0 and at most [`MAX_WORDS`] words to the original. Call it in a
    /// copy, at its end.
    pub fn leave(&self, what: u64, words: impl IntoIterator<Item = u64>) {
        let all = self.left.words();
        let mut count = 0;
        for (place, word) in all[WORDS..].iter().zip(words) {
            place.store(word, Ordering::Relaxed);
            count += 1;
        }
        all[COUNT].store(count, Ordering::Relaxed);
        all[0].store(what, Ordering::Relaxed);
    }

    /// Returns the words that the last copy has left.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let all = self.left.words();
        let count = usize::try_from(all[COUNT].load(Ordering::Relaxed)).unwrap_or(0);
        all[WORDS..].iter().take(count).map(|word| word.load(Ordering::Relaxed))
    }

    /// Waits for the end of the copy. Reaps orphans that have ended, too.
    fn wait(&self, copy: libc::pid_t) -> Turn {
        let exit = loop {
            match orphans::changed(libc::WEXITED | libc::WNOWAIT) {
                Some((child, code, status)) if child == copy => break exit_of(code, status),
                Some((orphan, ..)) => reap(orphan),
                None => break Exit::Unknown,
            }
        };
        // Until it is reaped, the number is its own, and may be signalled.
        crash::sample_instead(0);
        reap(copy);
        let left = self.left.words()[0].load(Ordering::Relaxed);
        if exit != Exit::Code(0) || left == NOTHING {
            return Turn::Ended(exit);
        }
        if has_children() { Turn::LeftProcesses } else { Turn::Left(left) }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if self.blocked.is_some() {
            // They were for the copies.
            signals::discard_pending();
        }
    }
}

fn reap(child: libc::pid_t) {
    let child = rustix::process::Pid::from_raw(child);
    let _ = child.map(|pid| retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)));
}

/// Returns `true` if there are children that live. Reaps the others.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::All, options) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Ends this process as its copy did, without exit handlers and without another core dump.
pub fn end_like(exit: Exit) -> ! {
    let Exit::Signal(signal) = exit else {
        sibling::end_at_once(if let Exit::Code(code) = exit { code } else { 0 })
    };
    let none = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
    let _ = setrlimit(Resource::Core, none);
    // A dump that is piped to a program has no limit.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    signals::end_by(signal);
    sibling::end_at_once(EXIT_OF_SIGNALS + signal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fork::Origin;
    use crate::fork::tests::in_a_copy;

    /// Runs `check` in a process with a single thread.
    fn alone(check: impl FnOnce(Copies) -> bool) -> bool {
        in_a_copy(|| Copies::new().is_ok_and(check))
    }

    /// Returns the end of a copy that runs `errand`.
    fn end_of(copies: &mut Copies, errand: impl FnOnce(&Copies)) -> Option<Turn> {
        let turn = copies.copy().ok()?;
        if matches!(turn, Turn::Copy(_)) {
            errand(copies);
            sibling::end_at_once(0);
        }
        Some(turn)
    }

    #[test]
    fn each_copy_goes_on_in_the_place_of_the_process() {
        assert!(alone(|mut copies| {
            let origin = Origin::here();
            (1..=3).all(|number| {
                let turn = end_of(&mut copies, |copies| {
                    if origin.is_here() && copies.number == number {
                        copies.leave(number, [number; 5]);
                    }
                });
                turn == Some(Turn::Left(number)) && copies.words().eq([number; 5])
            })
        }));
    }

    #[test]
    fn a_copy_of_a_copy_has_no_part_in_it() {
        assert!(alone(|mut copies| {
            let origin = Origin::here();
            let turn = end_of(&mut copies, |copies| {
                if in_a_copy(|| !origin.is_here()) {
                    copies.leave(1, []);
                }
            });
            turn == Some(Turn::Left(1))
        }));
    }

    #[test]
    fn the_end_of_a_copy_counts_more_than_its_word() {
        let ended = |exit| Some(Turn::Ended(exit));
        assert!(alone(|mut copies| end_of(&mut copies, |_| ()) == ended(Exit::Code(0))));
        for exit in [Exit::Code(7), Exit::Signal(libc::SIGSEGV), Exit::Signal(libc::SIGKILL)] {
            assert!(alone(|mut copies| {
                let turn = end_of(&mut copies, |copies| {
                    copies.leave(1, []);
                    end_like(exit);
                });
                turn == ended(exit)
            }));
        }
    }

    #[test]
    fn a_copy_that_does_not_exit_is_ended() {
        assert!(alone(|mut copies| {
            let turn = end_of(&mut copies, |copies| {
                copies.leave(1, []);
                copies.end_after(Duration::from_millis(1));
                loop {
                    // SAFETY: waits for a signal.
                    unsafe { libc::pause() };
                }
            });
            turn == Some(Turn::Ended(Exit::Signal(libc::SIGKILL)))
        }));
    }

    #[test]
    fn processes_that_survive_a_copy_are_noticed() {
        let (until_end, _end) = rustix::pipe::pipe().unwrap();
        assert!(alone(|mut copies| {
            let turn = end_of(&mut copies, |copies| {
                // SAFETY: the new process only makes system calls, until the test ends.
                if unsafe { libc::fork() } == 0 {
                    let _ = rustix::stdio::dup2_stdin(&until_end);
                    // SAFETY: it closes all others, and this process uses none of them.
                    unsafe { syscall!(libc::SYS_close_range, 1_u32, u32::MAX, 0_u32) };
                    let _ = rustix::io::read(rustix::stdio::stdin(), &mut [0_u8]);
                    sibling::end_at_once(0);
                }
                copies.leave(1, []);
            });
            turn == Some(Turn::LeftProcesses)
        }));
    }

    #[test]
    fn signals_for_the_group_reach_the_copy_alone() {
        assert!(alone(|mut copies| {
            sibling::lead_group();
            let turns = [false, true].map(|handles| {
                end_of(&mut copies, |copies| {
                    let handled = handles.then(Blocked::all_but_samples);
                    // SAFETY: it signals the group that the original has just made.
                    unsafe { libc::kill(0, libc::SIGTERM) };
                    copies.leave(1, []);
                    std::mem::forget(handled);
                })
            });
            let killed = Turn::Ended(Exit::Signal(libc::SIGTERM));
            turns == [Some(killed), Some(Turn::Left(1))]
        }));
    }

    #[test]
    fn a_process_with_threads_is_not_copied() {
        let reason = Copies::new().unwrap_err();
        assert!(reason.contains("threads"), "{reason}");
    }
}
