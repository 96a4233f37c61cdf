//! The rows of a single list, one after the other: what jobs are made from.

use std::io;

use super::{Fetch, Fetched, Input, Lines, Row, RowReader, RowRules};

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
    /// Reads the rows of a stream, after ignoring this number of lines.
    pub(crate) fn new(lines: Lines, rules: RowRules, skipped: usize) -> Self {
        let reader = RowReader::new(rules.clone(), skipped);
        let (has_header, is_over, taken, total) = (false, false, 0, None);
        Self { lines, rules, skipped, has_header, reader, is_over, taken, total }
    }

    /// Sets the number of rows, including the header.
    pub(crate) fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Waits for the first row and returns it; it is the header.
    pub(crate) fn header(&mut self) -> Fetched<Row> {
        self.has_header = true;
        self.next(true)
    }
}

impl Input<Row> for LineRows {
    fn next(&mut self, waits: bool) -> Fetched<Row> {
        while !self.is_over {
            let row = match self.lines.next(waits)? {
                Fetch::Entry(line) => {
                    let row = self.reader.push(line);
                    self.is_over = self.reader.is_over();
                    row?
                }
                Fetch::End => {
                    self.is_over = true;
                    self.reader.finish()?
                }
                Fetch::Later => return Ok(Fetch::Later),
            };
            if let Some(row) = row {
                self.taken += 1;
                return Ok(Fetch::Entry(row));
            }
        }
        Ok(Fetch::End)
    }

    fn remaining(&self) -> Option<u64> {
        if self.is_over {
            return Some(0);
        }
        if let Some(total) = self.total {
            return Some(total.saturating_sub(self.taken));
        }
        let lines = self.lines.remaining().filter(|_| self.rules.keep_lines())?;
        let to_skip = if self.taken == 0 { self.skipped as u64 } else { 0 };
        Some(lines.saturating_sub(to_skip))
    }

    fn read_ahead(&self) -> u64 {
        let lines = if self.rules.keep_lines() { self.lines.read_ahead() } else { 0 };
        self.remaining().unwrap_or(lines)
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input<Row>>>> {
        let Some(lines) = self.lines.again()? else { return Ok(None) };
        let mut rows = Self::new(lines, self.rules.clone(), self.skipped);
        rows.total = self.total;
        if self.has_header {
            rows.header().map_err(io::Error::other)?;
        }
        Ok(Some(Box::new(rows)))
    }
}
