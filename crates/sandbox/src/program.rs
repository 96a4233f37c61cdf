//! Makes a program of the kernel's filter machine (classic BPF, seccomp(2)) of answers to system
//! calls.
//!
//! The program searches the number of the call in a tree of comparisons. The kernel runs a new
//! filter once for each call that it knows, to remember which it always allows, so the length of a
//! chain of comparisons would count hundreds of times.

use std::collections::BTreeMap;

/// An answer to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Allow,
    /// The call fails with this error.
    Fail(i32),
    /// The process gets SIGSYS, and its handler learns the number of the call.
    Trap,
}

/// The answers to all calls.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) calls: BTreeMap<u32, Call>,
    /// The answer to all others.
    pub(crate) otherwise: Answer,
}

/// The answers to one call, by its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// The first whose conditions all hold counts.
    pub(crate) rules: Vec<(Vec<Condition>, Answer)>,
    pub(crate) otherwise: Answer,
}

/// A comparison of some bits of an argument with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Number of the argument, from 0.
    pub(crate) argument: u8,
    pub(crate) mask: u64,
    pub(crate) value: u64,
    /// `false` if the values have to differ.
    pub(crate) is_equal: bool,
}

/// The identity of this processor's calls (linux/audit.h). Others, such as those of 32 bits, end
/// the process.
const ARCHITECTURE: u32 = if cfg!(target_arch = "x86_64") {
    0xc000_003e
} else if cfg!(target_arch = "riscv64") {
    0xc000_00f3
} else {
    0xc000_00b7
};

/// Offsets in the data of a call (`struct seccomp_data`); a number of 64 bits has its low half
/// first.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS: u32 = 16;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Instruction {
    code: u16,
    /// Number of instructions to skip if a comparison holds, and if it does not.
    yes: u8,
    no: u8,
    value: u32,
}

impl Answer {
    fn number(self) -> u32 {
        match self {
            Self::Allow => libc::SECCOMP_RET_ALLOW,
            Self::Fail(error) => libc::SECCOMP_RET_ERRNO | error.cast_unsigned(),
            Self::Trap => libc::SECCOMP_RET_TRAP,
        }
    }
}

impl Answers {
    /// Returns the program, as the words of its instructions: code, offsets, value.
    pub(crate) fn program(&self) -> Vec<u64> {
        let mut assembler = Assembler::default();
        let start = assembler.search(&self.ranges());
        // The search begins behind this.
        assembler.jump_to(start);
        assembler.push(plain(LOAD, NUMBER));
        assembler.push(plain(RETURN, libc::SECCOMP_RET_KILL_PROCESS));
        assembler.push(Instruction { code: IF_EQUAL, yes: 1, no: 0, value: ARCHITECTURE });
        assembler.push(plain(LOAD, ARCHITECTURE_AT));
        assembler.reversed.iter().rev().map(|it| it.word()).collect()
    }

    /// Returns the first number of each range of calls with the same answers.
    fn ranges(&self) -> Vec<(u32, Call)> {
        let others = Call { rules: Vec::new(), otherwise: self.otherwise };
        let mut ranges: Vec<(u32, Call)> = vec![(0, others.clone())];
        for (number, call) in &self.calls {
            if ranges.last().is_some_and(|(start, _)| start == number) {
                ranges.pop();
            }
            ranges.push((*number, call.clone()));
            ranges.push((number.saturating_add(1), others.clone()));
        }
        ranges.dedup_by(|next, last| next.1 == last.1);
        ranges
    }
}

fn plain(code: u16, value: u32) -> Instruction {
    Instruction { code, yes: 0, no: 0, value }
}

/// Makes a program from its end, because jumps lead forward, and their distances are known then. A
/// label is the number of instructions from there to the end.
#[derive(Default)]
struct Assembler {
    reversed: Vec<Instruction>,
    /// Labels of code for the same answers, which several branches share.
    made: Vec<(Call, usize)>,
}

/// Maximum number of instructions that a comparison can skip.
const FARTHEST: usize = 255;

impl Assembler {
    /// Adds an instruction before all others, and returns its label.
    fn push(&mut self, instruction: Instruction) -> usize {
        self.reversed.push(instruction);
        self.reversed.len()
    }

    /// Adds a jump, unless the program goes on there anyway.
    fn jump_to(&mut self, label: usize) {
        if label != self.reversed.len() {
            self.push(plain(JUMP, u32::try_from(self.reversed.len() - label).unwrap_or(u32::MAX)));
        }
    }

    /// Returns a label that a comparison before all instructions can reach, for one that leads to
    /// the same place.
    fn near(&mut self, label: usize) -> usize {
        // Both labels of a comparison may have to move.
        if self.reversed.len() - label + 2 <= FARTHEST {
            return label;
        }
        let distance = u32::try_from(self.reversed.len() - label).unwrap_or(u32::MAX);
        self.push(plain(JUMP, distance))
    }

    /// Adds a comparison, which goes on at one of two labels.
    fn compare(&mut self, code: u16, value: u32, yes: usize, no: usize) -> usize {
        let (yes, no) = (self.near(yes), self.near(no));
        let skip = |label| u8::try_from(self.reversed.len() - label).unwrap_or(u8::MAX);
        self.push(Instruction { code, yes: skip(yes), no: skip(no), value })
    }

    /// Adds the instructions that find the range of a number and answer the call.
    fn search(&mut self, ranges: &[(u32, Call)]) -> usize {
        match ranges {
            [] => self.reversed.len(),
            [(_, call)] => self.decide(call),
            _ => {
                let (below, above) = ranges.split_at(ranges.len() / 2);
                let yes = self.search(above);
                let no = self.search(below);
                self.compare(IF_AT_LEAST, above[0].0, yes, no)
            }
        }
    }

    /// Adds the instructions that answer one call, unless they are near already.
    fn decide(&mut self, call: &Call) -> usize {
        let near = self.reversed.len().saturating_sub(FARTHEST / 2);
        let made = self.made.iter().rev().find(|(other, label)| other == call && *label > near);
        if let Some((_, label)) = made {
            return *label;
        }
        let label = if call.rules.is_empty() {
            self.push(plain(RETURN, call.otherwise.number()))
        } else {
            let simple = |otherwise| Call { rules: Vec::new(), otherwise };
            let mut next = self.decide(&simple(call.otherwise));
            for (conditions, answer) in call.rules.iter().rev() {
                let mut pass = self.decide(&simple(*answer));
                for condition in conditions.iter().rev() {
                    pass = self.condition(*condition, pass, next);
                }
                next = pass;
            }
            next
        };
        self.made.push((call.clone(), label));
        label
    }

    /// Adds the instructions that go on at `pass` if the condition holds, and else at `fail`.
    fn condition(&mut self, condition: Condition, mut pass: usize, fail: usize) -> usize {
        let low = ARGUMENTS + 8 * u32::from(condition.argument);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
        let halves = [
            (low, condition.mask as u32, condition.value as u32),
            (low + 4, (condition.mask >> 32) as u32, (condition.value >> 32) as u32),
        ];
        // Different values differ in one half, equal ones in none.
        let (mut fail, is_equal) = (fail, condition.is_equal);
        let differ = if is_equal { fail } else { pass };
        for (at, mask, value) in halves.into_iter().rev().filter(|(_, mask, _)| *mask != 0) {
            let equal = if is_equal { pass } else { fail };
            self.compare(IF_EQUAL, value, equal, differ);
            if mask != u32::MAX {
                self.push(plain(AND, mask));
            }
            let label = self.push(plain(LOAD, at));
            if is_equal {
                pass = label;
            } else {
                fail = label;
            }
        }
        if is_equal { pass } else { fail }
    }
}

impl Instruction {
    fn word(self) -> u64 {
        u64::from(self.code)
            | u64::from(self.yes) << 16
            | u64::from(self.no) << 24
            | u64::from(self.value) << 32
    }
}

#[cfg(test)]
pub(crate) mod tests;
