//! Records that wait for their answers.

use crate::node::machine::Token;

/// The task of a record that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// An outcome or a dead letter: the first one counts.
    End(Token),
    /// A history, which replaces the one that was read.
    History(Token),
}

impl Tag {
    pub(super) fn token(self) -> Token {
        match self {
            Self::End(token) | Self::History(token) => token,
        }
    }
}
