//! The terminal behind standard error, which may go away at any time.

use std::io;

use console::Term;
use indicatif::TermLike;

/// A terminal that may disappear. Drawing on one that has is not an error, because indicatif would
/// panic.
#[derive(Debug)]
pub(super) struct Terminal(Term);

impl Terminal {
    pub(super) fn stderr() -> Self {
        Self(Term::buffered_stderr())
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        TermLike::width(&self.0)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n).or(Ok(()))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n).or(Ok(()))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n).or(Ok(()))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n).or(Ok(()))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text).or(Ok(()))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text).or(Ok(()))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line().or(Ok(()))
    }

    fn flush(&self) -> io::Result<()> {
        // A terminal shows `^C` where the cursor is. At the end of a full line it would begin
        // another one, which would not be removed.
        let _ = self.0.write_str("\r");
        self.0.flush().or(Ok(()))
    }
}
