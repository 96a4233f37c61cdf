//! Other systems than Linux have other system calls, of which none is known here.

/// A system call, of which there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The name of the call.
    pub name: &'static str,
}

/// Returns `None`.
pub fn named(_: &str) -> Option<&'static Line> {
    None
}

/// Returns `None`.
pub fn name_of(_: i64) -> Option<&'static str> {
    None
}
