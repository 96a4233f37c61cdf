//! Splits Rust source into code, comments and literals, with the lexer of the compiler itself.

use ra_ap_rustc_lexer::{FrontmatterAllowed, LiteralKind, TokenKind, tokenize};

/// A part of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Number of the first line, counted from 1.
    pub(crate) line: usize,
}

/// The kinds of tokens that tidy distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Identifiers, numbers, punctuation and white space.
    Code,
    /// A comment up to the end of its line.
    LineComment,
    BlockComment,
    /// A string of any kind, with its prefix and quotes.
    String,
    /// A character or byte.
    Character,
}

/// Returns all tokens of a source file in order, including white space.
pub(crate) fn tokens(source: &str) -> impl Iterator<Item = Token<'_>> {
    let (mut rest, mut line) = (source, 1);
    tokenize(source, FrontmatterAllowed::No).map(move |token| {
        let (text, after) = rest.split_at(token.len as usize);
        let found = Token { kind: kind(token.kind), text, line };
        line += text.matches('\n').count();
        rest = after;
        found
    })
}

fn kind(kind: TokenKind) -> Kind {
    match kind {
        TokenKind::LineComment { .. } => Kind::LineComment,
        TokenKind::BlockComment { .. } => Kind::BlockComment,
        TokenKind::Literal { kind, .. } => match kind {
            LiteralKind::Int { .. } | LiteralKind::Float { .. } => Kind::Code,
            LiteralKind::Char { .. } | LiteralKind::Byte { .. } => Kind::Character,
            _ => Kind::String,
        },
        _ => Kind::Code,
    }
}

/// Returns the source with comments and literals replaced by spaces, so that a rule about code does
/// not match text in them. Lines stay the same.
pub(crate) fn code_only(source: &str) -> String {
    let mut masked = String::with_capacity(source.len());
    for token in tokens(source) {
        if token.kind == Kind::Code {
            masked.push_str(token.text);
        } else {
            let blank = |hidden| if hidden == '\n' { '\n' } else { ' ' };
            masked.extend(token.text.chars().map(blank));
        }
    }
    masked
}

/// Returns the byte offsets of `word` in `code` where no identifier touches it: on the left, and on
/// the right if the word ends like an identifier.
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

#[cfg(test)]
mod tests {
    use super::{Kind, code_only, occurrences, tokens};

    fn words(source: &str) -> Vec<String> {
        code_only(source).split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn comments_are_blanked() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g /// h"), ["a", "c", "g"]);
    }

    #[test]
    fn literals_are_blanked_with_their_prefix() {
        assert_eq!(words(r#"a "b \" // c" d b"e" c"f" 'g' '\'' b'h' i"#), ["a", "d", "i"]);
        assert_eq!(words("a r\"b\\\" c r#\"d \" e\"# f br##\"g \"# h\"## i"), ["a", "c", "f", "i"]);
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(words("fn f<'a>(x: &'a u8) 'b'"), ["fn", "f<'a>(x:", "&'a", "u8)"]);
        assert_eq!(words("r#type bcd crate 'static"), ["r#type", "bcd", "crate", "'static"]);
    }

    #[test]
    fn lines_stay_the_same() {
        let source = "a /* b\n\n */ \"c\nd\" e\n";
        assert_eq!(code_only(source).lines().count(), source.lines().count());
        assert_eq!(code_only(source).lines().nth(3).unwrap().trim(), "e");
    }

    #[test]
    fn an_unclosed_literal_extends_to_the_end() {
        for source in ["a \"b", "a r#\"b\"", "a /* b /* */", "a '\\"] {
            assert_eq!(words(source), ["a"], "{source}");
        }
    }

    #[test]
    fn a_token_has_the_number_of_its_first_line() {
        let found: Vec<_> = tokens("a\n/* b\n*/ \"c\" // d\n")
            .filter(|token| token.kind != Kind::Code)
            .map(|token| (token.kind, token.line))
            .collect();
        let expected = [(Kind::BlockComment, 2), (Kind::String, 3), (Kind::LineComment, 3)];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_whole_words_are_found() {
        assert_eq!(
            occurrences("unsafe_code unsafe {} xunsafe", "unsafe").collect::<Vec<_>>(),
            [12]
        );
        assert_eq!(occurrences("todo!() my_todo!()", "todo!").count(), 1);
        assert_eq!(occurrences("x #[allow(dead_code)]", "#[allow(").count(), 1);
    }
}
