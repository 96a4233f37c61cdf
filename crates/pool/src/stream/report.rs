//! The figures of a stream.

use std::fmt;

/// The figures of a stream at one moment; returned by [`Stream::report`](super::Stream::report).
///
/// Each input is counted once: `put == delivered + dropped + pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StreamReport {
    /// Inputs that were accepted.
    pub put: u64,
    /// Items that were received, including those with an error.
    pub delivered: u64,
    /// Items with an error, for whatever reason.
    pub failed: u64,
    /// Items with an error because their worker died.
    pub lost: u64,
    /// Inputs that get no item, because of a reset or because the stream was closed.
    pub dropped: u64,
    /// Inputs whose items were not received yet.
    pub pending: u64,
    /// The largest number of pending inputs at any moment.
    pub most_pending: usize,
    /// The largest number of items that were finished and not received at any moment.
    pub most_finished: usize,
}

impl fmt::Display for StreamReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { put, delivered, failed, lost, dropped, pending, .. } = self;
        write!(
            out,
            "{put} inputs: {delivered} delivered ({failed} failed, {lost} of them lost), {dropped} \
             dropped, {pending} pending; at most {} pending, {} finished and not received",
            self.most_pending, self.most_finished
        )
    }
}
