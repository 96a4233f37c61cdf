//! The shared buffers of tasks' arguments and values.
//!
//! The host lends the buffers of an argument to this worker until the task has ended. Those that
//! the task has kept (in a static, or on a thread) are reported before its outcome, and once more
//! when the last clone is gone.

mod alloc;
mod lent;

use std::cell::RefCell;

use brigade_sys::arena::ResultArena;
use brigade_wire::buffers::{self, Buffer, File};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::shared::{Export, Place, SharedBuf};
use brigade_wire::{Buffered, Location, Outcome, codec};

pub(crate) use alloc::share;
pub use alloc::{alloc, try_alloc};
pub(crate) use lent::Lent;

thread_local! {
    /// The namings of the value that was encoded last.
    static EXPORTS: RefCell<Vec<Export>> = const { RefCell::new(Vec::new()) };
}

/// Returns the function that runs the decoding of an argument with its buffers.
pub(crate) fn importing(buffers: &[SharedBuf]) -> impl Fn(&mut dyn FnMut()) {
    |decode| brigade_wire::shared::importing(buffers, decode)
}

/// Appends the buffers of a value to its encoding. `type_name` is the type of the value.
#[cold]
pub(crate) fn append(
    exported: Box<[SharedBuf]>,
    encoded: &mut Vec<u8>,
    limit: usize,
    type_name: &str,
) -> Result<(), String> {
    let exported: Vec<_> = exported.into_iter().map(alloc::in_shared_memory).collect();
    let list: Vec<_> = exported.iter().map(reference).collect();
    let room = limit.saturating_sub(encoded.len());
    buffers::append(encoded, &list, room).map_err(|error| {
        let error = codec::chain(&error);
        format!("a value of type {type_name} cannot be encoded: {error}")
    })?;
    EXPORTS.with_borrow_mut(|exports| exports.extend(exported.iter().map(SharedBuf::export)));
    Ok(())
}

/// Returns the buffer as a message to the host names it.
fn reference(buffer: &SharedBuf) -> Buffer<'_> {
    match buffer.place_for_host() {
        Place::Arguments { offset, length } => Buffer::Argument(location(offset, length)),
        Place::Results { offset, length, .. } if buffer.is_own() => {
            Buffer::Result(location(offset, length))
        }
        Place::Results { arena, offset, length } => {
            let file = File { inode: arena.inode, size: arena.length };
            Buffer::Foreign(file, location(offset, length))
        }
        _ => Buffer::Inline(buffer),
    }
}

fn location(offset: usize, length: usize) -> Location {
    Location { offset: offset as u64, length: length as u64 }
}

/// Returns the outcome of a task whose encoded value ends with a list of buffers. A large value is
/// stored in the arena, but the list stays in the message.
#[cold]
pub(crate) fn outcome<'a>(result: &'a [u8], results: Option<&ResultArena>) -> Outcome<'a> {
    // The next message is that of the outcome. If it cannot be sent, the worker ends.
    EXPORTS.take().into_iter().for_each(Export::sent);
    let length = buffers::split(result).map_or(0, |(encoded, _)| encoded.len());
    let (encoded, list) = result.split_at(length);
    let stored = results.filter(|_| length >= ARENA_THRESHOLD).and_then(|it| it.put(&[encoded]));
    let location = stored.map(|(offset, length)| location(offset, length));
    let payload = if location.is_some() { list } else { result };
    Outcome::Buffered(Box::new(Buffered { location, payload }))
}

/// Takes back what the message about a value would have named, after a panic.
#[cold]
pub(crate) fn undo_exports() {
    drop(EXPORTS.take());
}
