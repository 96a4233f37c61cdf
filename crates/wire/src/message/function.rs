//! The function of a task, as a message names it.

/// The name of a function across processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function<'a> {
    /// Its offset in the executable that both sides run.
    Offset(u64),
    /// A name that the worker's program has registered.
    Name {
        /// The name.
        name: &'a str,
        /// A hash of the types that the host gives the function; 0 if it does not know them.
        types: u64,
    },
}
