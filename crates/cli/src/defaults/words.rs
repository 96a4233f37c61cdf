//! Splits a line into words as a shell does.

use std::ffi::OsString;

/// A quotation mark without its counterpart.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no second `{0}`")]
pub(super) struct Unquoted(char);

/// Splits a line at spaces. Quotes and backslashes have the meaning that they have in a shell;
/// nothing is expanded.
pub(super) fn split(line: &str) -> Result<Vec<OsString>, Unquoted> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take().map(OsString::from)),
            '\\' => word.get_or_insert_default().extend(rest.next()),
            '\'' | '"' => quoted(character, &mut rest, word.get_or_insert_default())?,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word.map(OsString::from));
    Ok(words)
}

fn quoted(
    mark: char,
    rest: &mut impl Iterator<Item = char>,
    word: &mut String,
) -> Result<(), Unquoted> {
    loop {
        match rest.next().ok_or(Unquoted(mark))? {
            end if end == mark => return Ok(()),
            '\\' if mark == '"' => match rest.next().ok_or(Unquoted(mark))? {
                escaped @ ('"' | '\\' | '$' | '`') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let split = |line: &str| split(line).map(|words| words.join("|".as_ref()));
        assert_eq!(split(r#" a  'b c'"d"\ e  "" "#), Ok(r"a|b cd e|".into()));
        assert_eq!(split(r#""a\"\b" '\'"#), Ok(r#"a"\b|\"#.into()));
        assert_eq!(split("a 'b"), Err(Unquoted('\'')));
    }

    proptest! {
        #[test]
        fn quoted_words_are_read_back(words in prop::collection::vec("[^\0]*", 0..4)) {
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            let line: Vec<_> = words.iter().map(|word| brigade::runner::quote(word)).collect();
            let line = line.join(" ".as_ref()).into_string().expect("UTF-8");
            prop_assert_eq!(split(&line), Ok(words));
        }
    }
}
