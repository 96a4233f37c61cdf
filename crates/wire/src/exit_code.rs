//! Exit codes of workers, and descriptions of them and of the usual signals.
//!
//! The codes are above those that programs and shells commonly use, so that a task that calls
//! `exit` itself is hardly ever mistaken for one of them.

use brigade_sys::process::{Exit, signal_name};

/// The host asked the worker to stop.
pub const STOPPED: i32 = 0;
/// The variable that turns a process into a worker is malformed.
pub const MARKER: i32 = 221;
/// Host and worker use different versions of the protocol.
pub const VERSION: i32 = 222;
/// Other threads were running when `init` was called, so the ipc link could not be created.
pub const THREADS: i32 = 223;
/// The host ended, or is not the parent of this process.
pub const HOST_GONE: i32 = 224;
/// The control socket is unusable, or delivered something unexpected.
pub const CONTROL: i32 = 225;
/// The shared table of task states could not be mapped.
pub const SLOTS: i32 = 226;
/// The socket for the link could not be created.
pub const SERVER: i32 = 227;
/// The link could not be completed, or its peer did not have the token.
pub const LINK_REFUSED: i32 = 228;
/// The host closed the link without asking the worker to stop.
pub const LINK_CLOSED: i32 = 229;
/// The link broke while the worker waited for a task.
pub const LINK_BROKEN: i32 = 230;
/// An outcome could not be sent: the link is gone although the host exists.
pub const OUTCOME_LOST: i32 = 231;
/// The host sent a malformed message.
pub const PROTOCOL: i32 = 232;
/// The pool's initializer failed; the host received the reason.
pub const INITIALIZER: i32 = 233;

/// The worker was forked from a server, and could not take over a setting of the host.
pub const INHERITED: i32 = 234;

/// Returns the meaning of a code of this module, as a fragment that can follow "exit code 222, ",
/// or `None` for any other code.
///
/// [`STOPPED`] has no text, because a task that ends the process itself may also exit with zero.
pub const fn describe(code: i32) -> Option<&'static str> {
    Some(match code {
        MARKER => "the variable BRIGADE_WORKER was not set by a host",
        VERSION => {
            "it uses another version of the protocol; build host and worker from the same release"
        }
        THREADS => {
            "brigade::init() was called while other threads were running; make it the first line of main, or use Link::Ring"
        }
        HOST_GONE => {
            "the host is not, or no longer, its parent; a wrapper script must `exec` the worker"
        }
        CONTROL => {
            "its control socket (its initial standard input) was unusable; a wrapper must pass it on"
        }
        SLOTS => "it cannot map the memory that it shares with the host",
        SERVER => {
            "it cannot create the socket for its link; check space and permissions of the temporary folder"
        }
        LINK_REFUSED => "the link to the host cannot be completed",
        LINK_CLOSED => "the host closed the link",
        LINK_BROKEN => "the link broke; a task may have closed descriptors that are not its own",
        OUTCOME_LOST => {
            "an outcome cannot be sent; the task may have closed descriptors that are not its own"
        }
        PROTOCOL => "it received a malformed message",
        INITIALIZER => "its initializer failed",
        INHERITED => "it cannot take over a setting that its host has by now",
        _ => return None,
    })
}

/// Returns the meaning of an exit: [`describe`] for codes, the usual cause for signals.
pub fn describe_exit(exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Code(code) => describe(code),
        Exit::Signal(number) => Some(match signal_name(number)? {
            "SIGSEGV" | "SIGBUS" => "an invalid memory access or a stack overflow",
            "SIGABRT" => {
                "the process aborted itself: a panic that cannot unwind, a stack overflow, or C code"
            }
            "SIGKILL" => "killed from outside, perhaps because memory ran out",
            "SIGILL" => "an invalid instruction: perhaps code for another processor",
            "SIGFPE" => "an arithmetic fault in foreign code",
            _ => return None,
        }),
        Exit::Unknown => Some(
            "because the host ignores SIGCHLD or waits for any child; it must wait only for its own",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [i32; 14] = [
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
        INHERITED,
    ];

    #[test]
    fn every_exit_code_has_its_own_description() {
        let mut texts: Vec<_> = ALL.iter().map(|code| describe(*code).expect("a text")).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), ALL.len());
    }

    #[test]
    fn exit_codes_of_tasks_have_no_description() {
        for code in [0, 1, 2, 101, 127, 130, 139, 255] {
            assert_eq!(describe_exit(Exit::Code(code)), None, "{code}");
        }
    }

    #[test]
    fn memory_faults_have_a_description() {
        assert!(describe_exit(Exit::Signal(11)).is_some_and(|text| text.contains("memory")));
        assert_eq!(describe_exit(Exit::Signal(15)), None);
    }
}
