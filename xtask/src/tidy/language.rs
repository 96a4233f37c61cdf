//! Checks the language of comments, messages and documents: no clauses in place of nouns, "cannot
//! …" as the one form of a failure in messages, and no comment lines wider than 100 columns.
//!
//! The doc comment of a function begins with a verb ("Returns…"), that of a type or field with a
//! noun phrase ("Bytes read so far", not "What was read").

mod passages;

use super::Finding;
use super::links::is_markdown;
use crate::checkout::{Checkout, File};

use passages::{Passage, Style};

/// Prefixes of paths that violate this rule. Rewrite the text below one of them, then delete its
/// line.
const NOT_CLEAN_YET: &[&str] = &[];

/// Words that must not begin a paragraph of a doc comment, unless it is a question.
const OPENINGS: &[&str] =
    &["What", "Who", "Whose", "Whom", "How", "Whether", "When", "Where", "Why", "Which"];

/// A phrase that is refused everywhere, word by word with alternatives, and better wording.
type Phrase = (&'static [&'static [&'static str]], &'static str);

const PHRASES: &[Phrase] = &[
    (&[&["that"], &["is", "are"], &["none"]], "name it: `invalid`, `missing`, `not a …`"),
    (&[&["that"], &["cannot"], &["be"]], "say `invalid`, or name the rule that is broken"),
    (&[&["cannot"], &["be"], &["had"]], "say what failed: `cannot install …`"),
    (
        &[&["is", "are", "was", "were", "be", "been"], &["told"]],
        "say `learns`, `receives` or `is notified`",
    ),
    (&[&["so"], &["many", "much"]], "give the number, or say `this many`"),
];

/// Phrases that are refused in messages.
const MESSAGES: &[Phrase] = &[
    (&[&["failed"], &["to"]], "say `cannot …`, as all messages do"),
    (&[&["could"], &["not"]], "say `cannot …`, as all messages do"),
    (&[&["unable"], &["to"]], "say `cannot …`, as all messages do"),
];

const WIDTH: usize = 100;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    check_except(checkout, NOT_CLEAN_YET)
}

fn check_except(checkout: &Checkout, exceptions: &[&str]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = checkout.files.iter().flat_map(check_file).collect();
    let below =
        |exception: &str| findings.iter().any(|finding| finding.path.starts_with(exception));
    let stale: Vec<Finding> = exceptions
        .iter()
        .filter(|exception| !below(exception))
        .map(|exception| {
            let message = format!("`{exception}` is clean: remove it from NOT_CLEAN_YET");
            Finding::new("xtask/src/tidy/language.rs", 1, message)
        })
        .collect();
    findings.retain(|finding| !exceptions.iter().any(|path| finding.path.starts_with(path)));
    findings.extend(stale);
    findings
}

fn check_file(file: &File) -> Vec<Finding> {
    let passages = if file.is_rust() {
        passages::of_rust(&file.text)
    } else if is_document(&file.path) {
        vec![passages::of_markdown(&file.text)]
    } else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for passage in &passages {
        if passage.style == Style::Documentation {
            check_openings(&file.path, passage, &mut findings);
        }
        check_phrases(PHRASES, &file.path, passage, &mut findings);
        if passage.style == Style::Message {
            check_phrases(MESSAGES, &file.path, passage, &mut findings);
        }
    }
    if file.is_rust() {
        check_width(&file.path, &file.text, &mut findings);
    }
    findings
}

/// Returns `true` for the documents that users read: README.md and everything below a `docs`.
fn is_document(path: &str) -> bool {
    path == "README.md"
        || is_markdown(path) && (path.starts_with("docs/") || path.contains("/docs/"))
}

fn check_openings(path: &str, passage: &Passage<'_>, findings: &mut Vec<Finding>) {
    for (line, paragraph) in passage.paragraphs() {
        let Some(opening) = OPENINGS.iter().find(|opening| begins_with(&paragraph, opening)) else {
            continue;
        };
        if !is_question(&paragraph) {
            let message = format!(
                "a doc comment begins with `{opening}`: begin with a verb (`Returns…`), or with a \
                 noun for a type, field or module"
            );
            findings.push(Finding::new(path, line, message));
        }
    }
}

fn begins_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening)
        .is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
}

/// Returns `true` if the first sentence ends with a question mark.
fn is_question(text: &str) -> bool {
    let ends = |word: &&str| word.ends_with(['.', '?', '!', ':']);
    text.split_whitespace().find(ends).is_some_and(|word| word.ends_with('?'))
}

fn check_phrases(
    phrases: &[Phrase],
    path: &str,
    passage: &Passage<'_>,
    findings: &mut Vec<Finding>,
) {
    let words: Vec<(usize, &str)> = passage.words().collect();
    for start in 0..words.len() {
        for (phrase, instead) in phrases {
            if is_phrase(&words[start..], phrase) {
                let found: Vec<&str> = words[start..start + phrase.len()]
                    .iter()
                    .map(|(_, word)| word.trim_matches(|character| !is_letter(character)))
                    .collect();
                let message = format!("`{}`: {instead}", found.join(" "));
                findings.push(Finding::new(path, words[start].0, message));
            }
        }
    }
}

/// Returns `true` if `words` begin with the phrase. No punctuation may stand between its words.
fn is_phrase(words: &[(usize, &str)], phrase: &[&[&str]]) -> bool {
    words.len() >= phrase.len()
        && words.iter().zip(phrase).enumerate().all(|(index, ((_, word), alternatives))| {
            let (first, last) = (index == 0, index + 1 == phrase.len());
            let left = if first { word.trim_start_matches(|c| !is_letter(c)) } else { word };
            let core = if last { left.trim_end_matches(|c| !is_letter(c)) } else { left };
            alternatives.iter().any(|alternative| core.eq_ignore_ascii_case(alternative))
        })
}

fn is_letter(character: char) -> bool {
    character.is_alphanumeric()
}

/// Checks the lines that contain nothing but a comment.
fn check_width(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in (1..).zip(text.lines()) {
        let width = line.chars().count();
        if width > WIDTH && line.trim_start().starts_with("//") {
            let message = format!("the comment has {width} columns, {WIDTH} at most: wrap it");
            findings.push(Finding::new(path, number, message));
        }
    }
}

#[cfg(test)]
mod tests;
