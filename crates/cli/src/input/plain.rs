//! Rephrases the errors of deserializers: they speak of Rust's types.

/// Expectations of deserializers, and the same for people.
const TYPES: &[(&str, &str)] = &[
    ("a nonzero usize", "a whole number of at least 1"),
    ("usize", "a whole number"),
    ("u32", "a whole number"),
    ("u64", "a whole number"),
    ("i32", "a whole number"),
    ("a sequence", "a list"),
    ("a map", "a table"),
    ("path string", "a path"),
];

/// Beginnings of the descriptions of values, and the same for people.
const VALUES: &[(&str, &str)] = &[
    ("string ", "the text "),
    ("integer ", "the number "),
    ("floating point ", "the number "),
    ("boolean ", ""),
    ("sequence", "a list"),
    ("map", "a table"),
    ("unit value", "nothing"),
];

/// Returns the message of a deserializer in words without Rust's types.
pub(super) fn message(message: &str) -> String {
    if let Some(place) = message.strip_prefix("EOF while parsing ") {
        let place = if place == "a value" { "before a value" } else { &format!("within {place}") };
        return format!("the line ends {place}");
    }
    let found = ["invalid type: ", "invalid value: "];
    let found = found.iter().find_map(|start| message.strip_prefix(start));
    let Some((found, expected)) = found.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return message.to_owned();
    };
    let type_name = TYPES.iter().find(|(name, _)| *name == expected);
    let expected = type_name.map_or(expected, |(_, plain)| plain);
    let value = VALUES.iter().find_map(|(start, plain)| {
        found.strip_prefix(start).map(|rest| format!("{plain}{}", rest.replace('`', "")))
    });
    let found = value.as_deref().unwrap_or(found);
    format!("expected {expected}, found {found:.100}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_type_of_rust_is_shown() {
        for (from, to) in [
            (
                "invalid value: integer `0`, expected a nonzero usize",
                "expected a whole number of at least 1, found the number 0",
            ),
            (
                "invalid type: string \"a, expected b\", expected a sequence",
                "expected a list, found the text \"a, expected b\"",
            ),
            ("invalid type: map, expected a string", "expected a string, found a table"),
            ("EOF while parsing an object", "the line ends within an object"),
            ("EOF while parsing a value", "the line ends before a value"),
            ("unknown field `a`", "unknown field `a`"),
        ] {
            assert_eq!(message(from), to);
        }
    }
}
