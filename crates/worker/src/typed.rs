//! Turns typed functions into functions on encoded bytes.

use std::any::type_name;
use std::marker::PhantomData;

use brigade_sys::arena::MAX_OFFERED;
use brigade_sys::executable::{
    Adapter, EntryError, EntryPoint, Invocation, WithBuffers, entry_point,
};
use brigade_sys::numbers::{Mark, Numbers};
use brigade_wire::codec::parts::{decode_in_parts, encode_in_parts};
use brigade_wire::codec::{self, CodecError};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::shared::exporting;
use brigade_wire::slots;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::buffers;

/// Decodes an `A`, calls the function, and encodes its `R`.
///
/// Everything that belongs to the task happens in here, including the drop of its result, so a
/// panic anywhere in it is the task's panic. The memory of large bytes is freed later, because that
/// takes about as long as a copy.
#[derive(Debug)]
pub struct Typed<A, R>(PhantomData<fn(A) -> R>);

impl<F, A, R> Adapter<F> for Typed<A, R>
where
    F: Fn(A) -> R,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
        let argument = decode(invocation)?;
        let result = function(argument);
        // What follows is not the function's time.
        invocation.present.inspect(|present| slots::leave(present));
        if encode(&result, invocation)? {
            keep(result, invocation);
        }
        Ok(())
    }
}

/// Frees the memory of a large result later.
#[cold]
fn keep<R: 'static>(result: R, invocation: &mut Invocation<'_>) {
    if let (Some(leftover), Some(numbers)) = (&mut invocation.leftover, codec::into_numbers(result))
    {
        **leftover = numbers;
    }
}

/// Encodes a result. Returns `true` if it was large, and is stored. Functions with results of one
/// type have this code in common.
#[inline]
fn encode<R: Serialize + 'static>(
    result: &R,
    invocation: &mut Invocation<'_>,
) -> Result<bool, EntryError> {
    if store_large(result, invocation) {
        return Ok(true);
    }
    let Invocation { result: into, limit, parts, .. } = invocation;
    let (encoded, exported) =
        exporting(|| encode_in_parts(result, into, *limit, MAX_OFFERED, parts.as_deref_mut()));
    encoded.map_err(|error| EntryError::Result(codec::chain(&error)))?;
    let parts = parts.as_deref().map_or(&[][..], Vec::as_slice);
    if exported.is_none() && parts.is_empty() {
        return Ok(false);
    }
    buffers::append(exported.unwrap_or_default(), parts, into, *limit, type_name::<R>())
        .map_err(EntryError::Result)?;
    invocation.has_segments = true;
    Ok(false)
}

/// Decodes the argument.
#[inline]
pub(crate) fn decode<A: DeserializeOwned + 'static>(
    invocation: &mut Invocation<'_>,
) -> Result<A, EntryError> {
    let argument = match invocation.with_buffers {
        None => codec::decode(invocation.argument),
        Some(with_buffers) => {
            let arrived = std::mem::take(&mut invocation.arrived);
            decode_segmented(with_buffers, invocation.argument, arrived)
        }
    };
    argument.map_err(|error| EntryError::Argument(codec::chain(&error)))
}

/// Decodes an argument that has segments.
#[cold]
fn decode_segmented<A: DeserializeOwned + 'static>(
    with_buffers: &WithBuffers<'_>,
    argument: &[u8],
    arrived: Vec<(Mark, Numbers)>,
) -> Result<A, CodecError> {
    let (mut arrived, mut decoded) = (Some(arrived), None);
    with_buffers(&mut || {
        decoded = arrived.take().map(|arrived| decode_in_parts(argument, arrived));
    });
    decoded.unwrap_or_else(|| codec::decode(argument))
}

/// Copies a large vector of numbers or `String` once, to where the host reads it. Returns `false`
/// for other values.
fn store_large<R: 'static>(result: &R, invocation: &mut Invocation<'_>) -> bool {
    let Some(store) = &mut invocation.store_large else { return false };
    let Some((prefix, bytes)) = codec::contiguous_parts(result) else { return false };
    let length = bytes.len().saturating_add(prefix.as_slice().len());
    length >= ARENA_THRESHOLD && length <= invocation.limit && store(&[prefix.as_slice(), bytes])
}

/// Returns the plain function through which a worker calls a task function.
///
/// ```
/// use brigade_sys::executable::Invocation;
///
/// let entry = brigade_worker::function_of(|(a, b): (u8, u8)| a + b);
/// let mut result = Vec::new();
/// entry(&mut Invocation::new(&[40, 2], &mut result, 1024))?;
/// assert_eq!(result, [42]);
/// # Ok::<(), brigade_sys::executable::EntryError>(())
/// ```
///
/// A closure that captures variables does not compile, because the worker does not have their
/// values:
///
/// ```compile_fail
/// let factor = std::env::args().count();
/// brigade_worker::function_of(move |x: usize| x * factor);
/// ```
pub const fn function_of<F, A, R>(function: F) -> EntryPoint
where
    F: Fn(A) -> R + Copy + Send + 'static,
    A: DeserializeOwned + 'static,
    R: Serialize + 'static,
{
    entry_point::<F, Typed<A, R>>(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(entry: EntryPoint, argument: &[u8], limit: usize) -> Result<Vec<u8>, EntryError> {
        let mut result = Vec::new();
        entry(&mut Invocation::new(argument, &mut result, limit)).map(|()| result)
    }

    fn encoded<T: Serialize + 'static>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::encode(value, &mut bytes, 1024).expect("encodes");
        bytes
    }

    fn repeat((text, times): (String, usize)) -> String {
        text.repeat(times)
    }

    #[test]
    fn a_typed_function_is_called_with_the_decoded_argument() {
        let argument = encoded(&("ab".to_owned(), 3_usize));
        let result = run(function_of(repeat), &argument, 1024);
        assert_eq!(result, Ok(encoded(&"ababab".to_owned())));
    }

    #[test]
    fn an_argument_of_another_type_names_the_type() {
        let Err(EntryError::Argument(text)) = run(function_of(repeat), &[0xff], 1024) else {
            panic!("garbage was decoded into an argument")
        };
        assert!(text.contains("String"), "{text}");
    }

    #[test]
    fn a_result_above_the_limit_is_an_error_and_leaves_no_bytes() {
        let argument = encoded(&("ab".to_owned(), 300_usize));
        let mut result = Vec::new();
        let answer = function_of(repeat)(&mut Invocation::new(&argument, &mut result, 100));
        let Err(EntryError::Result(text)) = answer else { panic!("the limit was not enforced") };
        assert!(text.contains("100"), "{text}");
        assert_eq!(result, []);
    }
}
