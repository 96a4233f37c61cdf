//! The segments of tasks' arguments and values.
//!
//! The host lends the buffers of an argument to this worker until the task has ended. Those that
//! the task has kept (in a static, or on a thread) are reported before its outcome, and once more
//! when the last clone is gone.

mod alloc;
mod lent;

use std::cell::RefCell;

use brigade_sys::arena::ResultArena;
use brigade_sys::numbers::{Mark, SharedNumbers};
use brigade_wire::codec::parts::joined_length;
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::segments::{self, Apart, Segment};
use brigade_wire::shared::{Export, SharedBuf};
use brigade_wire::{Location, Outcome, Segmented, codec};

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

/// Appends the list of a value's segments to its encoding: its parts and its buffers. `type_name`
/// is the type of the value.
#[cold]
pub(crate) fn append(
    exported: Box<[SharedBuf]>,
    parts: &[(Mark, SharedNumbers)],
    encoded: &mut Vec<u8>,
    limit: usize,
    type_name: &str,
) -> Result<(), String> {
    let exported: Vec<_> = exported.into_iter().map(alloc::in_shared_memory).collect();
    let named = |buffer| SharedBuf::name_for_host(buffer).unwrap_or(Segment::Inline(buffer));
    let apart = parts.iter().map(|(mark, numbers)| Apart::of(*mark, numbers, true));
    let list: Vec<_> = apart.map(Segment::Apart).chain(exported.iter().map(named)).collect();
    let lengths = parts.iter().map(|(mark, part)| (*mark, part.as_bytes().len()));
    // Only the bytes of buffers count.
    let room = match exported.len() {
        0 => usize::MAX,
        _ => limit.saturating_sub(joined_length(encoded.len(), lengths)),
    };
    segments::append(encoded, &list, room).map_err(|error| {
        let error = codec::chain(&error);
        format!("a value of type {type_name} cannot be encoded: {error}")
    })?;
    EXPORTS.with_borrow_mut(|exports| exports.extend(exported.iter().map(SharedBuf::export)));
    Ok(())
}

/// Returns the outcome of a task whose encoded value ends with a list of segments. A large value is
/// stored in the arena, but the list stays in the message. `offer` is the block by which the parts
/// are offered.
#[cold]
pub(crate) fn outcome<'a>(
    result: &'a [u8],
    results: Option<&ResultArena>,
    offer: Option<u64>,
) -> Outcome<'a> {
    // The next message is that of the outcome. If it cannot be sent, the worker ends.
    EXPORTS.take().into_iter().for_each(Export::sent);
    let length = segments::split(result).map_or(0, |(encoded, _)| encoded.len());
    let (encoded, list) = result.split_at(length);
    let stored = results.filter(|_| length >= ARENA_THRESHOLD).and_then(|it| it.put(&[encoded]));
    let location = stored.map(|(offset, length)| Location::of(offset, length));
    let payload = if location.is_some() { list } else { result };
    Outcome::Segmented(Box::new(Segmented { location, offer, payload }))
}

/// Takes back what the message about a value would have named, after a panic.
#[cold]
pub(crate) fn undo_exports() {
    drop(EXPORTS.take());
}
