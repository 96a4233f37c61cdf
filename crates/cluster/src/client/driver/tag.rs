//! Publications that wait for their answers.

use crate::client::machine::Ticket;

/// The subject of a publication's answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tag {
    Task(Ticket),
    End(Ticket),
}

impl Tag {
    pub(super) fn ticket(self) -> Ticket {
        match self {
            Self::Task(ticket) | Self::End(ticket) => ticket,
        }
    }
}
