//! Splits records in CSV, as RFC 4180 describes them.

/// The fields of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) fields: Vec<Vec<u8>>,
    /// `true` if the last field has no closing quote.
    is_open: bool,
}

/// Splits a record. Quotes within a field that does not start with one are text.
pub(super) fn split(record: &[u8], delimiter: u8) -> Record {
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let mut fields = Vec::new();
    let mut is_open = false;
    let mut rest = Some(record);
    while let Some(text) = rest {
        let (field, after) = match text.strip_prefix(b"\"").map(quoted_field) {
            Some((field, after)) => {
                is_open = after.is_none();
                (field, after.unwrap_or_default())
            }
            None => (Vec::new(), text),
        };
        let end = after.iter().position(|byte| *byte == delimiter);
        let (plain, next) = match end {
            Some(end) => (&after[..end], Some(&after[end + 1..])),
            None => (after, None),
        };
        fields.push([&field, plain].concat());
        rest = next;
    }
    Record { fields, is_open }
}

/// Returns `true` if the last field of a line has no closing quote: it continues on the next line.
/// `was_open` is the same of the line before.
pub(super) fn is_open(line: &[u8], delimiter: u8, was_open: bool) -> bool {
    if !was_open {
        return split(line, delimiter).is_open;
    }
    let Some(after) = quoted_field(line).1 else { return true };
    let next = after.iter().position(|byte| *byte == delimiter);
    next.is_some_and(|end| split(&after[end + 1..], delimiter).is_open)
}

/// Returns the text up to the closing quote, and the rest after it, if there is such a quote.
fn quoted_field(mut rest: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut field = Vec::new();
    loop {
        let Some(quote) = rest.iter().position(|byte| *byte == b'"') else {
            field.extend_from_slice(rest);
            return (field, None);
        };
        field.extend_from_slice(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                field.push(b'"');
                rest = after;
            }
            None => return (field, Some(rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn joined(record: &str) -> String {
        let record = split(record.as_bytes(), b',');
        let fields: Vec<_> =
            record.fields.iter().map(|field| String::from_utf8_lossy(field)).collect();
        fields.join("|")
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
        for (record, is_open) in
            [("a,\"b", true), ("\"a\"\"", true), ("\"\"", false), ("5\" a", false)]
        {
            assert_eq!(split(record.as_bytes(), b',').is_open, is_open, "{record}");
        }
    }

    proptest! {
        #[test]
        fn lines_leave_a_record_open_as_the_whole_does(text in "[a,\"\n]{0,20}") {
            let is_open = text.split('\n').fold(false, |was_open, line| {
                is_open(line.as_bytes(), b',', was_open)
            });
            // A new record begins on the next line after one that is not open.
            let mut records = text.split('\n').fold(vec![String::new()], |mut records, line| {
                let last = records.last_mut().expect("one");
                last.push_str(line);
                if split(last.as_bytes(), b',').is_open {
                    last.push('\n');
                } else {
                    records.push(String::new());
                }
                records
            });
            let last = records.pop_if(|record| record.is_empty());
            prop_assert_eq!(is_open, last.is_none());
        }

        #[test]
        fn quoted_fields_are_read_unchanged(
            values in prop::collection::vec("[a,\"\n\r ]{0,6}", 1..5),
        ) {
            let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
            let record = values.iter().map(quoted).collect::<Vec<_>>().join(",");
            let fields = values.iter().map(|value| value.clone().into()).collect();
            prop_assert_eq!(split(record.as_bytes(), b','), Record { fields, is_open: false });
        }
    }
}
