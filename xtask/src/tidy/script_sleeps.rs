//! Checks that scripts of tests do not sleep in place of waiting for a condition. A test that rests
//! on a delay tests nothing on a busy machine.
//!
//! A script may sleep between two looks at a condition, and for longer than any test takes, until
//! it is killed.

use super::Finding;
use crate::checkout::{Checkout, File};
use crate::tokens::{Kind, tokens};

/// A sleep of at least this many seconds ends by a signal.
const UNTIL_KILLED: f64 = 60.0;

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let files = checkout.rust_files().filter(|file| file.is_test());
    let lines = files.flat_map(|file| delays(file).into_iter().map(move |line| (file, line)));
    let finding = |(file, line): (&File, usize)| {
        Finding::new(
            &file.path,
            line,
            "a script sleeps: wait for a condition, as in `until test -e file; do sleep 0.01; done`",
        )
    };
    lines.map(finding).collect()
}

/// Returns the lines of the delays in the strings of a file.
fn delays(file: &File) -> Vec<usize> {
    const SLEEP: &str = "sleep ";
    let mut delays = Vec::new();
    for token in tokens(&file.text).filter(|token| token.kind == Kind::String) {
        for (start, _) in token.text.match_indices(SLEEP) {
            let (before, rest) = (&token.text[..start], &token.text[start + SLEEP.len()..]);
            let end = rest.find(|digit: char| !digit.is_ascii_digit() && digit != '.');
            let Ok(seconds) = rest[..end.unwrap_or(rest.len())].parse::<f64>() else { continue };
            let has_condition = before.contains("until ") || before.contains("while ");
            let is_pause =
                before.ends_with("do ") || end.is_some_and(|end| rest[end..].starts_with("; done"));
            let in_loop = has_condition && is_pause;
            if seconds < UNTIL_KILLED && !in_loop {
                delays.push(token.line + before.matches('\n').count());
            }
        }
    }
    delays
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::checkout::Checkout;

    fn lines(text: &str) -> Vec<usize> {
        let checkout = Checkout::of(&[("crates/a/tests/a.rs", text), ("crates/a/src/a.rs", text)]);
        check(&checkout).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_delay_in_a_script_is_found() {
        assert_eq!(lines("//! A.\nfn a() {\n    sh(\"x;\n        sleep 0.3; y\");\n}\n"), [4]);
        let counted = "//! A.\nconst A: &str = \"for i in 1 2; do sleep 1; x; done\";\n";
        assert_eq!(lines(counted), [2]);
    }

    #[test]
    fn waiting_for_a_condition_or_a_signal_is_no_delay() {
        for script in [
            "until test -e x; do sleep 0.01; done",
            "while :; do n=1; sleep 1; done",
            "exec sleep 600",
            "sleep 60 & wait",
            "sleep until then",
        ] {
            assert!(lines(&format!("//! A.\nconst A: &str = \"{script}\";\n")).is_empty());
        }
        assert!(lines("//! A.\n// sleep 1\n").is_empty());
    }
}
