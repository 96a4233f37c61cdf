//! Puts task functions of every type behind one plain function pointer.

use crate::error::EntryError;
use crate::numbers::{Mark, Numbers, SharedNumbers};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A task function as the event loop calls it, whatever its types.
pub type EntryPoint = fn(&mut Invocation<'_>) -> Result<(), EntryError>;

/// One call of a task function: bytes in, bytes out.
pub struct Invocation<'a> {
    /// The encoded argument.
    pub argument: &'a [u8],
    /// The numbers of the argument that are apart from its bytes.
    pub arrived: Vec<(Mark, Numbers)>,
    /// Receives the encoded value.
    pub result: &'a mut Vec<u8>,
    /// Maximum number of bytes of the encoded value.
    pub limit: usize,
    /// Stores a large value, encoded in parts, instead of `result`; returns `false` if it has no
    /// room.
    pub store_large: Option<&'a mut StoreLarge<'a>>,
    /// Takes the items that the function emits while it runs; `None` where it cannot.
    pub outlet: Option<&'a mut (dyn Outlet + 'a)>,
    /// Runs the decoding of an argument with segments, which needs its shared buffers.
    pub with_buffers: Option<&'a WithBuffers<'a>>,
    /// Receives memory of the value that takes long to free, which can wait until the outcome is
    /// sent.
    pub leftover: Option<&'a mut Numbers>,
    /// Receives the large vectors in the value, if it may be encoded without them.
    pub parts: Option<&'a mut Vec<(Mark, SharedNumbers)>>,
    /// The word that says which function runs, to be written when it has returned. The table of
    /// task states has it.
    pub present: Option<&'a AtomicU64>,
    /// Set by the function if the encoded value ends with a list of segments.
    pub has_segments: bool,
}

/// The type of [`Invocation::store_large`].
pub type StoreLarge<'a> = dyn FnMut(&[&[u8]]) -> bool + 'a;

/// Takes the items that a function emits while it runs.
pub trait Outlet {
    /// Blocks until the next item is wanted.
    ///
    /// # Errors
    /// [`Refusal`] if it will not be.
    fn wait(&mut self) -> Result<(), Refusal>;

    /// Sends the next item, encoded in parts. The list of its segments follows in the same part,
    /// if it `has_segments`. Call it only after [`wait`](Self::wait).
    ///
    /// # Errors
    /// [`Refusal`] if it cannot be sent.
    fn send(&mut self, parts: &[&[u8]], has_segments: bool) -> Result<(), Refusal>;
}

/// The reason why an item was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody wants the items any more.
    Closed,
    /// The time for waiting is up.
    Expired,
}

/// The type of [`Invocation::with_buffers`].
pub type WithBuffers<'a> = dyn Fn(&mut dyn FnMut()) + 'a;

impl<'a> Invocation<'a> {
    /// Returns a call with an argument and a value that are no larger than usual and have no shared
    /// buffers.
    #[inline]
    pub fn new(argument: &'a [u8], result: &'a mut Vec<u8>, limit: usize) -> Self {
        Self {
            argument,
            arrived: Vec::new(),
            result,
            limit,
            store_large: None,
            outlet: None,
            with_buffers: None,
            leftover: None,
            parts: None,
            present: None,
            has_segments: false,
        }
    }

    /// Returns a call that uses the same memory, for as long as this one is not used. What the
    /// function sets in its `has_segments` is not seen in this one.
    pub fn reborrow(&mut self) -> Invocation<'_> {
        Invocation {
            argument: self.argument,
            arrived: std::mem::take(&mut self.arrived),
            result: self.result,
            limit: self.limit,
            store_large: self.store_large.as_deref_mut().map(|it| it as &mut StoreLarge<'_>),
            outlet: self.outlet.as_deref_mut().map(|it| it as &mut dyn Outlet),
            with_buffers: self.with_buffers.map(|it| it as &WithBuffers<'_>),
            leftover: self.leftover.as_deref_mut(),
            parts: self.parts.as_deref_mut(),
            present: self.present,
            has_segments: self.has_segments,
        }
    }
}

// The bytes belong to the user and may be many.
crate::debug_fields! {
    impl Invocation<'_> { |it| argument: it.argument.len(), limit: it.limit }
}

/// A zero-sized type that can call a function of type `F` with encoded bytes.
pub trait Adapter<F> {
    /// Decodes the argument, calls `function`, encodes its value.
    fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError>;
}

/// Returns the plain function that calls a task function of type `F` through the adapter `H`.
///
/// `F` must have no size: a function item, or a closure that captures nothing. Anything else does
/// not compile, because a captured value would not exist in another process. The witness proves
/// that a value of the type exists.
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
/// entry(&mut Invocation::new(b"ab", &mut result, 100))?;
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
pub const fn entry_point<F: Copy + Send + 'static, H: Adapter<F>>(witness: F) -> EntryPoint {
    const {
        assert!(
            size_of::<F>() == 0,
            "a task function must be a function item or a closure that captures nothing: \
             put what it captures into its argument"
        );
    }
    let _ = witness;
    call::<F, H>
}

/// Only [`entry_point`] names this function, after it has seen a value of the zero-sized `F`.
fn call<F: Copy + Send + 'static, H: Adapter<F>>(
    invocation: &mut Invocation<'_>,
) -> Result<(), EntryError> {
    // SAFETY: `F` has no size, so a dangling aligned pointer can be read. A value of it exists (the
    // program can only get here through `entry_point`, in this process or in the host, which is the
    // same program), it may be copied, and the copy may be used on any thread and forever.
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
        entry(&mut Invocation::new(argument, &mut result, 8))?;
        Ok(String::from_utf8(result).unwrap())
    }

    fn shout(text: &str) -> String {
        text.to_uppercase()
    }

    #[test]
    fn function_items_and_captureless_closures_can_be_called() {
        assert_eq!(run(entry_point::<_, Text>(shout), b"abc").unwrap(), "ABC");
        assert_eq!(
            run(entry_point::<_, Text>(|text: &str| text.repeat(2)), b"abc").unwrap(),
            "abcabc"
        );
    }

    #[test]
    fn functions_with_the_same_signature_stay_distinct() {
        let one = entry_point::<_, Text>(|text: &str| format!("{text}1"));
        let two = entry_point::<_, Text>(|text: &str| format!("{text}2"));
        assert_eq!(run(one, b"x").unwrap(), "x1");
        assert_eq!(run(two, b"x").unwrap(), "x2");
    }

    #[test]
    fn a_reborrowed_call_has_the_same_memory_and_its_argument() {
        let (mut result, mut leftover, mut stored) = (vec![7], Numbers::default(), 0);
        let mut store = |parts: &[&[u8]]| {
            stored += parts.len();
            true
        };
        let mut invocation = Invocation::new(b"first", &mut result, 8);
        invocation.store_large = Some(&mut store);
        invocation.leftover = Some(&mut leftover);
        for argument in [b"second", b"third_"] {
            let mut again = invocation.reborrow();
            again.argument = argument;
            assert_eq!((again.result.as_slice(), again.limit), (&[7][..], 8));
            again.has_segments = true;
            assert!(again.store_large.as_mut().is_some_and(|store| store(&[argument])));
            **again.leftover.as_mut().unwrap() = Numbers::of(argument.to_vec());
        }
        assert_eq!((invocation.argument, invocation.has_segments), (&b"first"[..], false));
        assert_eq!((result, leftover.as_bytes(), stored), (vec![7], &b"third_"[..], 2));
    }

    #[test]
    fn a_failed_decode_and_a_failed_encode_are_different_errors() {
        let entry = entry_point::<_, Text>(shout);
        assert!(matches!(run(entry, b"\xff"), Err(EntryError::Argument(_))));
        assert!(matches!(run(entry, b"far too long"), Err(EntryError::Result(_))));
    }
}
