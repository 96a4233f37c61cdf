//! The end of a process in words.

use std::fmt;

use brigade_sys::process::Exit;
use brigade_wire::exit_code::describe_exit;

use crate::report::CrashReport;

/// The end of a process, in a part of a sentence: its exit status, and the reason as far as it is
/// known.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The exit status.
    pub exit: Exit,
    /// The report of the crash, if there is one.
    pub crash: Option<&'a CrashReport>,
}

impl fmt::Display for End<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exit, crash } = *self;
        write!(out, "{exit}")?;
        match crash {
            Some(crash) if exit == Exit::Signal(crash.signal()) => {
                out.write_str(", ")?;
                crash.write_cause(out)
            }
            // The process was killed while it crashed, or a handler of its own has ended it.
            Some(crash) => write!(out, ", after {crash}"),
            None => match describe_exit(exit) {
                Some(text) => write!(out, ", {text}"),
                None => Ok(()),
            },
        }
    }
}
