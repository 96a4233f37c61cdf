//! The shared buffers of arguments and values on the host.

use brigade_buffers::SharedBuf;
use brigade_wire::MessageError;
use brigade_wire::buffers::{self, Buffer, Buffers};

/// Buffers of the items of a chunk, by the index of the item, in order.
pub(crate) type ItemBuffers = Vec<(u32, SharedBuf)>;

/// Appends the buffers of an argument to its encoding.
#[cold]
pub(crate) fn append(
    exported: &[SharedBuf],
    into: &mut Vec<u8>,
    room: usize,
) -> Result<(), MessageError> {
    let list: Vec<_> = exported.iter().map(|buffer| Buffer::Inline(buffer)).collect();
    buffers::append(into, &list, room)
}

/// Returns the buffers of a worker's message. Returns an error if it names memory that is not the
/// worker's own and was not lent to it.
#[cold]
pub(crate) fn resolve(buffers: Buffers<'_>) -> Result<Box<[SharedBuf]>, String> {
    buffers
        .map(|buffer| match buffer {
            Buffer::Inline(bytes) => Ok(SharedBuf::copy_of(bytes)),
            Buffer::Argument(_) | Buffer::Result(_) | Buffer::Foreign(..) => {
                Err("named a shared buffer that it does not have".to_owned())
            }
        })
        .collect()
}
