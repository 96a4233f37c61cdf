//! The exit codes by which a worker says why it ended, and what they and the usual signals mean.
//!
//! They lie above the codes that programs and shells commonly use, so that a task which calls `exit` by itself is
//! hardly ever taken for one of them.

use brigade_sys::process::{Exit, signal_name};

/// The host asked the worker to stop.
pub const STOPPED: i32 = 0;
/// The variable that makes a process a worker has a value that no host writes.
pub const MARKER: i32 = 221;
/// Host and worker speak different versions of the protocol.
pub const VERSION: i32 = 222;
/// Other threads ran already when `init` was called, with which the link of ipc-channel cannot be made.
pub const THREADS: i32 = 223;
/// The host ended, or is not the parent of this process.
pub const HOST_GONE: i32 = 224;
/// The control socket is unusable, or something unexpected came over it.
pub const CONTROL: i32 = 225;
/// The table of task states, which the host shares, could not be mapped.
pub const SLOTS: i32 = 226;
/// The socket for the link could not be made.
pub const SERVER: i32 = 227;
/// The link could not be completed, or whoever connected did not know the token.
pub const LINK_REFUSED: i32 = 228;
/// The host closed the link without saying stop.
pub const LINK_CLOSED: i32 = 229;
/// The link broke while the worker waited for a task.
pub const LINK_BROKEN: i32 = 230;
/// An outcome could not be handed over: the link is gone although the host is there.
pub const OUTCOME_LOST: i32 = 231;
/// The host sent something that is no task.
pub const PROTOCOL: i32 = 232;
/// The pool's initializer failed; the host was told how.
pub const INITIALIZER: i32 = 233;

/// What a code of this module means, as a fragment that can follow "exit code 222, "; `None` for the codes of others.
///
/// [`STOPPED`] has no text, because zero is also what a task gives that ends the process by itself.
pub const fn describe(code: i32) -> Option<&'static str> {
    Some(match code {
        MARKER => "the variable BRIGADE_WORKER was not set by a host",
        VERSION => {
            "it speaks another version of the protocol; build host and worker from the same release"
        }
        THREADS => {
            "brigade::init() was called while other threads ran; make it the first line of main, or use Link::Ring"
        }
        HOST_GONE => {
            "it found that the host is not its parent (any more); a wrapper script must `exec` the worker"
        }
        CONTROL => {
            "its control socket (its standard input at the start) was unusable; a wrapper must pass it on"
        }
        SLOTS => "it could not map the memory that it shares with the host",
        SERVER => {
            "it could not make the socket for its link; check space and permissions of the temporary folder"
        }
        LINK_REFUSED => "the link to the host could not be completed",
        LINK_CLOSED => "the host closed the link",
        LINK_BROKEN => "the link broke; a task may have closed descriptors that are not its own",
        OUTCOME_LOST => {
            "an outcome could not be sent; the task may have closed descriptors that are not its own"
        }
        PROTOCOL => "it received something that is no task",
        INITIALIZER => "its initializer failed",
        _ => return None,
    })
}

/// What an end means beyond its number: [`describe`] for codes, the usual cause for signals.
pub fn describe_exit(exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Code(code) => describe(code),
        Exit::Signal(number) => Some(match signal_name(number)? {
            "SIGSEGV" | "SIGBUS" => "an invalid memory access or a stack overflow",
            "SIGABRT" => {
                "the process aborted itself: a panic that cannot unwind, a stack overflow, or C code"
            }
            "SIGKILL" => "killed from outside; perhaps memory ran out",
            "SIGILL" => "an invalid instruction: perhaps code for another processor",
            "SIGFPE" => "an arithmetic fault in foreign code",
            _ => return None,
        }),
        Exit::Unknown => {
            Some("as the host ignores SIGCHLD or waits for any child; let it wait for its own only")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [i32; 13] = [
        MARKER,
        VERSION,
        THREADS,
        HOST_GONE,
        CONTROL,
        SLOTS,
        SERVER,
        LINK_REFUSED,
        LINK_CLOSED,
        LINK_BROKEN,
        OUTCOME_LOST,
        PROTOCOL,
        INITIALIZER,
    ];

    #[test]
    fn every_code_of_ours_has_a_meaning_of_its_own() {
        let mut texts: Vec<_> = ALL.iter().map(|code| describe(*code).expect("a text")).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ALL.len());
    }

    #[test]
    fn the_codes_of_tasks_are_not_explained() {
        for code in [0, 1, 2, 101, 127, 130, 139, 255] {
            assert_eq!(describe_exit(Exit::Code(code)), None, "{code}");
        }
    }

    #[test]
    fn a_memory_fault_is_explained() {
        assert!(describe_exit(Exit::Signal(11)).is_some_and(|text| text.contains("memory")));
        assert_eq!(describe_exit(Exit::Signal(15)), None);
    }
}
