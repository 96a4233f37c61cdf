//! The page: one file without outside resources.

/// The page.
pub(crate) const HTML: &str = include_str!("page/index.html");

/// The page's security policy: its own style and script by their hashes, and connections to this
/// server. Everything else is refused, markup that a label might smuggle in included.
pub(crate) const POLICY: &str = "default-src 'none'; connect-src 'self'; img-src data:; \
     style-src 'sha256-1or95Eua6ajlnXqA0VHAd7ZwMSCFo02eBVLhO2fhZuA='; \
     script-src 'sha256-HhilljCl/kWK1K6V+5ELfTsn+VmU+/rTuIB9Fn17YR8='; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// Returns the text between the only pair of tags.
    fn element(name: &str) -> &'static str {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        assert_eq!(HTML.matches(&open).count(), 1, "{open}");
        let after = HTML.split(&open).nth(1).unwrap();
        after.split(&close).next().unwrap()
    }

    fn hash(name: &str) -> String {
        format!("'sha256-{}'", base64(&Sha256::digest(element(name))))
    }

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = String::new();
        for group in bytes.chunks(3) {
            let mut bits = [0_u8; 4];
            bits[1..=group.len()].copy_from_slice(group);
            let bits = u32::from_be_bytes(bits);
            for digit in 0..4 {
                let value = bits >> (18 - 6 * digit) & 63;
                let is_data = digit <= group.len();
                text.push(if is_data { DIGITS[value as usize].into() } else { '=' });
            }
        }
        text
    }

    #[test]
    fn the_policy_allows_exactly_the_pages_style_and_script() {
        for name in ["style", "script"] {
            assert!(POLICY.contains(&hash(name)), "the hash of <{name}> is {}", hash(name));
        }
    }

    #[test]
    fn the_page_has_no_outside_resource() {
        // The name of the namespace of SVG is never fetched.
        let page = HTML.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "src=", "@import", "url(", "<base", "<link rel=\"style"]
        {
            assert!(!page.contains(word), "{word}");
        }
    }

    #[test]
    fn the_policy_leaves_no_attribute_without_effect() {
        let markup = HTML.replace(element("script"), "").replace(element("style"), "");
        for word in [" style=", " onclick=", " onload=", "javascript:"] {
            assert!(!markup.contains(word), "{word}");
        }
    }

    #[test]
    fn text_is_never_inserted_as_markup() {
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!HTML.contains(word), "{word}");
        }
    }
}
