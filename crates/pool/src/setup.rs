//! The initializer and the finalizer of a pool's workers.

use brigade_supervisor::Initializer;
use brigade_sys::executable::{EntryPoint, FunctionOffset};
use brigade_sys::sealed::SealedBytes;
use brigade_wire::codec;
use serde::Serialize;

/// Encodes the argument of an initializer into memory that all workers share.
pub(crate) fn initializer<A: Serialize + 'static>(
    entry: EntryPoint,
    argument: &A,
) -> Result<Initializer, String> {
    let function = offset(entry)?;
    let argument = if let Some((prefix, bytes)) = codec::contiguous_parts(argument) {
        seal(&[prefix.as_slice(), bytes])
    } else {
        let mut encoded = Vec::new();
        codec::encode(argument, &mut encoded, u32::MAX as usize)
            .map_err(|error| codec::chain(&error))?;
        seal(&[&encoded])
    };
    Ok(Initializer { function, argument: argument? })
}

/// Returns the offset of `entry` in the executable, or the reason why it has none.
pub(crate) fn offset(entry: EntryPoint) -> Result<FunctionOffset, String> {
    FunctionOffset::of(entry).map_err(|error| codec::chain(&error))
}

fn seal(parts: &[&[u8]]) -> Result<SealedBytes, String> {
    SealedBytes::create("brigade-initializer", parts)
        .map_err(|error| format!("failed to make shared memory for its argument: {error}"))
}
