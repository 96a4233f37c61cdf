//! Openings, phrases, widths and exceptions on small files.

use super::{check_except, check_file};
use crate::checkout::Checkout;

/// Lines of the findings in a Rust file.
fn lines(source: &str) -> Vec<usize> {
    let checkout = Checkout::of(&[("a.rs", source)]);
    check_except(&checkout, &[]).iter().map(|finding| finding.line).collect()
}

#[test]
fn a_doc_comment_must_not_begin_with_a_clause() {
    for opening in
        ["What was read.", "Whether it ran.", "How", concat!("So ", "many workers."), "Where it is"]
    {
        assert_eq!(lines(&format!("//! A.\n\n/// {opening}\nfn a() {{}}\n")), [3], "{opening}");
        assert_eq!(lines(&format!("//! A.\n//!\n//! {opening}\n")), [3], "{opening}");
    }
}

#[test]
fn other_words_and_continued_lines_are_allowed() {
    assert!(lines("/// Whatever is read.\n").is_empty());
    assert!(lines("/// Returns\n/// What it says.\n").is_empty());
    assert!(lines("/// A.\n/// ```\n///\n/// When\n/// ```\n").is_empty());
    assert!(lines("// What follows is private.\n").is_empty());
}

#[test]
fn a_question_is_allowed() {
    assert!(lines("/// How long after its deadline\n/// is it dead? Not long.\n").is_empty());
    assert_eq!(lines("/// How long it takes. Is it long?\n"), [1]);
}

#[test]
fn phrases_are_found_in_comments_strings_and_documents() {
    for phrase in
        [concat!("that is ", "none"), concat!("that cannot ", "be,"), concat!("(is ", "told)")]
    {
        assert_eq!(lines(&format!("fn a() {{}}\n// A message {phrase}\n")), [2], "{phrase}");
        assert_eq!(lines(&format!("const A: &str =\n    \"bytes {phrase}\";\n")), [2], "{phrase}");
        let document = format!("# A\n{phrase}\n");
        let text = document.as_str();
        let checkout = Checkout::of(&[("README.md", text), ("c.md", text), ("docs/b/a.md", text)]);
        let found: Vec<usize> = checkout.files.iter().map(|file| check_file(file).len()).collect();
        assert_eq!(found, [1, 0, 1], "{phrase}");
    }
}

#[test]
fn a_message_says_cannot() {
    for phrase in [concat!("failed ", "to"), concat!("could ", "not"), concat!("unable ", "to")] {
        assert_eq!(lines(&format!("const A: &str = \"{phrase} open\";\n")), [1], "{phrase}");
        assert!(lines(&format!("/// Returns what it {phrase} open.\n")).is_empty(), "{phrase}");
    }
}

#[test]
fn phrases_are_found_across_lines() {
    assert_eq!(lines(concat!("/// Starts so\n", "/// many workers.\n")), [1]);
}

#[test]
fn code_and_separated_words_are_allowed() {
    assert!(lines("fn so() { many() }\n").is_empty());
    assert!(lines(concat!("// It does so. ", "Many others do.\n")).is_empty());
    assert!(lines("let so = 1; // many\n").is_empty());
}

#[test]
fn comment_lines_wider_than_the_limit_are_found() {
    let (full, wide) = ("a".repeat(93), "a".repeat(94));
    assert!(lines(&format!("    // {full}\n")).is_empty());
    assert_eq!(lines(&format!("    // {wide}\n")), [1]);
    assert!(lines(&format!("let a = {wide}; // b\n")).is_empty());
}

#[test]
fn an_exception_holds_only_while_it_is_needed() {
    let checkout = Checkout::of(&[("a/b.rs", "/// What it is.\n"), ("c/d.rs", "/// A d.\n")]);
    assert!(check_except(&checkout, &["a/"]).is_empty());
    let stale = check_except(&checkout, &["a/", "c/"]);
    assert_eq!(stale.len(), 1);
    assert!(stale[0].message.contains("`c/` is clean"), "{}", stale[0]);
}
