//! Checks that code does not contain banned words, except in listed paths.

use super::Finding;
use crate::checkout::{Checkout, File};
use crate::tokens::occurrences;

/// A word that code must not contain.
struct Ban {
    word: &'static str,
    /// Advice for the message.
    instead: &'static str,
    /// Prefixes of paths where the word is allowed, each with the reason.
    exceptions: &'static [(&'static str, &'static str)],
    /// `true` if test code may use it: folders `tests`, files `tests.rs`, and the test module at
    /// the end of a file.
    allowed_in_tests: bool,
}

const BANS: &[Ban] = &[
    Ban::everywhere(
        "#[ignore",
        "repair the test or delete it; a test that never runs protects nothing",
    ),
    Ban::everywhere("todo!", "write it, or leave it out"),
    Ban::everywhere("unimplemented!", "write it, or leave it out"),
    Ban::everywhere(
        "#[allow(",
        "use `#[expect(lint, reason = \"...\")]`, which warns when it is no longer needed",
    ),
    Ban::everywhere(
        "#![allow(",
        "use `#![expect(lint, reason = \"...\")]`, which warns when it is no longer needed",
    ),
    Ban {
        word: "thread::sleep",
        instead: "wait for the condition itself, with a timeout; if time must pass here, add the \
                  file with its reason to xtask/src/tidy/banned.rs",
        exceptions: &[
            (
                "crates/testkit-core/src/wait.rs",
                "tasks that must take long, and the pause between two looks of a bounded wait",
            ),
            ("crates/integration/src/bin/", "programs that misbehave by hanging"),
            (
                "crates/sys/src/process/environment.rs",
                "nothing announces that the kernel has mapped a program",
            ),
            ("crates/brigade/examples/", "simulates work that takes time"),
        ],
        allowed_in_tests: false,
    },
    Ban {
        word: "Command::new",
        instead: "start processes through brigade-sys, which keeps the child in its own process \
                  group, holds a pidfd and reaps it",
        exceptions: &[
            ("crates/sys/", "the crate that starts processes"),
            ("crates/testkit/", "helpers for tests"),
            ("crates/testkit-core/", "helpers for tests"),
            ("crates/integration/", "tests with real processes"),
            ("crates/escape/", "becomes another user, and tries what a sandbox forbids"),
            ("crates/brigade/examples/", "an example may start any program"),
            ("benches/", "compares with bare processes"),
            ("xtask/", "runs cargo"),
            ("crates/cli/build.rs", "asks git for the commit"),
            ("crates/cli/src/node.rs", "names the program of workers"),
            ("crates/cli/src/sem.rs", "starts what outlives it"),
        ],
        allowed_in_tests: true,
    },
];

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in checkout.rust_files() {
        let first_test_line = file.first_test_line();
        for (number, line) in file.code_lines() {
            let in_test = file.is_test() || number >= first_test_line;
            for ban in BANS.iter().filter(|ban| ban.applies(file, in_test)) {
                if occurrences(line, ban.word).next().is_some() {
                    let message = format!("`{}`: {}", ban.word, ban.instead);
                    findings.push(Finding::new(&file.path, number, message));
                }
            }
            if line.contains("cfg_attr(") && occurrences(line, "allow(").next().is_some() {
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
        Self { word, instead, exceptions: &[], allowed_in_tests: false }
    }

    fn applies(&self, file: &File, in_test: bool) -> bool {
        let excepted = self.exceptions.iter().any(|(start, _reason)| file.path.starts_with(start));
        !(excepted || in_test && self.allowed_in_tests)
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::locations;

    fn found(path: &str, source: &str) -> Vec<String> {
        locations(check, &[(path, source)])
    }

    #[test]
    fn words_banned_everywhere_are_found_in_tests_too() {
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
    fn words_in_comments_and_strings_are_ignored() {
        assert!(
            found("a/src/b.rs", "// todo!()\nlet a = \"#[allow(\";\nlet b = my_todo!();\n")
                .is_empty()
        );
    }

    #[test]
    fn sleep_is_allowed_only_in_listed_paths() {
        let source = "std::thread::sleep(second);\n";
        assert_eq!(found("crates/pool/tests/a.rs", source), ["crates/pool/tests/a.rs:1"]);
        assert!(found("crates/testkit-core/src/wait.rs", source).is_empty());
    }

    #[test]
    fn processes_are_started_only_in_sys_and_in_tests() {
        let source =
            "Command::new(\"a\");\n#[cfg(test)]\nmod tests {\n    Command::new(\"b\");\n}\n";
        assert_eq!(found("crates/pool/src/a.rs", source), ["crates/pool/src/a.rs:1"]);
        assert!(found("crates/sys/src/process.rs", source).is_empty());
    }
}
