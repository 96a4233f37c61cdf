//! Rust source with everything that is not code blanked, so that a rule about code does not trip
//! over a comment or a string that only speaks of it.

/// Comments, strings and character literals become spaces; lines stay lines.
pub(crate) fn code_only(source: &str) -> String {
    let mut masked = String::with_capacity(source.len());
    let mut previous = ' ';
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_length(rest, previous);
        if hidden > 0 {
            masked.extend(
                rest[..hidden].chars().map(|hidden| if hidden == '\n' { '\n' } else { ' ' }),
            );
            previous = ' ';
            rest = &rest[hidden..];
        } else {
            masked.push(first);
            previous = first;
            rest = &rest[first.len_utf8()..];
        }
    }
    masked
}

/// Byte offsets at which `word` stands in `code` with no identifier touching it on the left, nor on
/// the right if it ends like an identifier.
pub(crate) fn occurrences<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let open_left = !word.starts_with(is_identifier);
    let open_right = !word.ends_with(is_identifier);
    code.match_indices(word).map(|(start, _)| start).filter(move |&start| {
        let free_left = open_left || !code[..start].ends_with(is_identifier);
        free_left && (open_right || !code[start + word.len()..].starts_with(is_identifier))
    })
}

fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// How many bytes from the start of `rest` are one comment or literal; 0 if code stands there.
fn hidden_length(rest: &str, previous: char) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    // The last letter of an identifier is no prefix: `var"` cannot occur, but `attr'a` can in a
    // macro.
    let unprefixed =
        if is_identifier(previous) { rest } else { rest.trim_start_matches(['b', 'c']) };
    let prefix = rest.len() - unprefixed.len();
    if prefix > 1 {
        return 0;
    }
    let body = if unprefixed.starts_with('"') {
        closing(unprefixed, '"')
    } else if unprefixed.starts_with('\'') {
        character_length(unprefixed)
    } else if !is_identifier(previous) {
        raw_string_length(unprefixed)
    } else {
        0
    };
    if body == 0 { 0 } else { prefix + body }
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut position = 0;
    while position < rest.len() {
        if rest[position..].starts_with("/*") {
            depth += 1;
            position += 2;
        } else if rest[position..].starts_with("*/") {
            depth -= 1;
            position += 2;
            if depth == 0 {
                return position;
            }
        } else {
            position += rest[position..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Length up to and with the next unescaped `quote` after the first character.
fn closing(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, character) in rest.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == quote {
            return index + character.len_utf8();
        }
    }
    rest.len()
}

/// `'a'` and `'\n'` are literals; `'a` alone is a lifetime.
fn character_length(rest: &str) -> usize {
    let mut characters = rest.chars().skip(1);
    match (characters.next(), characters.next()) {
        (Some('\\'), _) => closing(rest, '\''),
        (Some(character), Some('\'')) => 2 + character.len_utf8(),
        _ => 0,
    }
}

/// `r"..."` and `r#"..."#` with any number of hashes; `r#name` is an identifier.
fn raw_string_length(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix('r') else {
        return 0;
    };
    let hashes = after.len() - after.trim_start_matches('#').len();
    if !after[hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = 1 + hashes + 1;
    rest[start..].find(&end).map_or(rest.len(), |found| start + found + end.len())
}

#[cfg(test)]
mod tests {
    use super::{code_only, occurrences};

    fn words(source: &str) -> Vec<String> {
        code_only(source).split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn comments_vanish_and_code_stays() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g /// h"), ["a", "c", "g"]);
    }

    #[test]
    fn literals_vanish_whatever_their_prefix() {
        assert_eq!(words(r#"a "b \" // c" d b"e" c"f" 'g' '\'' b'h' i"#), ["a", "d", "i"]);
        assert_eq!(words("a r\"b\\\" c r#\"d \" e\"# f br##\"g \"# h\"## i"), ["a", "c", "f", "i"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(words("fn f<'a>(x: &'a u8) 'b'"), ["fn", "f<'a>(x:", "&'a", "u8)"]);
        assert_eq!(words("r#type bcd crate 'static"), ["r#type", "bcd", "crate", "'static"]);
    }

    #[test]
    fn lines_stay_lines() {
        let source = "a /* b\n\n */ \"c\nd\" e\n";
        assert_eq!(code_only(source).lines().count(), source.lines().count());
        assert_eq!(code_only(source).lines().nth(3).unwrap().trim(), "e");
    }

    #[test]
    fn an_unclosed_literal_hides_the_rest_and_ends() {
        for source in ["a \"b", "a r#\"b\"", "a /* b /* */", "a '\\"] {
            assert_eq!(words(source), ["a"], "{source}");
        }
    }

    #[test]
    fn a_word_is_found_whole() {
        assert_eq!(
            occurrences("unsafe_code unsafe {} xunsafe", "unsafe").collect::<Vec<_>>(),
            [12]
        );
        assert_eq!(occurrences("todo!() my_todo!()", "todo!").count(), 1);
        assert_eq!(occurrences("x #[allow(dead_code)]", "#[allow(").count(), 1);
    }
}
