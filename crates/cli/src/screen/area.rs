//! The progress area on a terminal: lines that are drawn again in place.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use console::{Term, measure_text_width};

use super::Statistics;
use super::lines::lines;
use super::text::Tint;

/// The progress area on a terminal. The cursor rests at the start of the line below it, where a
/// terminal shows `^C`.
///
/// The terminal may disappear at any time; writing to one that has is not an error.
#[derive(Debug)]
pub(crate) struct Area {
    tint: Tint,
    /// The widths of the lines on the terminal.
    shown: Vec<usize>,
    drawn: Option<Instant>,
}

/// Number of lines of the terminal left for the output of jobs.
const OTHER_LINES: usize = 4;
/// Minimum time between two draws. Output is followed by one in any case, so that figures never
/// lack a job printed above them.
const PAUSE: Duration = Duration::from_millis(100);

impl Area {
    pub(super) fn new(tint: Tint) -> Self {
        Self { tint, shown: Vec::new(), drawn: None }
    }

    /// Draws the area, unless it was drawn a moment ago.
    pub(super) fn show(&mut self, statistics: &Statistics) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= PAUSE) {
            self.draw(statistics);
        }
    }

    fn draw(&mut self, statistics: &Statistics) {
        let (height, width) = size();
        let lines = lines(statistics, height.saturating_sub(OTHER_LINES), width, self.tint);
        let mut text = self.erasure();
        for line in &lines {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        }
        self.shown = lines.iter().map(|line| measure_text_width(line)).collect();
        self.drawn = Some(Instant::now());
        write(&text);
    }

    /// Calls `print` with the area hidden.
    pub(super) fn suspend<T>(&mut self, statistics: &Statistics, print: impl FnOnce() -> T) -> T {
        let was_shown = !self.shown.is_empty();
        self.clear();
        let printed = print();
        if was_shown {
            self.draw(statistics);
        }
        printed
    }

    /// Removes the area until it is drawn again.
    pub(super) fn clear(&mut self) {
        let text = self.erasure();
        self.shown.clear();
        write(&text);
    }

    /// Returns the control sequence that removes the lines on the terminal.
    fn erasure(&self) -> String {
        // A terminal that has become narrower has wrapped them.
        let (_, width) = size();
        let rows: usize = self.shown.iter().map(|shown| shown.div_ceil(width).max(1)).sum();
        if rows == 0 { String::new() } else { format!("\r\x1b[{rows}A\x1b[J") }
    }
}

/// Returns the height and the width of the terminal.
fn size() -> (usize, usize) {
    let (height, width) = Term::stderr().size();
    (usize::from(height), usize::from(width).max(1))
}

fn write(text: &str) {
    if !text.is_empty() {
        let _ = io::stderr().write_all(text.as_bytes());
    }
}
