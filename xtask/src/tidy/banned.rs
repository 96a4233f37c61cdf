//! Words that may not stand in code, with the places where each is right all the same.

use super::{Finding, mask};
use crate::checkout::{Checkout, File};

struct Ban {
    word: &'static str,
    /// What to write instead.
    instead: &'static str,
    /// Beginnings of paths where the word is right, each with the reason.
    exceptions: &'static [(&'static str, &'static str)],
    /// Whether test code may use it: folders `tests`, files `tests.rs`, and the test module at the
    /// end of a file.
    tests_may: bool,
}

const BANS: &[Ban] = &[
    Ban::everywhere(
        "#[ignore",
        "repair the test or delete it; a test that does not run protects nothing",
    ),
    Ban::everywhere("todo!", "write it, or leave it out"),
    Ban::everywhere("unimplemented!", "write it, or leave it out"),
    Ban::everywhere(
        "#[allow(",
        "use `#[expect(lint, reason = \"...\")]`, which tells when it is no longer needed",
    ),
    Ban::everywhere(
        "#![allow(",
        "use `#![expect(lint, reason = \"...\")]`, which tells when it is no longer needed",
    ),
    Ban {
        word: "thread::sleep",
        instead: "wait for the condition itself, with a bound; if time must pass here, add the \
                  file with its reason to xtask/src/tidy/banned.rs",
        exceptions: &[
            (
                "crates/testkit/src/",
                "tasks that must take long, and the pause between two looks of a bounded wait",
            ),
            ("crates/integration/src/bin/", "programs that misbehave by hanging"),
            ("crates/brigade/examples/", "stands for work that takes time"),
        ],
        tests_may: false,
    },
    Ban {
        word: "Command::new",
        instead: "start processes through brigade-sys, which keeps the child in a group of its \
                  own, holds a pidfd and reaps it",
        exceptions: &[
            ("crates/sys/", "the one place where processes are started"),
            ("crates/testkit/", "helpers of tests"),
            ("crates/integration/", "tests over real processes"),
            ("crates/brigade/examples/", "an example may start whatever it shows"),
            ("benches/", "compares with a bare process"),
            ("xtask/", "runs cargo"),
        ],
        tests_may: true,
    },
];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.rust_files() {
        let first_test_line = file.first_test_line();
        for (number, line) in file.code_lines() {
            let in_test = file.is_test() || number >= first_test_line;
            for ban in BANS.iter().filter(|ban| ban.applies(file, in_test)) {
                if mask::occurrences(line, ban.word).next().is_some() {
                    let message = format!("`{}`: {}", ban.word, ban.instead);
                    findings.push(Finding::new(&file.path, number, message));
                }
            }
            if line.contains("cfg_attr(") && mask::occurrences(line, "allow(").next().is_some() {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    "`allow` in `cfg_attr`: use `expect` with a reason",
                ));
            }
        }
    }
    findings
}

impl Ban {
    const fn everywhere(word: &'static str, instead: &'static str) -> Self {
        Self { word, instead, exceptions: &[], tests_may: false }
    }

    fn applies(&self, file: &File, in_test: bool) -> bool {
        let excepted = self.exceptions.iter().any(|(start, _reason)| file.path.starts_with(start));
        !(excepted || in_test && self.tests_may)
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::places;

    fn found(path: &str, source: &str) -> Vec<String> {
        places(check, &[(path, source)])
    }

    #[test]
    fn what_is_banned_everywhere_is_found_in_tests_too() {
        for word in [
            "#[ignore]",
            "#[ignore = \"slow\"]",
            "todo!()",
            "unimplemented!()",
            "#[allow(dead_code)]",
            "#![allow(x)]",
        ] {
            assert_eq!(
                found("crates/a/tests/b.rs", &format!("\n{word}\n")),
                ["crates/a/tests/b.rs:2"],
                "{word}"
            );
        }
        assert_eq!(found("a/src/b.rs", "#[cfg_attr(loom, allow(dead_code))]\n"), ["a/src/b.rs:1"]);
    }

    #[test]
    fn words_in_comments_and_strings_are_no_code() {
        assert!(
            found("a/src/b.rs", "// todo!()\nlet a = \"#[allow(\";\nlet b = my_todo!();\n")
                .is_empty()
        );
    }

    #[test]
    fn sleep_is_found_in_tests_and_allowed_where_a_reason_is_given() {
        let source = "std::thread::sleep(second);\n";
        assert_eq!(found("crates/pool/tests/a.rs", source), ["crates/pool/tests/a.rs:1"]);
        assert!(found("crates/testkit/src/wait.rs", source).is_empty());
    }

    #[test]
    fn processes_are_started_by_the_leaf_and_by_tests() {
        let source =
            "Command::new(\"a\");\n#[cfg(test)]\nmod tests {\n    Command::new(\"b\");\n}\n";
        assert_eq!(found("crates/pool/src/a.rs", source), ["crates/pool/src/a.rs:1"]);
        assert!(found("crates/sys/src/process.rs", source).is_empty());
    }
}
