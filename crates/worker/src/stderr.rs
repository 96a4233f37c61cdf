//! The only code of the library that writes to stderr.

use std::fmt;
use std::io::{self, Write};

/// Writes the reason why this process is about to end to stderr, as one line. The host keeps the
/// tail of a worker's stderr and reports it with the death.
///
/// A worker that ends before or without its link has no other way to report the reason.
pub(crate) fn report_end(reason: &dyn fmt::Display) {
    // Not `eprintln!`, which panics if the task has closed stderr. There is nowhere to report an
    // error.
    let _ = writeln!(io::stderr(), "brigade worker {}: {reason}", std::process::id());
}
