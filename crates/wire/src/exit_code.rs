//! Exit codes of workers, and descriptions of them and of the usual signals.
//!
//! The codes are above those that programs and shells commonly use, so that a task that calls
//! `exit` itself is hardly ever mistaken for one of them.

use brigade_sys::process::{Exit, signal_name};

/// The host asked the worker to stop.
pub const STOPPED: i32 = 0;

/// Declares the codes with their texts.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal: $text:literal;)+) => {
        $($(#[$doc])* pub const $name: i32 = $code;)+

        const TEXTS: &[(i32, &str)] = &[$(($name, $text)),+];
    };
}

codes! {
    /// The variable that turns a process into a worker is malformed.
    MARKER = 221: "the variable BRIGADE_WORKER was not set by a host";
    /// Host and worker use different versions of the protocol.
    VERSION = 222: "it uses another version of the protocol; build host and worker from the same release";
    /// Other threads were running when `init` was called, so the ipc link could not be created.
    THREADS = 223: "brigade::init() was called while other threads were running; make it the first line of main, or use Link::Ring";
    /// The host ended, or is not the parent of this process.
    HOST_GONE = 224: "the host is not, or no longer, its parent; a wrapper script must `exec` the worker";
    /// The control socket is unusable, or delivered something unexpected.
    CONTROL = 225: "its control socket (its initial standard input) was unusable; a wrapper must pass it on";
    /// The shared table of task states could not be mapped.
    SLOTS = 226: "it cannot map the memory that it shares with the host";
    /// The socket for the link could not be created.
    SERVER = 227: "it cannot create the socket for its link; check space and permissions of the temporary folder";
    /// The link could not be completed, or its peer did not have the token.
    LINK_REFUSED = 228: "the link to the host cannot be completed";
    /// The host closed the link without asking the worker to stop.
    LINK_CLOSED = 229: "the host closed the link";
    /// The link broke while the worker waited for a task.
    LINK_BROKEN = 230: "the link broke; a task may have closed descriptors that are not its own";
    /// An outcome could not be sent: the link is gone although the host exists.
    OUTCOME_LOST = 231: "an outcome cannot be sent; the task may have closed descriptors that are not its own";
    /// The host sent a malformed message.
    PROTOCOL = 232: "it received a malformed message";
    /// The pool's initializer failed; the host received the reason.
    INITIALIZER = 233: "its initializer failed";
    /// The worker was forked from a server, and could not take over a setting of the host.
    INHERITED = 234: "it cannot take over a setting that its host has by now";
}

/// Returns the meaning of an exit as a fragment that can follow "exit code 222, ": that of a code
/// of this module, or the usual cause of a signal.
///
/// [`STOPPED`] has no text, because a task that ends the process itself may also exit with zero.
pub fn describe_exit(exit: Exit) -> Option<&'static str> {
    match exit {
        Exit::Code(code) => TEXTS.iter().find(|(known, _)| *known == code).map(|(_, text)| *text),
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

    #[test]
    fn every_exit_code_has_its_own_description() {
        let described = TEXTS.iter().map(|(code, _)| describe_exit(Exit::Code(*code)));
        let mut texts: Vec<_> = described.map(|text| text.expect("a text")).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), TEXTS.len());
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
