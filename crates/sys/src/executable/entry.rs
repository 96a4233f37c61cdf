//! Task functions of every type behind one plain function pointer.

use crate::error::EntryError;
use std::fmt;
use std::ptr::NonNull;

/// What a task function looks like to the event loop, whatever its types.
pub type EntryPoint = fn(&mut Invocation<'_>) -> Result<(), EntryError>;

/// One call of a task function: bytes in, bytes out.
pub struct Invocation<'a> {
    /// The encoded argument.
    pub argument: &'a [u8],
    /// Where the encoded result is appended.
    pub result: &'a mut Vec<u8>,
    /// The encoded result may not have more bytes than this.
    pub limit: usize,
    /// Takes a large result, encoded in parts, instead of `result`; false when it has no room.
    pub place: Option<&'a mut Placer<'a>>,
}

/// See [`Invocation::place`].
pub type Placer<'a> = dyn FnMut(&[&[u8]]) -> bool + 'a;

impl fmt::Debug for Invocation<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The bytes belong to the user and may be many.
        formatter
            .debug_struct("Invocation")
            .field("argument", &self.argument.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Implemented by a zero-sized type that knows how to call a function of type `F` with encoded bytes.
pub trait Adapter<F> {
    /// Decodes the argument, calls `function`, encodes its result.
    fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError>;
}

/// The plain function that calls a task function of type `F` through the adapter `H`.
///
/// `F` must have no size: a function item, or a closure that captures nothing. Anything else does not compile, because
/// what it captures would not exist in another process. The witness proves that a value of the type exists.
///
/// ```
/// use brigade_sys::executable::{Adapter, EntryError, Invocation, entry_point};
///
/// struct Bytes;
/// impl<F: Fn(&[u8]) -> Vec<u8>> Adapter<F> for Bytes {
///     fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
///         invocation.result.extend(function(invocation.argument));
///         Ok(())
///     }
/// }
///
/// fn double(bytes: &[u8]) -> Vec<u8> {
///     bytes.repeat(2)
/// }
///
/// let mut result = Vec::new();
/// let entry = entry_point::<_, Bytes>(double);
/// entry(&mut Invocation { argument: b"ab", result: &mut result, limit: 100, place: None })?;
/// assert_eq!(result, b"abab");
/// # Ok::<(), EntryError>(())
/// ```
///
/// ```compile_fail
/// # use brigade_sys::executable::{Adapter, EntryError, Invocation, entry_point};
/// # struct Bytes;
/// # impl<F: Fn(&[u8]) -> Vec<u8>> Adapter<F> for Bytes {
/// #     fn call(_: F, _: &mut Invocation<'_>) -> Result<(), EntryError> {
/// #         Ok(())
/// #     }
/// # }
/// let times = std::env::args().count();
/// entry_point::<_, Bytes>(move |bytes: &[u8]| bytes.repeat(times));
/// ```
pub fn entry_point<F: Copy + Send + 'static, H: Adapter<F>>(witness: F) -> EntryPoint {
    const {
        assert!(
            size_of::<F>() == 0,
            "a task function must be a function item or a closure that captures nothing"
        );
    }
    let _ = witness;
    call::<F, H>
}

/// Only [`entry_point`] names this, after it has seen a value of the zero-sized `F`.
fn call<F: Copy + Send + 'static, H: Adapter<F>>(
    invocation: &mut Invocation<'_>,
) -> Result<(), EntryError> {
    // SAFETY: `F` has no size, so a dangling aligned pointer can be read. A value of it exists (the program can only
    // get here through `entry_point`, in this process or in the host, which is the same program), it may be copied, and
    // the copy may be used on any thread and for ever.
    let function = unsafe { NonNull::<F>::dangling().read() };
    H::call(function, invocation)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the argument as text and checks the limit, as the real adapter does.
    struct Text;

    impl<F: Fn(&str) -> String> Adapter<F> for Text {
        fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
            let argument = std::str::from_utf8(invocation.argument)
                .map_err(|error| EntryError::Argument(format!("&str: {error}")))?;
            let result = function(argument);
            if result.len() > invocation.limit {
                return Err(EntryError::Result("String: too long".to_owned()));
            }
            invocation.result.extend_from_slice(result.as_bytes());
            Ok(())
        }
    }

    fn run(entry: EntryPoint, argument: &[u8]) -> Result<String, EntryError> {
        let mut result = Vec::new();
        entry(&mut Invocation { argument, result: &mut result, limit: 8, place: None })?;
        Ok(String::from_utf8(result).unwrap())
    }

    fn shout(text: &str) -> String {
        text.to_uppercase()
    }

    #[test]
    fn function_items_and_closures_that_capture_nothing_can_be_called() {
        assert_eq!(run(entry_point::<_, Text>(shout), b"abc").unwrap(), "ABC");
        assert_eq!(
            run(entry_point::<_, Text>(|text: &str| text.repeat(2)), b"abc").unwrap(),
            "abcabc"
        );
    }

    #[test]
    fn functions_of_the_same_type_signature_stay_apart() {
        let one = entry_point::<_, Text>(|text: &str| format!("{text}1"));
        let two = entry_point::<_, Text>(|text: &str| format!("{text}2"));
        assert_eq!(run(one, b"x").unwrap(), "x1");
        assert_eq!(run(two, b"x").unwrap(), "x2");
    }

    #[test]
    fn each_half_that_fails_is_told_apart() {
        let entry = entry_point::<_, Text>(shout);
        assert!(matches!(run(entry, b"\xff"), Err(EntryError::Argument(_))));
        assert!(matches!(run(entry, b"much too long"), Err(EntryError::Result(_))));
    }
}
