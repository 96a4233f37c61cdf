//! The rows of a single list, one after the other: what jobs are made from.

use std::io;
use std::task::{Poll, ready};

use super::{Ahead, Fetched, Input, Lines, Problem, Row, RowReader, RowRules};

/// The rows of a single list that is read while jobs run.
#[derive(Debug)]
pub(crate) struct LineRows {
    lines: Lines,
    rules: RowRules,
    /// Number of lines to ignore at the start.
    skipped: usize,
    /// `true` if the first row is the header.
    has_header: bool,
    reader: RowReader,
    /// `true` once the last row was returned.
    is_over: bool,
    /// Number of rows read.
    taken: u64,
    /// The number of rows, if it was counted.
    total: Option<u64>,
}

impl LineRows {
    /// Reads the rows of a stream, after ignoring this number of lines. `total` is the number of
    /// rows, including the header, if it was counted.
    pub(crate) fn new(lines: Lines, rules: RowRules, skipped: usize, total: Option<u64>) -> Self {
        let reader = RowReader::new(rules.clone(), skipped);
        let (has_header, is_over, taken) = (false, false, 0);
        Self { lines, rules, skipped, has_header, reader, is_over, taken, total }
    }

    /// Waits for the first row and returns it; it is the header. Without rows it is empty.
    pub(crate) fn header(&mut self) -> Result<Row, Problem> {
        self.has_header = true;
        match self.next(true) {
            Poll::Ready(Some(row)) => row,
            _ => Ok(Row::new()),
        }
    }
}

impl Input<Row> for LineRows {
    fn next(&mut self, waits: bool) -> Fetched<Row> {
        while !self.is_over {
            let line = ready!(self.lines.next(waits)?);
            self.is_over = line.is_none();
            let row = match line {
                Some(line) => self.reader.push(line),
                None => self.reader.finish(),
            };
            self.is_over |= self.reader.is_over;
            if let Some(row) = row? {
                self.taken += 1;
                return Poll::Ready(Some(Ok(row)));
            }
        }
        Poll::Ready(None)
    }

    fn ahead(&self) -> Ahead {
        if self.is_over {
            return Ahead::all(0);
        }
        if let Some(total) = self.total {
            return Ahead { count: total.saturating_sub(self.taken), is_all: true };
        }
        if !self.rules.keep_lines() {
            return Ahead::default();
        }
        let lines = self.lines.ahead();
        let to_skip = if self.taken == 0 { self.skipped as u64 } else { 0 };
        Ahead { count: lines.count.saturating_sub(to_skip), ..lines }
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input<Row>>>> {
        let Some(lines) = self.lines.again()? else { return Ok(None) };
        let mut rows = Self::new(lines, self.rules.clone(), self.skipped, self.total);
        if self.has_header {
            rows.header().map_err(io::Error::other)?;
        }
        Ok(Some(Box::new(rows)))
    }
}
