//! Selects the most informative line of a dead worker's stderr.

/// Returns the last line that is neither empty nor part of a backtrace or of the note about
/// backtraces. If there is no such line, returns the last line that is not empty.
pub fn last_line(stderr: &str) -> Option<&str> {
    let mut in_backtrace = false;
    let mut last = None;
    for line in stderr.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        in_backtrace = line == "stack backtrace:" || in_backtrace && is_frame(line);
        if !in_backtrace && !is_note(line) {
            last = Some(line);
        }
    }
    last.or_else(|| stderr.lines().rev().find(|line| !line.trim().is_empty()))
}

/// Matches `  12: std::thread::spawn` and the line below it, `             at src/main.rs:3:5`.
fn is_frame(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.split_once(": ").map(|(number, _)| number);
    line.starts_with("at ") || number.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_note(line: &str) -> bool {
    line.starts_with("note: run with `RUST_BACKTRACE")
        || line.starts_with("note: Some details are omitted, run with `RUST_BACKTRACE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_that_is_not_empty_is_chosen() {
        assert_eq!(last_line("one\ntwo\n\n"), Some("two"));
        assert_eq!(last_line(" \n"), None);
    }

    #[test]
    fn notes_and_backtraces_are_skipped() {
        let note = "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace";
        let text = format!("memory allocation of 9 bytes failed\n{note}\n");
        assert_eq!(last_line(&text), Some("memory allocation of 9 bytes failed"));
        let text = "no more\nstack backtrace:\n   0: core::panic\n             at ./lib.rs:1:2\n";
        assert_eq!(last_line(text), Some("no more"));
        assert_eq!(last_line(&format!("{text}goodbye\n")), Some("goodbye"));
        assert_eq!(last_line(note), Some(note));
    }
}
