//! `cargo xtask examples`: runs the examples whose documentation shows what they print, and
//! compares it. A word with a digit stands for any such words, and lines may come in any order.

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use crate::checkout::{root, target_folder};
use crate::invocation::Invocation;

const FOLDER: &str = "crates/brigade/examples";

/// The line in the documentation of an example before the block with its output.
const SHOWN: &str = "//! It prints:\n//!\n//! ```text\n";

/// The least number of examples that show their output.
const MIN_SHOWN: usize = 7;

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if !arguments.is_empty() {
        return Err("`cargo xtask examples` takes no arguments".to_owned());
    }
    Invocation::cargo("build -p brigade --examples --all-features").run()?;
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the examples as they were built with the tests.
pub(crate) fn check() -> Result<(), String> {
    let folder = root().join(FOLDER);
    let failed = |error| format!("cannot read {FOLDER}: {error}");
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut shown = 0;
    for entry in entries.map_err(failed)? {
        let path = entry.path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let Some(expected) = expected(&text) else { continue };
        let name = path.file_stem().unwrap_or_default();
        let program = target_folder().join("debug/examples").join(name);
        let program = Invocation::program(&program).arguments(arguments(&text));
        let printed = program.output()?;
        if masked(&printed) != masked(&expected) {
            let path = path.display();
            return Err(format!("{path} shows\n{expected}\nand `{program}` printed\n{printed}"));
        }
        shown += 1;
    }
    println!("{shown} examples print what their documentation shows");
    let is_enough = shown >= MIN_SHOWN;
    is_enough.then_some(()).ok_or_else(|| format!("fewer than {MIN_SHOWN} examples have {SHOWN:?}"))
}

/// Returns the output in the documentation of an example.
fn expected(example: &str) -> Option<String> {
    let (_, block) = example.split_once(SHOWN)?;
    let (block, _) = block.split_once("//! ```")?;
    // A line that is indented goes on with the one before.
    Some(block.replace("\n//!     ", " ").replace("//! ", ""))
}

/// Returns the arguments in the command that the documentation shows.
fn arguments(example: &str) -> Vec<String> {
    let line = example.lines().find(|line| line.starts_with("//! cargo run"));
    let words = line.and_then(|line| line.split_once(" -- ")).map_or("", |(_, words)| words);
    words.split_whitespace().map(str::to_owned).collect()
}

/// Returns the lines, with `#` in place of words with digits that follow each other.
fn masked(text: &str) -> BTreeSet<String> {
    let line = |line: &str| {
        let mut words: Vec<&str> = line
            .split_whitespace()
            .map(|word| if word.contains(|c: char| c.is_ascii_digit()) { "#" } else { word })
            .collect();
        words.dedup();
        words.join(" ")
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{arguments, expected, masked};

    const EXAMPLE: &str = "//! \"I count.\"\n//!\n//! ```sh\n//! cargo run --example count -- a 2\n\
                           //! ```\n//!\n//! It prints:\n//!\n//! ```text\n//! one:\n\
                           //!     1 2\n//! done\n//! ```\n\nfn main() {}\n";

    #[test]
    fn output_is_compared_without_numbers_and_order() {
        let expected = expected(EXAMPLE).unwrap();
        assert_eq!(expected, "one: 1 2\ndone\n");
        assert_eq!(masked(&expected), masked("done\none: 7ms\n"));
        assert_ne!(masked(&expected), masked("done\n"));
        assert_ne!(masked(&expected), masked("done\nnone: 7ms\n"));
    }

    #[test]
    fn the_arguments_are_those_of_the_command_that_is_shown() {
        assert_eq!(arguments(EXAMPLE), ["a", "2"]);
        assert!(arguments("//! cargo run --example count\n").is_empty());
    }
}
