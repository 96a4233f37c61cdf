//! The prefix of each line of a job's output.

use memchr::memmem;

use crate::template::SLOT_MARKER;

/// The prefix of each line of a job's output; empty without tags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tag(Vec<u8>);

/// The first of the colors that jobs take in turn, and their number.
const FIRST_COLOR: u64 = 31;
const COLORS: u64 = 6;

impl Tag {
    /// Returns the tag with this text and a tab, as in GNU parallel, but with spaces for line ends,
    /// so that a line has one tag. The text is colored for the job with the number `color`.
    pub(crate) fn new(text: Vec<u8>, color: Option<u64>) -> Self {
        let in_line = |byte| if byte == b'\n' { b' ' } else { byte };
        let mut tag: Vec<u8> = text.into_iter().map(in_line).collect();
        if let Some(number) = color {
            let start = format!("\x1b[{}m", FIRST_COLOR + number % COLORS);
            tag = [start.as_bytes(), &tag, b"\x1b[0m"].concat();
        }
        tag.push(b'\t');
        Self(tag)
    }

    /// Returns the tag on this slot.
    pub(crate) fn on_slot(&self, slot: usize) -> Vec<u8> {
        let (mut tag, mut from) = (Vec::new(), 0);
        for at in memmem::find_iter(&self.0, SLOT_MARKER) {
            tag.extend_from_slice(&self.0[from..at]);
            tag.extend_from_slice(slot.to_string().as_bytes());
            from = at + SLOT_MARKER.len();
        }
        tag.extend_from_slice(&self.0[from..]);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_one_line_and_knows_its_slot() {
        assert_eq!(Tag::new(b"a\nb".to_vec(), None).on_slot(1), b"a b\t");
        let text = [b"x", SLOT_MARKER, b"-", SLOT_MARKER].concat();
        assert_eq!(Tag::new(text, None).on_slot(12), b"x12-12\t");
        assert_eq!(Tag::new(b"a".to_vec(), Some(6)).on_slot(1), b"\x1b[31ma\x1b[0m\t");
        assert!(Tag::default().on_slot(1).is_empty());
    }
}
