//! The report: one self-contained HTML page with a timeline of the cores, the number of waiting
//! jobs, and job durations.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::record::{Record, Records};

/// The page without its data, which goes between its two halves.
const PAGE: &str = include_str!("page.html");
/// The marker in the page that the data replaces.
const DATA: &str = "/*DATA*/";

pub(super) fn write(
    writer: &mut impl Write,
    records: &mut Records,
    is_pinned: bool,
    facts: &Value,
) -> io::Result<()> {
    let (before, after) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
    writer.write_all(before.as_bytes())?;
    write!(writer, "const facts = {};\nconst attempts = [", in_script(&facts.to_string()))?;
    records.each(|record| write!(writer, "\n{},", in_script(&row(&record, is_pinned))))?;
    write!(writer, "\n];")?;
    writer.write_all(after.as_bytes())
}

/// Returns a job as the page's script reads it: number, start, wall, end, cores, processor time,
/// memory, name, failure, attempts, and the end of the output if it failed.
fn row(record: &Record, is_pinned: bool) -> String {
    // A job that could not be started had no cores, and gets no row.
    let rows = if is_pinned { json!(record.cores) } else { json!([record.slot]) };
    let mut row = json!([
        record.number,
        record.start,
        record.wall,
        record.status,
        rows,
        record.busy,
        record.memory,
        record.name,
        record.failure,
        record.attempts,
    ]);
    if let (Some(row), false) = (row.as_array_mut(), record.last_lines.is_empty()) {
        row.push(record.last_lines.join("\n").into());
    }
    row.to_string()
}

/// Escapes JSON so that it cannot end the script that contains it.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_can_end_the_script() {
        assert_eq!(in_script(r#""</script><b>""#), r#""\u003c/script>\u003cb>""#);
    }

    #[test]
    fn the_page_has_one_place_for_its_data_and_needs_nothing_else() {
        assert_eq!(PAGE.matches(DATA).count(), 1);
        for word in ["src=\"http", "href=\"http", "@import", "fetch("] {
            assert!(!PAGE.contains(word), "{word}");
        }
    }
}
