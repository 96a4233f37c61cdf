//! Converts a line of a command list to a job.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use brigade::runner::Job;

/// Returns a job that does what `/bin/sh` would do with the line.
///
/// A line of plain words runs without a shell; `make` does the same.
pub(crate) fn job(line: Vec<u8>) -> Job {
    match plain_words(&line) {
        Some(mut words) => {
            let program = words.remove(0);
            Job::new(program).args(words)
        }
        None => Job::shell(OsString::from_vec(line)),
    }
}

/// Words that the shell itself interprets instead of running a program.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done",
    "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "printf",
    "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "then", "time", "times",
    "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Words among [`SHELL_WORDS`] that are also programs, and do the same if they get no options.
const PROGRAMS_TOO: &[&str] = &["echo", "false", "kill", "printf", "test", "true", "["];

/// Returns the words of a line that needs no shell.
fn plain_words(line: &[u8]) -> Option<Vec<OsString>> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" \t_-./:,@%+=^".contains(byte);
    if !line.iter().all(|byte| is_plain(byte) || *byte >= 0x80) {
        return None;
    }
    let words: Vec<OsString> = line
        .split(|byte| matches!(byte, b' ' | b'\t'))
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    let first = words.first()?.to_string_lossy();
    // An assignment before a command, or a word that the shell interprets.
    let has_option = || words[1..].iter().any(|word| word.as_bytes().starts_with(b"-"));
    let is_program = !first.contains('=')
        && (!SHELL_WORDS.contains(&&*first) || PROGRAMS_TOO.contains(&&*first) && !has_option());
    is_program.then_some(words)
}

#[cfg(test)]
mod tests {
    use brigade::runner::Command;
    use proptest::prelude::*;

    use super::*;

    fn is_shell(line: &str) -> bool {
        matches!(job(line.into()).command(), Command::Shell(_))
    }

    #[test]
    fn a_shell_is_started_only_if_a_line_needs_one() {
        for line in ["gcc -c a.c -o a.o", "  /bin/true\t x ", "true", "prog --x=y a=b", "cp ä b"] {
            assert!(!is_shell(line), "{line}");
        }
        for line in [
            "a | b",
            "a > b",
            "a; b",
            "a &",
            "echo $x",
            "echo `x`",
            "ls *.c",
            "ls ?",
            "echo 'a'",
            "A=b c",
            "cd x",
            "exit 3",
            "if",
            "a #b",
            "ls ~",
            "a \\ b",
            "! a",
            "(a)",
            "",
            " ",
            // The programs do something else.
            "echo -e a",
            "true --version",
            "printf --help",
            "pwd",
        ] {
            assert!(is_shell(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn plain_words_are_the_words_that_a_shell_sees(line in "echo[ a-z0-9_./:,@%+=^\\-]{0,30}") {
            // `echo -n` and such differ between shells and programs; `printf` prints the words
            // themselves.
            let line = line.replacen("echo", "printf %s,", 1);
            let Some(words) = plain_words(line.as_bytes()) else { return Ok(()) };
            let script = format!("set -- {line}; for word; do printf '<%s>' \"$word\"; done");
            let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("sh");
            let words: Vec<String> =
                words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let expected = format!("<{}>", words.join("><"));
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
        }
    }
}
