//! A table that formats itself for a terminal and for Markdown.

/// Rows of cells below a heading. Columns of words are aligned left, and columns of figures right.
#[derive(Debug)]
pub(super) struct Table {
    /// Number of columns of words, which come first.
    words: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(words: usize, heading: &[&str]) -> Self {
        Self { words, rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    /// Adds a row. White space that would end a cell or a row becomes a space.
    pub(super) fn add(&mut self, row: Vec<String>) {
        self.rows.push(row.into_iter().map(|cell| cell.replace(['\t', '\n'], " ")).collect());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// Returns the table with columns aligned by spaces.
    pub(super) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                if column < self.words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text.extend(["| ", &cells.join(" | "), " |\n"]);
            if index == 0 {
                let words = self.words.min(row.len());
                let figures = "---:|".repeat(row.len() - words);
                text.extend(["|", &"---|".repeat(words), &figures, "\n"]);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    fn table() -> Table {
        let mut table = Table::new(1, &["what", "µs"]);
        table.add(vec!["a|b".to_owned(), "1,000".to_owned()]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        assert_eq!(table().text(), "what     µs\na|b   1,000\n");
    }

    #[test]
    fn a_newline_does_not_end_a_row() {
        let mut table = Table::new(1, &["a"]);
        table.add(vec!["b\n\tc".to_owned()]);
        assert_eq!(table.text(), "a\nb  c\n");
    }

    #[test]
    fn bars_are_escaped_in_markdown() {
        assert_eq!(table().markdown(), "| what | µs |\n|---|---:|\n| a\\|b | 1,000 |\n");
    }
}
