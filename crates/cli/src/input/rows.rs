//! Turns the lines of a list into rows of arguments.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use regex::bytes::Regex;

use super::csv;

/// The arguments that belong together: the columns of a line, and with linked lists those of all
/// lists.
pub(crate) type Row = Vec<OsString>;

/// The rules by which the lines of a list become rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowRules {
    /// Splits a line; `None` for lines that are one argument each.
    pub(crate) columns: Option<Columns>,
    pub(crate) trim: Trim,
    /// The line that ends a list.
    pub(crate) end: Option<Vec<u8>>,
    /// `true` if blank lines are no rows.
    pub(crate) skips_blank: bool,
    /// `true` if a line that ends with a blank continues on the next line that is not blank.
    pub(crate) continues: bool,
}

/// The places at which a line is split into columns.
#[derive(Debug, Clone)]
pub(crate) enum Columns {
    /// At each match.
    Separated(Regex),
    /// As CSV, with this delimiter.
    Csv(u8),
}

/// The ends of an argument at which white space is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trim {
    pub(crate) left: bool,
    pub(crate) right: bool,
}

/// Turns lines into rows, one after the other.
#[derive(Debug)]
pub(crate) struct RowReader {
    rules: RowRules,
    /// Number of lines to ignore.
    skipped: usize,
    /// The beginning of a row whose last line has not come yet.
    partial: Option<Partial>,
    /// Follows the quotes of CSV.
    quotes: Option<csv::Quotes>,
    /// Number of lines so far.
    lines: u64,
    /// `true` if the line that ends the list has come.
    pub(crate) is_over: bool,
}

/// The beginning of a row.
#[derive(Debug)]
struct Partial {
    text: Vec<u8>,
    /// The number of its first line.
    line: u64,
    /// `true` if a field has no closing quote.
    is_open: bool,
}

/// A field of CSV whose closing quote is missing at the end of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the row that begins on line {line} of the list has a quote without a closing one; within quotes, `\"` is written as `\"\"`"
)]
pub(crate) struct OpenQuote {
    line: u64,
}

impl RowReader {
    /// Creates a reader that ignores this number of lines at the start.
    pub(crate) fn new(rules: RowRules, skipped: usize) -> Self {
        let quotes = match rules.columns {
            Some(Columns::Csv(delimiter)) => Some(csv::Quotes::new(delimiter)),
            _ => None,
        };
        Self { rules, skipped, partial: None, quotes, lines: 0, is_over: false }
    }

    /// Takes the next line, and returns the row that it completes.
    pub(crate) fn push(&mut self, line: Vec<u8>) -> Result<Option<Row>, OpenQuote> {
        if self.is_over {
            return Ok(None);
        }
        self.lines += 1;
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(None);
        }
        if self.rules.end.as_ref().is_some_and(|end| *end == line) {
            self.is_over = true;
            return self.finish();
        }
        let is_blank = line.trim_ascii().is_empty();
        if is_blank && (self.rules.skips_blank || (self.rules.continues && self.partial.is_some()))
        {
            return Ok(None);
        }
        let is_open = self.quotes.as_mut().is_some_and(|quotes| quotes.leaves_open(&line));
        let continues = self.rules.continues && matches!(line.last(), Some(b' ' | b'\t'));
        let row = match self.partial.take() {
            None => Partial { text: line, line: self.lines, is_open },
            // Extended in place: a row may have many lines.
            Some(mut partial) => {
                if !self.rules.continues {
                    partial.text.push(b'\n');
                }
                partial.text.extend_from_slice(&line);
                Partial { is_open, ..partial }
            }
        };
        if is_open || continues {
            self.partial = Some(row);
            return Ok(None);
        }
        Ok(Some(self.row(row.text)))
    }

    /// Returns the row that the end of the list completes.
    pub(crate) fn finish(&mut self) -> Result<Option<Row>, OpenQuote> {
        match self.partial.take() {
            None => Ok(None),
            Some(Partial { is_open: true, line, .. }) => Err(OpenQuote { line }),
            Some(partial) => Ok(Some(self.row(partial.text))),
        }
    }

    fn row(&self, line: Vec<u8>) -> Row {
        let columns = match &self.rules.columns {
            None if self.rules.trim == Trim::default() => return vec![OsString::from_vec(line)],
            None => vec![line],
            Some(Columns::Separated(regex)) => regex.split(&line).map(<[u8]>::to_vec).collect(),
            Some(Columns::Csv(delimiter)) => csv::split(&line, *delimiter),
        };
        let trimmed = |column: Vec<u8>| OsString::from_vec(self.rules.trim.of(&column).to_vec());
        columns.into_iter().map(trimmed).collect()
    }
}

impl RowRules {
    /// Returns `true` if each line is a row.
    pub(crate) fn keep_lines(&self) -> bool {
        let may_join = self.continues || matches!(self.columns, Some(Columns::Csv(_)));
        self.end.is_none() && !self.skips_blank && !may_join
    }
}

impl Trim {
    fn of(self, argument: &[u8]) -> &[u8] {
        let argument = if self.left { argument.trim_ascii_start() } else { argument };
        if self.right { argument.trim_ascii_end() } else { argument }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(rules: RowRules, skipped: usize, text: &str) -> Vec<String> {
        let mut reader = RowReader::new(rules, skipped);
        let mut rows: Vec<Row> =
            text.split('\n').filter_map(|line| reader.push(line.into()).expect("closed")).collect();
        rows.extend(reader.finish().expect("closed"));
        let joined = |row: &Row| row.join("|".as_ref()).into_string().expect("UTF-8");
        rows.iter().map(joined).collect()
    }

    fn separated(pattern: &str) -> RowRules {
        let columns = Columns::Separated(Regex::new(pattern).expect("valid"));
        RowRules { columns: Some(columns), ..RowRules::default() }
    }

    #[test]
    fn a_line_is_split_at_each_separator() {
        let rules = separated("[,;] *");
        assert_eq!(rows(rules.clone(), 0, "a,b; c\n\n,"), ["a|b|c", "", "|"]);
        assert_eq!(rows(rules, 1, "a,b\nc,d"), ["c|d"]);
    }

    #[test]
    fn fields_in_quotes_may_contain_line_ends() {
        let rules = RowRules { columns: Some(Columns::Csv(b',')), ..RowRules::default() };
        assert_eq!(rows(rules.clone(), 0, "a,\"b\nc\"\nd"), ["a|b\nc", "d"]);
        let mut reader = RowReader::new(rules, 1);
        for line in ["\"", "a,\"b", "c\"", "d,\"e", "f"] {
            assert!(reader.push(line.into()).is_ok());
        }
        assert_eq!(reader.finish(), Err(OpenQuote { line: 4 }));
    }

    #[test]
    fn a_list_ends_at_its_end_mark() {
        let rules = RowRules { end: Some(b"b".to_vec()), ..RowRules::default() };
        assert_eq!(rows(rules, 0, "a\n b\nb\nc\na"), ["a", " b"]);
    }

    #[test]
    fn a_blank_at_the_end_continues_a_line() {
        let rules = RowRules { continues: true, ..RowRules::default() };
        assert_eq!(rows(rules, 0, "a b\nc \n\nd \ne\n\nf "), ["a b", "c d e", "", "f "]);
    }

    #[test]
    fn white_space_is_removed_where_that_is_wanted() {
        for (left, right, expected) in [
            (false, false, " a | b "),
            (true, false, "a |b "),
            (false, true, " a| b"),
            (true, true, "a|b"),
        ] {
            let trim = Trim { left, right };
            let rules = RowRules { trim, ..separated(",") };
            assert_eq!(rows(rules, 0, " a , b "), [expected]);
        }
    }

    #[test]
    fn blank_lines_are_rows_unless_they_are_skipped() {
        let rules = RowRules { skips_blank: true, ..RowRules::default() };
        assert_eq!(rows(rules, 0, "\n a\n \t\nb"), [" a", "b"]);
        assert_eq!(rows(RowRules::default(), 0, "\na"), ["", "a"]);
    }

    proptest! {
        #[test]
        fn without_rules_each_line_is_a_row(text in "[a ,\"\n]{0,30}") {
            let expected: Vec<&str> = text.split('\n').collect();
            prop_assert_eq!(rows(RowRules::default(), 0, &text), expected);
            prop_assert!(RowRules::default().keep_lines());
        }

        #[test]
        fn columns_joined_again_are_the_line(line in "[a,]{0,20}") {
            prop_assert_eq!(rows(separated(","), 0, &line), [line.replace(',', "|")]);
        }
    }
}
