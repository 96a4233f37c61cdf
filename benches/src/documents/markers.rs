//! Replaces generated parts of a document, which are enclosed in two comments that the rendered
//! page does not show.

/// Returns the document with `content` between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, or
/// `None` if it does not have these markers.
pub(super) fn replace(text: &str, name: &str, content: &str) -> Result<Option<String>, String> {
    let (open, close) = (format!("<!-- bench:{name} -->"), format!("<!-- /bench:{name} -->"));
    let Some(start) = only(text, &open)? else {
        return match only(text, &close)? {
            None => Ok(None),
            Some(_) => Err(format!("`{close}` without `{open}`")),
        };
    };
    let end = only(text, &close)?.ok_or_else(|| format!("`{open}` without `{close}`"))?;
    if end < start {
        return Err(format!("`{close}` before `{open}`"));
    }
    let (before, after) = (&text[..start + open.len()], &text[end..]);
    // Without the empty lines, Markdown would join the comment and the first paragraph.
    Ok(Some(format!("{before}\n\n{}\n\n{after}", content.trim())))
}

/// Returns the position of a marker, which must not occur twice.
fn only(text: &str, marker: &str) -> Result<Option<usize>, String> {
    let mut positions = text.match_indices(marker).map(|(position, _)| position);
    let first = positions.next();
    if positions.next().is_some() {
        return Err(format!("`{marker}` occurs twice"));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::replace;

    const TEXT: &str = "# A\n<!-- bench:raw -->\nold\n<!-- /bench:raw -->\nrest\n";

    #[test]
    fn only_the_text_between_the_markers_is_replaced() {
        let expected = "# A\n<!-- bench:raw -->\n\nnew\nlines\n\n<!-- /bench:raw -->\nrest\n";
        let once = replace(TEXT, "raw", "new\nlines\n").unwrap().unwrap();
        assert_eq!(once, expected);
        assert_eq!(replace(&once, "raw", "new\nlines").unwrap().unwrap(), expected);
    }

    #[test]
    fn a_document_without_the_marker_is_unchanged() {
        assert_eq!(replace(TEXT, "goals", "new"), Ok(None));
        assert_eq!(replace(TEXT, "ra", "new"), Ok(None));
    }

    #[test]
    fn text_is_inserted_between_adjacent_markers() {
        let text = "<!-- bench:a --><!-- /bench:a -->";
        let expected = "<!-- bench:a -->\n\nnew\n\n<!-- /bench:a -->";
        assert_eq!(replace(text, "a", "new").unwrap().unwrap(), expected);
    }

    #[test]
    fn malformed_markers_are_refused() {
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
