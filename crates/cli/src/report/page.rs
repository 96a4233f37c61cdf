//! The page: one file that needs nothing else, with the timeline of cores, how many jobs waited, and how long they took.

use std::io::{self, Write};

use serde_json::json;

use crate::record::{Record, Records};
use crate::screen::Statistics;

/// The page without its data. The data stands between its two halves.
const PAGE: &str = include_str!("page.html");
/// Where the data goes.
const DATA: &str = "/*DATA*/";

pub(super) fn write(
    writer: &mut impl Write,
    records: &mut Records,
    statistics: &Statistics,
) -> io::Result<()> {
    let (before, after) = PAGE.split_once(DATA).unwrap_or((PAGE, ""));
    writer.write_all(before.as_bytes())?;
    let mut is_pinned = false;
    records.each(|record| {
        is_pinned |= !record.cores.is_empty();
        Ok(())
    })?;
    let facts = json!({
        "pinned": is_pinned,
        "cores": statistics.cores(), "slots": statistics.slots(), "total": statistics.total(),
        "skipped": statistics.skipped(), "wall": statistics.elapsed().as_secs_f64(),
    });
    write!(writer, "const facts = {};\nconst jobs = [", in_script(&facts.to_string()))?;
    records.each(|record| write!(writer, "\n{},", in_script(&row(&record, is_pinned))))?;
    write!(writer, "\n];")?;
    writer.write_all(after.as_bytes())
}

/// A job as the page's script reads it: number, start, wall, end, cores, processor time, memory, name, failure.
fn row(record: &Record, is_pinned: bool) -> String {
    // A job that could not be started had no cores, and has no row.
    let rows = if is_pinned { json!(record.cores) } else { json!([record.slot]) };
    json!([
        record.number,
        record.start,
        record.wall,
        record.end,
        rows,
        record.busy,
        record.memory,
        record.name,
        record.failure,
        record.attempts,
    ])
    .to_string()
}

/// JSON that cannot end the script it stands in.
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
