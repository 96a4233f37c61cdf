//! The parts of a document that belong to a program: between two comments that nobody sees in the
//! rendered page.

/// The document with `content` between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`; `None` when
/// it has no such place.
pub(super) fn replace(text: &str, name: &str, content: &str) -> Result<Option<String>, String> {
    let (open, close) = (format!("<!-- bench:{name} -->"), format!("<!-- /bench:{name} -->"));
    let Some(start) = only(text, &open)? else {
        return match only(text, &close)? {
            None => Ok(None),
            Some(_) => Err(format!("`{close}` stands there without `{open}`")),
        };
    };
    let end = only(text, &close)?.ok_or_else(|| format!("`{open}` has no `{close}`"))?;
    if end < start {
        return Err(format!("`{close}` stands before `{open}`"));
    }
    let (before, after) = (&text[..start + open.len()], &text[end..]);
    // The empty lines keep Markdown from taking the comment for a part of the first paragraph.
    Ok(Some(format!("{before}\n\n{}\n\n{after}", content.trim())))
}

/// Where the marker stands; twice would leave open which is meant.
fn only(text: &str, marker: &str) -> Result<Option<usize>, String> {
    let mut places = text.match_indices(marker).map(|(place, _)| place);
    let first = places.next();
    if places.next().is_some() {
        return Err(format!("`{marker}` stands there twice"));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::replace;

    const TEXT: &str = "# A\n<!-- bench:raw -->\nold\n<!-- /bench:raw -->\nrest\n";

    #[test]
    fn only_what_stands_between_the_markers_is_replaced() {
        let expected = "# A\n<!-- bench:raw -->\n\nnew\nlines\n\n<!-- /bench:raw -->\nrest\n";
        let once = replace(TEXT, "raw", "new\nlines\n").unwrap().unwrap();
        assert_eq!(once, expected);
        assert_eq!(replace(&once, "raw", "new\nlines").unwrap().unwrap(), expected);
    }

    #[test]
    fn a_document_without_the_marker_is_left_alone() {
        assert_eq!(replace(TEXT, "goals", "new"), Ok(None));
        assert_eq!(replace(TEXT, "ra", "new"), Ok(None));
    }

    #[test]
    fn an_empty_place_is_filled() {
        let text = "<!-- bench:a --><!-- /bench:a -->";
        let expected = "<!-- bench:a -->\n\nnew\n\n<!-- /bench:a -->";
        assert_eq!(replace(text, "a", "new").unwrap().unwrap(), expected);
    }

    #[test]
    fn markers_that_are_wrong_change_nothing() {
        for text in [
            "<!-- bench:a -->",
            "<!-- /bench:a -->",
            "<!-- /bench:a --> <!-- bench:a -->",
            "<!-- bench:a --> <!-- bench:a --> <!-- /bench:a -->",
        ] {
            assert!(replace(text, "a", "new").is_err(), "{text}");
        }
    }
}
