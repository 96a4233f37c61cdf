//! Looks at a thread that waits in the kernel from outside, which it does not notice.
//!
//! The kernel tells where such a thread has left its program, and its stack can be read as long as
//! it waits. A thread that has run meanwhile is not taken for one that has waited: the time for
//! which it has run is compared. Its other registers are not known.

use std::fs;
use std::path::Path;

use super::area::{MAPS_BYTES, REGISTERS, STACK_BYTES, Snapshot};
use super::maps::Maps;
use super::record::RED_ZONE;
use crate::foreign_memory::copy_from;
use crate::numbers::Unit;
use crate::process::folder_of;

/// The value of a register that is not known. It is no address.
pub const UNKNOWN: u64 = 1;

/// The state of the main thread of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It waits there.
    Waits(Box<Snapshot>),
    /// It runs, or waits for a processor, in its program or in the kernel.
    Runs(Ran),
    /// The kernel does not say it, or there is no such process.
    Hidden,
}

/// The time for which a thread has run, as of the last tick or turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ran {
    nanos: u64,
    /// Number of times that it has got a processor.
    turns: u64,
}

impl Ran {
    /// Returns `true` if the thread has run on without a break since an earlier look.
    pub fn has_run_since(self, before: Self) -> bool {
        self.turns == before.turns && self.nanos.saturating_sub(before.nanos) >= STEADY
    }

    /// Returns `true` if the thread may have waited since an earlier look.
    pub fn may_have_waited_since(self, before: Self) -> bool {
        self.turns != before.turns
    }

    fn of(thread: &Path) -> Self {
        let text = read(thread, "schedstat");
        let mut fields = text.split_whitespace().map(|field| field.parse().unwrap_or(0));
        let (nanos, turns) = (fields.next(), fields.nth(1));
        Self { nanos: nanos.unwrap_or(0), turns: turns.unwrap_or(0) }
    }
}

/// The end of a system call takes less than this, in nanoseconds.
const STEADY: u64 = 20_000;

/// Looks at a process of this number.
pub(crate) fn look(pid: u32) -> Look {
    let thread = folder_of(pid).join("task").join(pid.to_string());
    let ran = Ran::of(&thread);
    // The state follows the name, which may contain anything.
    let state = read(&thread, "stat");
    match state.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
        Some('R') => return Look::Runs(ran),
        None | Some('X' | 'Z') => return Look::Hidden,
        Some(_) => {}
    }
    let call = read(&thread, "syscall");
    if call.starts_with("running") {
        return Look::Runs(Ran::of(&thread));
    }
    let seen = place(&call).and_then(|place| snapshot(pid, place));
    match seen {
        Some(_) if (Ran::of(&thread), read(&thread, "syscall")) != (ran, call) => {
            Look::Runs(Ran::of(&thread))
        }
        Some(snapshot) => Look::Waits(Box::new(snapshot)),
        None => Look::Hidden,
    }
}

fn read(thread: &Path, file: &str) -> String {
    fs::read_to_string(thread.join(file)).unwrap_or_default()
}

/// Returns the stack pointer and the instruction, which come last.
fn place(call: &str) -> Option<(u64, u64)> {
    let mut fields = call.split_whitespace().rev().map(|field| {
        field.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
    });
    let instruction = fields.next()??;
    Some((fields.next()??, instruction))
}

fn snapshot(pid: u32, (stack_pointer, instruction): (u64, u64)) -> Option<Snapshot> {
    let mut registers = vec![UNKNOWN; REGISTERS];
    let [at_stack, at_instruction] =
        if cfg!(target_arch = "aarch64") { [31, 32] } else { [15, 16] };
    (registers[at_stack], registers[at_instruction]) = (stack_pointer, instruction);
    let stack_pointer = usize::try_from(stack_pointer).ok()?;
    let mut found = Maps::new(stack_pointer, 0);
    let mut maps = Vec::new();
    for line in fs::read(folder_of(pid).join("maps")).ok()?.split_inclusive(|it| *it == b'\n') {
        if found.needs(line) && maps.len() + line.len() <= MAPS_BYTES {
            maps.extend(line);
        }
    }
    let stack = found.stack?;
    let start = (stack_pointer.saturating_sub(RED_ZONE) & !7).max(stack.start);
    let length = (stack.end - start.min(stack.end)).min(STACK_BYTES);
    let (start, process) = (start as u64, pid);
    let copy = copy_from(pid, (start, length), Unit::BYTE, 1, |_| ()).ok()?;
    Some(Snapshot {
        signal: libc::SIGURG,
        last_signal: libc::SIGURG,
        process,
        thread: pid,
        registers,
        stack_start: start,
        stack: copy.as_bytes().to_vec(),
        maps,
        is_complete: true,
        ..Snapshot::default()
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::{Process, Signal};

    #[test]
    fn a_process_that_waits_is_seen_with_its_stack() {
        let child = Process::spawn(Command::new("sleep").arg("60")).unwrap();
        let seen = loop {
            match child.look(None) {
                Look::Waits(seen) => break seen,
                Look::Runs(_) => {}
                Look::Hidden => panic!("nothing is seen"),
            }
        };
        assert!(seen.is_complete && seen.process == child.pid());
        assert!(!seen.stack.is_empty() && seen.maps.ends_with(b"\n"));
        assert_eq!(child.look(Some(u32::MAX)), Look::Hidden);
        child.signal(Signal::Kill).unwrap();
        child.reap().unwrap();
        assert_eq!(child.look(None), Look::Hidden);
    }

    #[test]
    fn a_thread_that_runs_has_run_on_without_a_break() {
        let pid = std::process::id();
        let looks = || match look(pid) {
            // The main thread waits for that of this test.
            Look::Waits(_) => true,
            Look::Runs(_) => false,
            Look::Hidden => panic!("nothing is seen"),
        };
        while !looks() {}
        let ran = |nanos, turns| Ran { nanos, turns };
        assert!(ran(STEADY, 3).has_run_since(ran(0, 3)));
        assert!(!ran(STEADY, 4).has_run_since(ran(0, 3)));
        assert!(!ran(STEADY, 3).has_run_since(ran(1, 3)));
        assert!(ran(0, 4).may_have_waited_since(ran(0, 3)));
    }

    #[test]
    fn the_place_is_at_the_end_of_the_line() {
        assert_eq!(place("7 0x0 0x1 0x2 0x3 0x4 0x5 0x7ffd10 0x5500\n"), Some((0x7f_fd10, 0x5500)));
        assert_eq!(place("-1 0x7ffd10 0x5500"), Some((0x7f_fd10, 0x5500)));
        assert_eq!((place("running"), place("")), (None, None));
    }
}
