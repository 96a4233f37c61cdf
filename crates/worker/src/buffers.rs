//! The shared buffers of a task's argument and value.

use brigade_buffers::SharedBuf;
use brigade_sys::arena::ResultArena;
use brigade_wire::buffers::{self, Buffer};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::{Buffered, Location, MessageError, Outcome, codec};

/// Splits an argument into its encoding and its buffers.
#[cold]
pub(crate) fn open(argument: &[u8]) -> Result<(&[u8], Vec<SharedBuf>), MessageError> {
    let (encoded, buffers) = buffers::split(argument)?;
    let buffers = buffers.map(|buffer| match buffer {
        Buffer::Inline(bytes) => Ok(SharedBuf::copy_of(bytes)),
        Buffer::Argument(_) | Buffer::Result(_) | Buffer::Foreign(..) => Err(NOT_HERE),
    });
    Ok((encoded, buffers.collect::<Result<_, _>>()?))
}

/// Returns the function that runs the decoding of an argument with its buffers.
pub(crate) fn importing(buffers: &[SharedBuf]) -> impl Fn(&mut dyn FnMut()) {
    |decode| brigade_buffers::importing(buffers, decode)
}

const NOT_HERE: MessageError = MessageError::Decode("no such memory in this worker");

/// Appends the buffers of a value to its encoding. `type_name` is the type of the value.
#[cold]
pub(crate) fn append(
    exported: &[SharedBuf],
    result: &mut Vec<u8>,
    limit: usize,
    type_name: &str,
) -> Result<(), String> {
    let list: Vec<_> = exported.iter().map(|buffer| Buffer::Inline(buffer)).collect();
    let room = limit.saturating_sub(result.len());
    buffers::append(result, &list, room).map_err(|error| {
        let error = codec::chain(&error);
        format!("a value of type {type_name} could not be encoded: {error}")
    })
}

/// Returns the outcome of a task whose encoded value ends with a list of buffers. A large value is
/// stored in the arena, but the list stays in the message.
#[cold]
pub(crate) fn outcome<'a>(result: &'a [u8], results: Option<&ResultArena>) -> Outcome<'a> {
    let length = buffers::split(result).map_or(0, |(encoded, _)| encoded.len());
    let (encoded, list) = result.split_at(length);
    let stored = results.filter(|_| length >= ARENA_THRESHOLD).and_then(|it| it.put(&[encoded]));
    let location =
        stored.map(|(offset, length)| Location { offset: offset as u64, length: length as u64 });
    let payload = if location.is_some() { list } else { result };
    Outcome::Buffered(Box::new(Buffered { location, payload }))
}
