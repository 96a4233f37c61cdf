//! Checks that a Markdown document is wrapped in one way: a line for each sentence, or lines of
//! about 130 columns.

use super::Finding;
use super::links::is_markdown;
use crate::checkout::Checkout;

/// A longer line is a whole sentence.
const WRAPPED: usize = 150;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let documents = checkout.files.iter().filter(|file| is_markdown(&file.path));
    documents.filter_map(|file| check_document(&file.path, &file.text)).collect()
}

fn check_document(path: &str, text: &str) -> Option<Finding> {
    let prose = prose(text);
    let (long, _) = prose.iter().find(|(_, line)| line.chars().count() > WRAPPED)?;
    let continues = |pair: &&[(usize, &str)]| {
        let [(first, line), (second, next)] = pair else { return false };
        first + 1 == *second && !starts_item(next) && !ends_sentence(line)
    };
    let (broken, _) = prose.windows(2).find(continues)?[0];
    let message = format!(
        "the line ends within a sentence, and line {long} is a whole one of more than {WRAPPED} columns: give each \
         sentence a line, or wrap them all"
    );
    Some(Finding::new(path, broken, message))
}

/// Returns the lines of paragraphs and lists, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_fenced = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        let is_fence = start.starts_with("```");
        is_fenced ^= is_fence;
        let is_other = is_fence || is_fenced || start.is_empty();
        if !is_other && !start.starts_with(['|', '#', '<', '>']) && !is_definition(start) {
            lines.push((number, line));
        }
    }
    lines
}

/// Returns `true` for the target of a link.
fn is_definition(line: &str) -> bool {
    line.starts_with('[') && line.contains("]:")
}

fn starts_item(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || rest.len() < line.len() && rest.starts_with(". ")
}

fn ends_sentence(line: &str) -> bool {
    line.trim_end()
        .trim_end_matches([')', '*', '_', '"', ']', '`'])
        .ends_with(['.', '?', '!', ':', ';'])
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    #[test]
    fn a_document_that_wraps_in_two_ways_is_found() {
        let long = format!("{}.\n", "word ".repeat(40).trim_end());
        let wrapped = "It goes on\nin the next line.\n";
        let files = [
            ("both.md", format!("# A\n\n{long}\n{wrapped}")),
            ("sentences.md", format!("{long}It ends.\n- a\n- b\n\n```\nx\ny\n```\n| a\n| b\n")),
            ("lines.md", wrapped.to_owned()),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
        assert_eq!(locations(check, &files), ["both.md:5"]);
    }
}
