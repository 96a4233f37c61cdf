//! Texts of unknown length, cut to fit into a report.

use std::fmt::{self, Write};

/// The text, cut at a character so that it has at most `limit` bytes.
///
/// A text that is made piece by piece is not made any further than that.
pub(crate) fn bounded(text: &(impl fmt::Display + ?Sized), limit: usize) -> String {
    let mut bounded = Bounded { text: String::new(), limit };
    // The error is how the maker of the text is told to stop.
    let _ = write!(bounded, "{text}");
    bounded.text
}

struct Bounded {
    text: String,
    limit: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = self.limit - self.text.len();
        if piece.len() <= room {
            self.text.push_str(piece);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| piece.is_char_boundary(*end));
        self.text.push_str(&piece[..end.unwrap_or(0)]);
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_kept_and_a_long_one_is_cut_at_a_character() {
        assert_eq!(bounded("größe", 7), "größe");
        assert_eq!(bounded("größe", 5), "grö");
        assert_eq!(bounded("größe", 3), "gr");
    }

    #[test]
    fn pieces_count_together() {
        assert_eq!(bounded(&format_args!("{}{}{}", "ab", "cd", "ef"), 5), "abcde");
        assert_eq!(bounded("anything", 0), "");
    }
}
