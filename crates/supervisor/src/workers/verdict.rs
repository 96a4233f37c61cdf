//! Judges from the end of a worker whether its task went too far.
//!
//! | end | proof | verdict |
//! |---|---|---|
//! | SIGKILL | a kill is counted in the worker's own control group | limit on memory |
//! | SIGABRT | private memory is limited; Rust's words for that are the last | limit on memory |
//! | SIGABRT | these words have more bytes than the limit of the control group | limit on memory |
//! | SIGXFSZ | the size of files is limited | limit on the size of files |
//! | SIGSEGV | the stack is limited, and the first thread's has overflowed | limit on the stack |
//! | SIGSYS | the worker is in a sandbox; its record has the call | denied |
//!
//! A null pointer that `malloc` returned in C, and that the code did not check, is a memory fault
//! like any other.

use brigade_crash::{Cause, CrashReport};
use brigade_sandbox::{Limit, calls};
use brigade_sys::process::Exit;

use crate::workers::limited::Limited;

/// The way in which a task went too far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has exceeded a limit that the kernel enforces.
    Exceeded {
        /// The limit.
        limit: Limit,
        /// The amount that was used, if it is known.
        used: Option<Limit>,
    },
    /// It has made a system call that its sandbox forbids.
    Denied {
        /// The call.
        call: &'static str,
    },
}

/// The evidence of a worker's end.
pub(crate) struct Evidence<'a> {
    pub(crate) exit: Exit,
    pub(crate) stderr_tail: &'a str,
    pub(crate) crash: Option<&'a CrashReport>,
    pub(crate) limited: Option<&'a Limited>,
    pub(crate) in_sandbox: bool,
    pub(crate) pid: u32,
}

/// The beginning of what the standard library prints before it aborts (`std::alloc`).
const ALLOCATION_FAILED: &str = "memory allocation of ";

const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGXFSZ: i32 = 25;
const SIGSYS: i32 = 31;

impl Evidence<'_> {
    pub(crate) fn judge(&self) -> Option<Verdict> {
        let Exit::Signal(signal) = self.exit else { return None };
        let exceeded = |limit, used| Verdict::Exceeded { limit, used };
        let limits = self.limited.map(Limited::limits);
        match signal {
            SIGKILL => self.limited?.killed_for_memory().map(|(limit, used)| exceeded(limit, used)),
            SIGABRT => {
                let (_, bytes) = self.stderr_tail.rsplit_once(ALLOCATION_FAILED)?;
                let bytes = bytes.split(' ').next()?.parse().ok();
                self.limited?.limit_of_allocation(bytes).map(|limit| exceeded(limit, None))
            }
            SIGXFSZ => limits?.file_size_limit().map(|limit| exceeded(limit, None)),
            SIGSEGV => {
                let crash = self.crash.filter(|it| *it.cause() == Cause::StackOverflow)?;
                let on_first = crash.stack().is_none_or(|stack| stack.thread() == self.pid);
                limits?.stack_limit().filter(|_| on_first).map(|limit| exceeded(limit, None))
            }
            SIGSYS if self.in_sandbox => {
                let number = match self.crash.map(CrashReport::cause) {
                    Some(Cause::ForbiddenCall { number }) => Some(i64::from(*number)),
                    // All signals were blocked, as while the C library starts a program.
                    _ => None,
                };
                let call = number.and_then(calls::name_of).unwrap_or("unknown");
                Some(Verdict::Denied { call })
            }
            _ => None,
        }
    }
}
