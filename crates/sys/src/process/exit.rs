//! The exit status of a process.

use std::fmt;

/// The exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Exit {
    /// It has ended itself, with this code.
    Code(i32),
    /// A signal has ended it: its own abort or memory fault, or a kill from outside.
    Signal(i32),
    /// It has ended, and its status was lost: this program ignores SIGCHLD, or waits for any child
    /// elsewhere.
    Unknown,
}

impl fmt::Display for Exit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(formatter, "exit code {code}"),
            Self::Signal(number) => match signal_name(number) {
                Some(name) => write!(formatter, "{name} (signal {number})"),
                None => write!(formatter, "signal {number}"),
            },
            Self::Unknown => formatter.write_str("its exit status is unknown"),
        }
    }
}

/// Defines the table of the standard signals and their names.
macro_rules! signal_names {
    ($($name:ident)+) => { [$((libc::$name, stringify!($name))),+] };
}

/// Returns the name of a standard signal; real-time signals have none.
pub fn signal_name(number: i32) -> Option<&'static str> {
    let names = signal_names! {
        SIGHUP SIGINT SIGQUIT SIGILL SIGTRAP SIGABRT SIGBUS SIGFPE SIGKILL SIGUSR1 SIGSEGV SIGUSR2
        SIGPIPE SIGALRM SIGTERM SIGCHLD SIGCONT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGXCPU
        SIGXFSZ SIGVTALRM SIGPROF SIGWINCH SIGIO SIGPWR SIGSYS
    };
    names.iter().find(|(signal, _)| *signal == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_status_is_displayed_in_plain_words() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(9).to_string(), "SIGKILL (signal 9)");
        assert_eq!(Exit::Signal(40).to_string(), "signal 40");
        assert_eq!(Exit::Unknown.to_string(), "its exit status is unknown");
    }
}
