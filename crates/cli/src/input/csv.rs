//! Splits records in CSV, as RFC 4180 describes them.

use std::iter;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

/// Splits a record. Quotes within a field that does not start with one are text.
pub(super) fn split(record: &[u8], delimiter: u8) -> Vec<Vec<u8>> {
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let (mut text, mut ends) = (vec![0; record.len()], vec![0; record.len() + 1]);
    let mut reader = reader(delimiter);
    let (_, _, written, count) = reader.read_record(record, &mut text, &mut ends);
    let (_, _, _, last) = reader.read_record(&[], &mut text[written..], &mut ends[count..]);
    let count = count + last;
    // For the library, an empty line is no record.
    let ends = &ends[..count.max(1)];
    let starts = iter::once(&0).chain(ends);
    starts.zip(ends).map(|(start, end)| text[*start..*end].to_vec()).collect()
}

/// Finds the records whose last field continues on the next line.
#[derive(Debug)]
pub(super) struct Quotes {
    reader: Reader,
    /// `true` if the last line has left a field open.
    is_open: bool,
}

impl Quotes {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { reader: reader(delimiter), is_open: false }
    }

    /// Reads the next line. Returns `true` if its last field has no closing quote.
    pub(super) fn leaves_open(&mut self, line: &[u8]) -> bool {
        // For the library, an empty line is no record.
        if line.is_empty() && !self.is_open {
            return false;
        }
        let (mut text, mut ends) = ([0; 256], [0; 32]);
        for mut rest in [line, b"\n"] {
            while !rest.is_empty() {
                let (result, read, ..) = self.reader.read_record(rest, &mut text, &mut ends);
                rest = &rest[read..];
                self.is_open = result != ReadRecordResult::Record;
            }
        }
        self.is_open
    }
}

fn reader(delimiter: u8) -> Reader {
    // A line may have any other byte.
    ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(record: &str) -> String {
        let fields = split(record.as_bytes(), b',');
        let fields: Vec<_> = fields.iter().map(|field| String::from_utf8_lossy(field)).collect();
        fields.join("|")
    }

    /// Returns `true` if the last of these lines leaves a field open.
    fn leave_open(lines: &str) -> bool {
        let mut quotes = Quotes::new(b',');
        lines.split('\n').fold(false, |_, line| quotes.leaves_open(line.as_bytes()))
    }

    #[test]
    fn quotes_protect_delimiters_and_quotes() {
        for (record, expected) in [
            ("a,b", "a|b"),
            ("", ""),
            (",", "|"),
            (r#"a,"b,c ""q""",d"#, r#"a|b,c "q"|d"#),
            ("\"x\ny\",z\r", "x\ny|z"),
            (r#""",a"#, "|a"),
            (r#"a"b,c"#, r#"a"b|c"#),
            (r#""open"#, "open"),
        ] {
            assert_eq!(joined(record), expected, "{record}");
        }
    }

    #[test]
    fn a_quoted_field_without_an_end_is_open() {
        for (record, is_open) in [
            ("a,\"b", true),
            ("\"a\"\"", true),
            ("\"\"", false),
            ("5\" a", false),
            ("", false),
            ("\"a\n", true),
            ("\"a\n\",\n", false),
        ] {
            assert_eq!(leave_open(record), is_open, "{record}");
        }
    }

    proptest! {
        #[test]
        fn a_record_is_open_after_an_odd_number_of_quotes(
            fields in prop::collection::vec("[a,\n\"]{0,12}", 1..4),
        ) {
            let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let record = fields.iter().map(quoted).collect::<Vec<_>>().join(",");
            let mut quotes = Quotes::new(b',');
            let mut count = 0;
            for line in record.split('\n') {
                count += line.matches('"').count();
                prop_assert_eq!(quotes.leaves_open(line.as_bytes()), count % 2 == 1);
            }
        }

        #[test]
        fn quoted_fields_are_read_unchanged(
            values in prop::collection::vec("[a,\"\n\r ]{0,6}", 1..5),
        ) {
            let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
            let record = values.iter().map(quoted).collect::<Vec<_>>().join(",");
            let fields: Vec<Vec<u8>> = values.iter().map(|value| value.clone().into()).collect();
            prop_assert_eq!(split(record.as_bytes(), b','), fields);
        }
    }
}
