//! The combinations of argument lists.

use std::ffi::OsStr;
use std::io;
use std::task::Poll;

use brigade::runner::Duplicates;

use super::{Ahead, Fetched, Input, ListError, Row};

/// Rows that are combined with those of other dimensions: a list, and the lists linked to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Dimension {
    rows: Vec<Row>,
    /// Number of lists.
    pub(crate) lists: usize,
}

impl Dimension {
    /// Links a list: each of its rows is added to one of this dimension. The shorter of the two
    /// ends the rows.
    fn link(&mut self, rows: Vec<Row>) {
        self.rows.truncate(rows.len());
        self.rows.iter_mut().zip(rows).for_each(|(all, row)| all.extend(row));
        self.lists += 1;
    }
}

/// Returns the dimensions of lists. Each list that is not linked to the one before it begins one.
pub(crate) fn linked(lists: impl IntoIterator<Item = (Vec<Row>, bool)>) -> Vec<Dimension> {
    let mut dimensions: Vec<Dimension> = Vec::new();
    for (rows, is_linked) in lists {
        match dimensions.last_mut().filter(|_| is_linked) {
            Some(dimension) => dimension.link(rows),
            None => dimensions.push(Dimension { rows, lists: 1 }),
        }
    }
    dimensions
}

/// Links all dimensions to a single one. The longest decides the number of rows; the others start
/// again when they end.
pub(crate) fn cycled(dimensions: &[Dimension]) -> Dimension {
    let lengths = || dimensions.iter().map(|dimension| dimension.rows.len());
    let is_empty = lengths().any(|length| length == 0);
    let longest = lengths().max().filter(|_| !is_empty).unwrap_or(0);
    let row = |at: usize| {
        let rows = dimensions.iter().map(|dimension| &dimension.rows);
        rows.flat_map(|rows| rows[at % rows.len()].clone()).collect()
    };
    let lists = dimensions.iter().map(|dimension| dimension.lists).sum();
    Dimension { rows: (0..longest).map(row).collect(), lists }
}

/// Checks that no dimension contains a row twice.
pub(crate) fn check(dimensions: &[Dimension]) -> Result<(), ListError> {
    let mut list = 1;
    for Dimension { rows, lists } in dimensions {
        let mut duplicates = Duplicates::default();
        for (second, row) in (1..).zip(rows) {
            if let Some(first) = duplicates.add(row, second) {
                let value = row.join(OsStr::new(" ")).display().to_string();
                return Err(ListError::Duplicate { list, first, second, value });
            }
        }
        list += lists;
    }
    Ok(())
}

/// The combinations of several dimensions; the last one varies fastest.
#[derive(Debug, Clone)]
pub(crate) struct Combinations {
    dimensions: Vec<Dimension>,
    returned: u64,
}

impl Combinations {
    pub(crate) fn new(dimensions: Vec<Dimension>) -> Self {
        Self { dimensions, returned: 0 }
    }

    /// Returns the largest number of arguments in a combination.
    pub(crate) fn width(&self) -> usize {
        let width = |dimension: &Dimension| dimension.rows.iter().map(Vec::len).max().unwrap_or(0);
        self.dimensions.iter().map(width).sum()
    }
}

impl Input<Row> for Combinations {
    fn next(&mut self, _waits: bool) -> Fetched<Row> {
        if self.ahead().count == 0 {
            return Poll::Ready(None);
        }
        // Its number has a digit for each dimension, of which the last one varies fastest.
        let mut digits = self.returned;
        let mut parts = Vec::new();
        for Dimension { rows, .. } in self.dimensions.iter().rev() {
            let count = rows.len() as u64;
            parts.push(&rows[usize::try_from(digits % count).unwrap_or_default()]);
            digits /= count;
        }
        let row = parts.into_iter().rev().flatten().cloned().collect();
        self.returned += 1;
        Poll::Ready(Some(Ok(row)))
    }

    fn ahead(&self) -> Ahead {
        let lengths = self.dimensions.iter().map(|dimension| dimension.rows.len() as u64);
        let count = lengths.fold(1, u64::saturating_mul).saturating_sub(self.returned);
        Ahead { count, is_all: true }
    }

    fn again(&self) -> io::Result<Option<Box<dyn Input<Row>>>> {
        Ok(Some(Box::new(Self::new(self.dimensions.clone()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Row> {
        text.split_whitespace().map(|word| vec![word.into()]).collect()
    }

    /// Returns the dimensions of lists like `a b + 1 2 * X`, where `+` links and `*` combines.
    fn dimensions(text: &str) -> Vec<Dimension> {
        let mut lists = Vec::new();
        for combined in text.split('*') {
            let parts = combined.split('+').enumerate();
            lists.extend(parts.map(|(index, part)| (list(part), index > 0)));
        }
        linked(lists)
    }

    fn joined(row: &Row) -> String {
        row.join(OsStr::new(" ")).into_string().expect("UTF-8")
    }

    fn combinations(text: &str) -> Vec<String> {
        let mut combinations = Combinations::new(dimensions(text));
        let mut rows = Vec::new();
        let total = combinations.ahead().total();
        while let Poll::Ready(Some(Ok(row))) = combinations.next(false) {
            rows.push(joined(&row));
            assert_eq!(combinations.ahead().total(), total.map(|total| total - rows.len() as u64));
        }
        assert_eq!(total, Some(rows.len() as u64));
        rows
    }

    #[test]
    fn the_last_of_several_lists_varies_fastest() {
        assert_eq!(combinations("a b * 1 2"), ["a 1", "a 2", "b 1", "b 2"]);
        assert_eq!(combinations("a b * 1"), ["a 1", "b 1"]);
    }

    #[test]
    fn an_empty_list_has_no_combinations() {
        for text in ["a * ", " * a", "a + "] {
            assert!(combinations(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_shortest_of_linked_lists_ends_them() {
        assert_eq!(combinations("a b c + 1 2"), ["a 1", "b 2"]);
        assert_eq!(combinations("a + 1 2 + A B"), ["a 1 A"]);
        assert_eq!(combinations("a b * 1 2 + A B"), ["a 1 A", "a 2 B", "b 1 A", "b 2 B"]);
    }

    #[test]
    fn the_longest_of_cycled_lists_ends_them() {
        let cycled = |text: &str| -> Vec<String> {
            cycled(&dimensions(text)).rows.iter().map(joined).collect()
        };
        assert_eq!(cycled("a b * 1 2 3 * X"), ["a 1 X", "b 2 X", "a 3 X"]);
        assert_eq!(cycled("a b * 1 2 3 + A B C"), ["a 1 A", "b 2 B", "a 3 C"]);
        assert!(cycled("a b * ").is_empty());
    }

    #[test]
    fn a_duplicate_argument_is_an_error_that_names_both_positions() {
        let error = |text: &str| check(&dimensions(text)).map_err(|error| error.to_string());
        let is_named = |text: &str, start: &str| error(text).expect_err("twice").starts_with(start);
        assert!(is_named("a b * c d c", "argument 3 of list 2 is the same as argument 1: c"));
        assert!(error("a a + 1 2").is_ok());
        assert!(is_named(
            "p + q * a a + 1 1",
            "argument 2 of list 3 is the same as argument 1: a 1"
        ));
    }
}
