//! Packets: pieces of messages, with the credit that goes back.
//!
//! ```text
//! flags: u8 | consumed: u64 | total: u64 (first piece only) | bytes
//! ```
//! `consumed` is what the sender of the packet has consumed of the other direction, counted from the beginning.

use super::LinkError;

/// The first piece of a message; the message's length follows.
const FIRST: u8 = 1;
/// The last piece.
const LAST: u8 = 2;
/// No piece, only credit.
const CREDIT: u8 = 4;

/// A packet, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) consumed: u64,
    pub(super) content: Content<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Piece { total: Option<u64>, last: bool, bytes: &'a [u8] },
    Credit,
}

/// Writes a piece of a message: the bytes of `head` and `payload` together from `offset` on.
///
/// Answers how many bytes of the message it holds.
pub(super) fn write_piece(
    packet: &mut Vec<u8>,
    consumed: u64,
    head: &[u8],
    payload: &[u8],
    offset: usize,
    most: usize,
) -> usize {
    let total = head.len() + payload.len();
    let length = (total - offset).min(most);
    let first = if offset == 0 { FIRST } else { 0 };
    let last = if offset + length == total { LAST } else { 0 };
    packet.clear();
    packet.push(first | last);
    packet.extend(consumed.to_le_bytes());
    if offset == 0 {
        packet.extend((total as u64).to_le_bytes());
    }
    let from_head = head.get(offset..).unwrap_or_default();
    let from_head = &from_head[..from_head.len().min(length)];
    packet.extend(from_head);
    let start = (offset + from_head.len()).saturating_sub(head.len());
    packet.extend(&payload[start..start + length - from_head.len()]);
    length
}

pub(super) fn write_credit(packet: &mut Vec<u8>, consumed: u64) {
    packet.clear();
    packet.push(CREDIT);
    packet.extend(consumed.to_le_bytes());
}

pub(super) fn read(packet: &[u8]) -> Result<Packet<'_>, LinkError> {
    let cut = LinkError::Protocol("a packet that is cut off");
    let Some((flags, rest)) = packet.split_first() else {
        return Err(cut);
    };
    let Some((consumed, rest)) = rest.split_first_chunk() else {
        return Err(cut);
    };
    let consumed = u64::from_le_bytes(*consumed);
    let content = match *flags {
        CREDIT => Content::Credit,
        flags if flags & !(FIRST | LAST) == 0 => {
            let last = flags & LAST != 0;
            if flags & FIRST == 0 {
                Content::Piece { total: None, last, bytes: rest }
            } else {
                let Some((total, bytes)) = rest.split_first_chunk() else {
                    return Err(cut);
                };
                Content::Piece { total: Some(u64::from_le_bytes(*total)), last, bytes }
            }
        }
        _ => return Err(LinkError::Protocol("a packet of an unknown kind")),
    };
    Ok(Packet { consumed, content })
}

/// Puts pieces together. A length is believed only as far as bytes arrive.
#[derive(Debug)]
pub(super) struct Assembly {
    message: Vec<u8>,
    total: Option<usize>,
    limit: usize,
}

impl Assembly {
    pub(super) fn new(limit: usize) -> Self {
        Self { message: Vec::new(), total: None, limit }
    }

    /// Takes a piece; true when the message is whole.
    pub(super) fn add(
        &mut self,
        total: Option<u64>,
        last: bool,
        bytes: &[u8],
    ) -> Result<bool, LinkError> {
        let result = self.try_add(total, last, bytes);
        if !matches!(result, Ok(false)) {
            self.total = None;
        }
        result
    }

    fn try_add(&mut self, total: Option<u64>, last: bool, bytes: &[u8]) -> Result<bool, LinkError> {
        match (total, self.total) {
            (Some(total), None) => {
                let fits = usize::try_from(total).ok().filter(|total| *total <= self.limit);
                self.total = Some(fits.ok_or(LinkError::Protocol("a message above the limit"))?);
                self.message.clear();
                // What the last message needed is kept only while it is of use.
                self.message.shrink_to(1 << 16);
            }
            (None, Some(_)) => {}
            (Some(_), Some(_)) => return Err(LinkError::Protocol("a message inside another")),
            (None, None) => return Err(LinkError::Protocol("a piece of no message")),
        }
        let total = self.total.unwrap_or(0);
        if bytes.len() > total - self.message.len() {
            return Err(LinkError::Protocol("a message longer than it said"));
        }
        self.message.extend_from_slice(bytes);
        if last != (self.message.len() == total) {
            return Err(LinkError::Protocol("a message shorter than it said"));
        }
        Ok(last)
    }

    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_in_pieces_is_the_message(head: Vec<u8>, payload: Vec<u8>, most in 1..50_usize, consumed: u64) {
            let mut assembly = Assembly::new(1000);
            let (mut packet, mut offset) = (Vec::new(), 0);
            loop {
                offset += write_piece(&mut packet, consumed, &head, &payload, offset, most);
                let read = read(&packet).expect("a packet");
                prop_assert_eq!(read.consumed, consumed);
                let Content::Piece { total, last, bytes } = read.content else { panic!("not a piece") };
                prop_assert!(bytes.len() <= most);
                if assembly.add(total, last, bytes).expect("a piece") {
                    break;
                }
            }
            prop_assert_eq!(assembly.message(), [head, payload].concat());
        }

        #[test]
        fn random_packets_are_errors_or_packets_and_cost_no_memory(packets: Vec<Vec<u8>>) {
            let mut assembly = Assembly::new(usize::MAX);
            for packet in &packets {
                if let Ok(Packet { content: Content::Piece { total, last, bytes }, .. }) = read(packet) {
                    let _ = assembly.add(total, last, bytes);
                }
            }
            let sum: usize = packets.iter().map(Vec::len).sum();
            prop_assert!(assembly.message.capacity() <= (2 * sum).max(64));
        }
    }

    #[test]
    fn a_message_above_the_limit_is_refused_before_it_arrives() {
        let mut assembly = Assembly::new(10);
        assert!(assembly.add(Some(11), false, &[0]).is_err());
        assert!(assembly.add(Some(2), false, &[0]).is_ok(), "the next message is taken");
        assert!(assembly.add(None, true, &[0]).expect("the rest"));
    }
}
