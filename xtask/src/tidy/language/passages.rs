//! Extracts the passages of natural language from source files and documents.

use crate::tokens::{Kind, Token, tokens};

/// Consecutive lines of text without their comment markers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passage<'a> {
    pub(super) style: Style,
    /// Lines with their numbers, counted from 1.
    lines: Vec<(usize, &'a str)>,
}

/// The kind of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A block of `///` or `//!` lines.
    Documentation,
    /// A string literal.
    Message,
    /// Another comment, or a document.
    Other,
}

impl<'a> Passage<'a> {
    /// Returns all words with their lines. A word includes the punctuation around it.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &'a str)> {
        let words = |(number, line): &(usize, &'a str)| {
            let number = *number;
            line.split_whitespace().map(move |word| (number, word))
        };
        self.lines.iter().flat_map(words)
    }

    /// Returns the paragraphs, joined to one line each, with their first lines. Fenced code is left
    /// out.
    pub(super) fn paragraphs(&self) -> Vec<(usize, String)> {
        let mut paragraphs: Vec<(usize, String)> = Vec::new();
        let (mut fenced, mut continued) = (false, false);
        for (number, line) in &self.lines {
            let line = line.trim();
            if line.starts_with("```") {
                fenced = !fenced;
                continued = false;
            } else if fenced || line.is_empty() {
                continued = false;
            } else if let Some((_, paragraph)) = paragraphs.last_mut().filter(|_| continued) {
                paragraph.push(' ');
                paragraph.push_str(line);
            } else {
                paragraphs.push((*number, line.to_owned()));
                continued = true;
            }
        }
        paragraphs
    }
}

/// Returns the comments and string literals of a Rust file. Adjacent line comments of one kind are
/// one passage.
pub(super) fn of_rust(source: &str) -> Vec<Passage<'_>> {
    let mut passages: Vec<Passage<'_>> = Vec::new();
    let mut previous: Option<(&str, usize)> = None;
    for token in tokens(source).filter(|token| token.kind != Kind::Code) {
        let passage = passage(&token);
        let marker = marker(&token);
        let adjoins = previous.is_some_and(|(kind, line)| {
            !kind.is_empty() && kind == marker && line + 1 == token.line
        });
        previous = Some((marker, token.line));
        match passages.last_mut().filter(|_| adjoins) {
            Some(last) => last.lines.extend(passage.lines),
            None => passages.push(passage),
        }
    }
    passages
}

/// Returns the text of a document outside fenced code.
pub(super) fn of_markdown(text: &str) -> Passage<'_> {
    let mut fenced = false;
    let outside = |(_, line): &(usize, &str)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    };
    Passage { style: Style::Other, lines: (1..).zip(text.lines()).filter(outside).collect() }
}

fn passage<'a>(token: &Token<'a>) -> Passage<'a> {
    let marker = marker(token);
    let style = match (token.kind, marker) {
        (_, "///" | "//!") => Style::Documentation,
        (Kind::String, _) => Style::Message,
        _ => Style::Other,
    };
    // `lines` would return nothing for an empty comment, which separates paragraphs.
    let lines = (token.line..).zip(token.text[marker.len()..].split('\n')).collect();
    Passage { style, lines }
}

/// Returns the marker of a line comment; empty for other tokens.
fn marker<'a>(token: &Token<'a>) -> &'a str {
    let length = match token.kind {
        Kind::LineComment if token.text.starts_with("////") => 2,
        Kind::LineComment if token.text.starts_with("///") => 3,
        Kind::LineComment if token.text.starts_with("//!") => 3,
        Kind::LineComment => 2,
        _ => 0,
    };
    &token.text[..length]
}

#[cfg(test)]
mod tests {
    use super::{Style, of_markdown, of_rust};

    #[test]
    fn adjacent_comments_of_one_kind_are_one_passage() {
        let source = "//! a\n//! b\n\n/// c\n// d\nlet e = \"f\"; // g\n/* h */\n";
        let passages = of_rust(source);
        let found: Vec<(Style, String)> = passages
            .iter()
            .map(|passage| {
                let words: Vec<&str> = passage.words().map(|(_, word)| word).collect();
                (passage.style, words.join(" "))
            })
            .collect();
        let expected = [
            (Style::Documentation, "a b"),
            (Style::Documentation, "c"),
            (Style::Other, "d"),
            (Style::Message, "\"f\""),
            (Style::Other, "g"),
            (Style::Other, "/* h */"),
        ];
        assert_eq!(found, expected.map(|(style, text)| (style, text.to_owned())));
    }

    #[test]
    fn paragraphs_leave_out_fenced_code() {
        let source = "/// a\n/// b\n///\n/// c\n/// ```\n/// d\n/// ```\n/// e\n";
        let paragraphs = of_rust(source)[0].paragraphs();
        let expected = [(1, "a b"), (4, "c"), (8, "e")];
        assert_eq!(paragraphs, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn documents_leave_out_fenced_code() {
        let words: Vec<_> = of_markdown("a\n```\nb\n```\nc\n").words().collect();
        assert_eq!(words, [(1, "a"), (5, "c")]);
    }
}
