//! The one place of the library that writes to stderr.

use std::fmt;
use std::io::{self, Write};

/// Says why this process is about to end, in one line on stderr: the host keeps the end of a worker's stderr and
/// shows it with the death.
///
/// A worker that ends before or without its link has no other way to be heard.
pub(crate) fn last_words(reason: &dyn fmt::Display) {
    // Not `eprintln`: that panics when the task has closed stderr, and nobody is left to be told.
    let _ = writeln!(io::stderr(), "brigade worker {}: {reason}", std::process::id());
}
