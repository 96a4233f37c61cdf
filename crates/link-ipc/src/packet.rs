//! Packets: fragments of messages, together with the credit for the other direction.
//!
//! ```text
//! flags: u8 | consumed: u64 | total: u64 (first fragment only) | bytes
//! ```
//! `consumed` is the cost of all packets of the other direction that the sender of this packet has
//! consumed.

use brigade_wire::fragments::Fragment;
use brigade_wire::link::LinkError;

/// The first fragment of a message; the message's length follows.
const FIRST: u8 = 1;
/// The last fragment.
const LAST: u8 = 2;
/// No fragment, only credit.
const CREDIT: u8 = 4;

/// A decoded packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) consumed: u64,
    pub(crate) content: Content<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    Fragment { total: Option<u64>, last: bool, bytes: &'a [u8] },
    Credit,
}

/// Writes a fragment of the message `head` + `payload`, from `offset` on.
///
/// Returns the number of the message's bytes in it.
pub(crate) fn write_fragment(
    packet: &mut Vec<u8>,
    consumed: u64,
    head: &[u8],
    payload: &[u8],
    offset: usize,
    most: usize,
) -> usize {
    let fragment = Fragment::new(head, payload, offset, most);
    let first = if fragment.total.is_some() { FIRST } else { 0 };
    let last = if fragment.last { LAST } else { 0 };
    packet.clear();
    packet.push(first | last);
    packet.extend(consumed.to_le_bytes());
    if let Some(total) = fragment.total {
        packet.extend(total.to_le_bytes());
    }
    packet.extend(fragment.head);
    packet.extend(fragment.payload);
    fragment.len()
}

pub(crate) fn write_credit(packet: &mut Vec<u8>, consumed: u64) {
    packet.clear();
    packet.push(CREDIT);
    packet.extend(consumed.to_le_bytes());
}

pub(crate) fn read(packet: &[u8]) -> Result<Packet<'_>, LinkError> {
    let cut = LinkError::Protocol("truncated packet");
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
                Content::Fragment { total: None, last, bytes: rest }
            } else {
                let Some((total, bytes)) = rest.split_first_chunk() else {
                    return Err(cut);
                };
                Content::Fragment { total: Some(u64::from_le_bytes(*total)), last, bytes }
            }
        }
        _ => return Err(LinkError::Protocol("unknown packet kind")),
    };
    Ok(Packet { consumed, content })
}

#[cfg(test)]
mod tests {
    use brigade_wire::fragments::Assembly;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_in_packets_is_assembled_unchanged(head: Vec<u8>, payload: Vec<u8>, most in 1..50_usize, consumed: u64) {
            let mut assembly = Assembly::new(1000);
            let (mut packet, mut offset) = (Vec::new(), 0);
            loop {
                offset += write_fragment(&mut packet, consumed, &head, &payload, offset, most);
                let read = read(&packet).expect("a packet");
                prop_assert_eq!(read.consumed, consumed);
                let Content::Fragment { total, last, bytes } = read.content else { panic!("not a fragment") };
                prop_assert!(bytes.len() <= most);
                if assembly.add(total, last, bytes).expect("a fragment") {
                    break;
                }
            }
            prop_assert_eq!(assembly.message(), [head, payload].concat());
        }

        #[test]
        fn a_random_packet_is_decoded_or_refused(packet: Vec<u8>) {
            let _ = read(&packet);
        }
    }
}
