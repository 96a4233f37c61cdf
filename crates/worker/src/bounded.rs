//! Truncates texts of unknown length, so that they fit into a report.

use std::fmt::{self, Write};

/// Formats `text` and truncates it to at most `limit` bytes, at a character boundary.
///
/// Formatting stops once the limit is reached.
pub(crate) fn bounded(text: &(impl fmt::Display + ?Sized), limit: usize) -> String {
    let mut bounded = Bounded { text: String::new(), limit };
    // The error makes the formatting stop.
    let _ = write!(bounded, "{text}");
    bounded.text
}

struct Bounded {
    text: String,
    limit: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, fragment: &str) -> fmt::Result {
        let room = self.limit - self.text.len();
        if fragment.len() <= room {
            self.text.push_str(fragment);
            return Ok(());
        }
        self.text.push_str(cut(fragment, room));
        Err(fmt::Error)
    }
}

/// Truncates `text` to at most `limit` bytes, at a character boundary.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character_boundary() {
        assert_eq!(bounded("größe", 7), "größe");
        assert_eq!(bounded("größe", 5), "grö");
        assert_eq!(bounded("größe", 3), "gr");
    }

    #[test]
    fn fragments_count_together() {
        assert_eq!(bounded(&format_args!("{}{}{}", "ab", "cd", "ef"), 5), "abcde");
        assert_eq!(bounded("anything", 0), "");
    }
}
