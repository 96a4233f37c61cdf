//! A line of a list of commands.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use brigade::runner::Job;

/// The job that a line means, which is what `/bin/sh` would do with it.
///
/// A line of plain words needs no shell, so none is started for it; `make` does the same.
pub(crate) fn job(line: Vec<u8>) -> Job {
    match plain_words(&line) {
        Some(mut words) => {
            let program = words.remove(0);
            Job::new(program).args(words)
        }
        None => Job::shell(OsString::from_vec(line)),
    }
}

/// Words that the shell itself understands as something else than a program.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done",
    "echo", "elif", "else", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi",
    "for", "function", "getopts", "hash", "if", "in", "jobs", "kill", "let", "local", "printf",
    "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "then", "time", "times",
    "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Those of them that are programs, too, which do the same.
const PROGRAMS_TOO: &[&str] = &["echo", "false", "kill", "printf", "pwd", "test", "true", "["];

/// The words of a line in which nothing is left for a shell to do.
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
    // An assignment before a command, or a word of the shell's.
    let is_program = !first.contains('=')
        && (!SHELL_WORDS.contains(&&*first) || PROGRAMS_TOO.contains(&&*first));
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
    fn a_shell_is_started_only_for_what_needs_one() {
        for line in ["gcc -c a.c -o a.o", "  /bin/true\t x ", "true", "prog --x=y a=b", "cp ä b"] {
            assert!(!is_shell(line), "{line}");
        }
        for line in [
            "a | b", "a > b", "a; b", "a &", "echo $x", "echo `x`", "ls *.c", "ls ?", "echo 'a'",
            "A=b c", "cd x", "exit 3", "if", "a #b", "ls ~", "a \\ b", "! a", "(a)", "", " ",
        ] {
            assert!(is_shell(line), "{line}");
        }
    }

    proptest! {
        #[test]
        fn plain_words_are_what_a_shell_would_see(line in "echo[ a-z0-9_./:,@%+=^\\-]{0,30}") {
            // `echo -n` and such differ between shells and programs; `printf` tells the words themselves.
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
