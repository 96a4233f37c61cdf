//! Checks that the messages between host and worker do not change without their document.
//!
//! `docs/wire-protocol.md` records a hash of the files that define the messages. After a change of
//! these files, bring the document up to date, raise the protocol version if what is sent
//! has changed, and run `cargo xtask tidy --bless`.

use super::Finding;
use crate::checkout::{self, Checkout};

const SOURCES: &[&str] = &[
    "crates/wire/src/segments.rs",
    "crates/wire/src/message.rs",
    "crates/wire/src/message/from_worker.rs",
    "crates/wire/src/message/inline.rs",
    "crates/wire/src/message/limits.rs",
    "crates/wire/src/message/outcome.rs",
    "crates/wire/src/message/words.rs",
    "crates/wire/src/slots/word.rs",
    "crates/wire/src/ring/packing.rs",
    "crates/wire/src/handshake.rs",
    "crates/wire/src/fork.rs",
    "crates/sys/src/confine/plan.rs",
    "crates/sys/src/inherited.rs",
    "crates/sys/src/resource_limit.rs",
    "crates/wire/src/version.rs",
];
const DOCUMENT: &str = "docs/wire-protocol.md";
const OPEN: &str = "<!-- messages: ";
const CLOSE: &str = " -->";

pub(super) fn check(checkout: &Checkout) -> Vec<Finding> {
    let hash = match messages_hash(checkout) {
        Ok(hash) => hash,
        Err(missing) => return vec![missing],
    };
    let Some(document) = checkout.file(DOCUMENT) else {
        let message = format!(
            "the document is missing: describe the protocol, with a line `{OPEN}{hash}{CLOSE}`"
        );
        return vec![Finding::new(DOCUMENT, 1, message)];
    };
    let recorded = (1..).zip(document.text.lines()).find(|(_, line)| line.starts_with(OPEN));
    match recorded {
        Some((_, line)) if line == recorded_line(&hash) => Vec::new(),
        Some((number, _)) => {
            let message = format!(
                "the messages changed ({}): bring this document up to date, raise the protocol \
                 version if what is sent has changed, then run `cargo xtask tidy --bless`",
                SOURCES.join(", ")
            );
            vec![Finding::new(DOCUMENT, number, message)]
        }
        None => vec![Finding::new(
            DOCUMENT,
            1,
            format!("no recorded hash: add the line `{OPEN}{hash}{CLOSE}`"),
        )],
    }
}

/// Writes the hash of the current messages into the document, and returns a message about it.
pub(super) fn bless(checkout: &Checkout) -> Result<String, String> {
    let hash = messages_hash(checkout).map_err(|missing| missing.to_string())?;
    let document =
        checkout.file(DOCUMENT).ok_or_else(|| format!("{DOCUMENT} is missing: write it first"))?;
    let path = checkout::root().join(DOCUMENT);
    std::fs::write(&path, blessed(&document.text, &hash))
        .map_err(|error| format!("cannot write {DOCUMENT}: {error}"))?;
    Ok(format!("recorded messages {hash} in {DOCUMENT}"))
}

/// Returns the document with its hash replaced, or appended if it had none.
fn blessed(document: &str, hash: &str) -> String {
    let line = recorded_line(hash);
    let mut replaced = false;
    let mut lines: Vec<&str> = Vec::new();
    for old in document.lines() {
        replaced |= old.starts_with(OPEN);
        lines.push(if old.starts_with(OPEN) { &line } else { old });
    }
    if !replaced {
        lines.extend(["", &line]);
    }
    lines.join("\n") + "\n"
}

fn recorded_line(hash: &str) -> String {
    format!("{OPEN}{hash}{CLOSE}")
}

/// Returns the FNV-1a hash of the messages. It only has to notice accidental changes.
fn messages_hash(checkout: &Checkout) -> Result<String, Finding> {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mut hash = OFFSET_BASIS;
    for path in SOURCES {
        let file = checkout.file(path).ok_or_else(|| {
            Finding::new(
                path,
                1,
                "the file is missing: if it was renamed, name it in xtask/src/tidy/wire_hash.rs",
            )
        })?;
        // Comments, tests and indentation may change freely.
        let lines = file.text.lines().take(file.first_test_line() - 1).map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
            for byte in line.bytes().chain([b'\n']) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
            }
        }
    }
    Ok(format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::{SOURCES, blessed, check, messages_hash, recorded_line};
    use crate::checkout::Checkout;
    use crate::tidy::locations;

    const MESSAGE: &str =
        "//! Messages.\n/// Doc.\nenum ToWorker { Run, Stop }\n#[cfg(test)]\nmod tests {}\n";
    const MESSAGE_PATH: &str = "crates/wire/src/message.rs";
    const DOCUMENT_PATH: &str = "docs/wire-protocol.md";

    /// Returns all sources, with this text of the messages, and then `more`.
    fn sources<'a>(message: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let text = |path| if path == MESSAGE_PATH { message } else { "struct Other;\n" };
        let all: Vec<_> = SOURCES.iter().map(|path| (*path, text(*path))).collect();
        [&all[..], more].concat()
    }

    fn hash_of(message: &str) -> String {
        messages_hash(&Checkout::of(&sources(message, &[]))).unwrap()
    }

    #[test]
    fn a_blessed_document_passes_until_the_messages_change() {
        let document = blessed("# Wire\ntext\n", &hash_of(MESSAGE));
        let found = |message: &str| {
            locations(check, &sources(message, &[(DOCUMENT_PATH, document.as_str())]))
        };
        assert!(found(MESSAGE).is_empty(), "{document}");
        assert_eq!(found(&MESSAGE.replace("Stop", "Halt")), ["docs/wire-protocol.md:4"]);
    }

    #[test]
    fn comments_tests_and_indentation_may_change() {
        let same = "//! Other words.\n\n  enum ToWorker { Run, Stop }\n#[cfg(test)]\n\
                    mod tests { fn more() {} }\n";
        assert_eq!(hash_of(same), hash_of(MESSAGE));
    }

    #[test]
    fn blessing_replaces_the_line_in_place() {
        let document = format!("a\n{}\nb\n", recorded_line("0"));
        assert_eq!(blessed(&document, "1"), format!("a\n{}\nb\n", recorded_line("1")));
    }

    #[test]
    fn missing_files_are_named() {
        let mut found = sources(MESSAGE, &[]);
        found.retain(|(path, _)| *path != MESSAGE_PATH);
        assert_eq!(locations(check, &found), ["crates/wire/src/message.rs:1"]);
        assert_eq!(locations(check, &sources(MESSAGE, &[])), ["docs/wire-protocol.md:1"]);
        let unrecorded = sources(MESSAGE, &[(DOCUMENT_PATH, "# Wire\n")]);
        assert_eq!(locations(check, &unrecorded), ["docs/wire-protocol.md:1"]);
    }
}
