//! `Debug` of errors as text.
//!
//! A `main` that returns an error prints its `Debug`, and so does `unwrap`. The derived one shows
//! the names of variants instead of what failed and what to do.

use std::error::Error;

/// Implements `Debug` for errors: the text of `Display`, and those of the sources.
///
/// ```
/// use std::fmt;
///
/// struct NotFound(&'static str);
///
/// impl fmt::Display for NotFound {
///     fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
///         write!(out, "{} is missing: create it", self.0)
///     }
/// }
///
/// impl std::error::Error for NotFound {}
///
/// brigade_sys::debug_as_text!(NotFound);
///
/// assert_eq!(format!("{:?}", NotFound("a.txt")), "a.txt is missing: create it");
/// ```
#[macro_export]
macro_rules! debug_as_text {
    ($($error:ty),+ $(,)?) => {$(
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, out: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                out.write_str(&$crate::chain(self))
            }
        }
    )+};
}

/// Returns the text of an error and those of its sources, in one line. A source that an error
/// quotes at its end is not repeated.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    #[derive(thiserror::Error)]
    enum Sample {
        #[error("cannot open {0}")]
        Open(&'static str, #[source] io::Error),
        #[error("it says {0}")]
        Quoting(#[source] io::Error),
    }

    crate::debug_as_text!(Sample);

    #[test]
    fn the_text_of_an_error_has_its_sources_once() {
        let cause = || io::Error::other("no such disk");
        assert_eq!(format!("{:?}", Sample::Open("a", cause())), "cannot open a: no such disk");
        assert_eq!(format!("{:?}", Sample::Quoting(cause())), "it says no such disk");
    }
}
