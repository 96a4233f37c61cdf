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

/// Delays that are a part of what is tested: file, script and reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "crates/cli/tests/command/hazards.rs",
        "sleep 0.4; printf",
        "the progress is drawn in between",
    ),
    ("crates/cli/tests/command/hazards.rs", "sleep 0.05'", "the progress is drawn in between"),
    ("crates/cli/tests/command/hazards.rs", "sleep 0.1; echo {}", "many jobs run at once"),
    ("crates/cli/tests/command/hazards.rs", "sleep 2; head", "too many outputs would be held"),
    ("crates/cli/tests/command/hazards.rs", "sleep 1; echo done", "a signal would end the job"),
    ("crates/cli/tests/command/pipe.rs", "sleep 0.3; tail", "too many blocks would be read"),
    ("crates/cli/tests/command/run.rs", "sleep 0.2; false", "its time is in the figures"),
    ("crates/cli/tests/command/run.rs", "sleep 1; echo late", "the progress is drawn in between"),
    ("crates/cli/tests/command/sem.rs", "sleep 0.1; rm busy", "two at once would meet"),
    ("crates/cli/tests/command/supervision.rs", "sleep 0.3; touch", "the run would end too early"),
    ("crates/cli/tests/command/supervision.rs", "sleep 0.1)", "two at once would meet"),
    ("crates/runner/tests/runner/joblog.rs", "sleep 0.01", "a kill finds jobs left"),
    ("crates/runner/tests/processes.rs", "sleep 1", "a busy loop would use processor time"),
];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    check_except(checkout, ALLOWED)
}

fn check_except(checkout: &Checkout, allowed: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = vec![false; allowed.len()];
    for file in checkout.rust_files().filter(|file| file.is_test()) {
        for (line, script) in delays(file) {
            let known = allowed
                .iter()
                .position(|(path, known, _)| *path == file.path && script.starts_with(known));
            match known {
                Some(index) => used[index] = true,
                None => findings.push(Finding::new(
                    &file.path,
                    line,
                    "a script sleeps: wait for a condition, as in `until test -e file; do sleep 0.01; done`",
                )),
            }
        }
    }
    let unused = allowed.iter().zip(used).filter(|(_, used)| !used);
    findings.extend(unused.map(|((path, script, _), _)| {
        let message = format!("no test sleeps as in `{script}`: remove it from ALLOWED");
        Finding::new(path, 1, message)
    }));
    findings
}

/// Returns the delays in the strings of a file, with their lines and the rest of the string.
fn delays(file: &File) -> Vec<(usize, &str)> {
    const SLEEP: &str = "sleep ";
    let mut delays = Vec::new();
    for token in tokens(&file.text).filter(|token| token.kind == Kind::String) {
        for (start, _) in token.text.match_indices(SLEEP) {
            let (before, script) = token.text.split_at(start);
            let rest = &script[SLEEP.len()..];
            let end = rest.find(|digit: char| !digit.is_ascii_digit() && digit != '.');
            let Ok(seconds) = rest[..end.unwrap_or(rest.len())].parse::<f64>() else { continue };
            let has_condition = before.contains("until ") || before.contains("while ");
            let is_pause =
                before.ends_with("do ") || end.is_some_and(|end| rest[end..].starts_with("; done"));
            let in_loop = has_condition && is_pause;
            if seconds < UNTIL_KILLED && !in_loop {
                delays.push((token.line + before.matches('\n').count(), script));
            }
        }
    }
    delays
}

#[cfg(test)]
mod tests {
    use super::check_except;
    use crate::checkout::Checkout;

    fn lines(text: &str, allowed: &[(&str, &str, &str)]) -> Vec<usize> {
        let checkout = Checkout::of(&[("crates/a/tests/a.rs", text), ("crates/a/src/a.rs", text)]);
        check_except(&checkout, allowed).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_delay_in_a_script_is_found_unless_it_is_known() {
        let text = "//! A.\nfn a() {\n    sh(\"x;\n        sleep 0.3; y\");\n}\n";
        assert_eq!(lines(text, &[]), [4]);
        let counted = "//! A.\nconst A: &str = \"for i in 1 2; do sleep 1; x; done\";\n";
        assert_eq!(lines(counted, &[]), [2]);
        assert!(lines(text, &[("crates/a/tests/a.rs", "sleep 0.3; y", "why")]).is_empty());
        assert_eq!(lines("//! A.\n", &[("crates/a/tests/a.rs", "sleep 0.3; y", "why")]), [1]);
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
            assert!(lines(&format!("//! A.\nconst A: &str = \"{script}\";\n"), &[]).is_empty());
        }
        assert!(lines("//! A.\n// sleep 1\n", &[]).is_empty());
    }
}
