//! The shared buffers of arguments and values on the host.
//!
//! The host lends the buffers of an argument to the worker that runs the task: the argument has a
//! clone of each, until the task has its outcome. A worker that keeps some of them longer reports
//! that, and then the host has further clones until the worker reports their release, or dies.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, ResultView, WhenFull};
use brigade_wire::buffers::{self, Buffer, Buffers, File};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::shared::{Place, SharedBuf, SharedBufMut};
use brigade_wire::{Location, MessageError};

/// Buffers of the items of a chunk, by the index of the item, in order.
pub(crate) type ItemBuffers = Vec<(u32, SharedBuf)>;

/// Appends the buffers of an argument to its encoding. Returns those that the list only refers to,
/// which have to exist until the outcome.
#[cold]
pub(crate) fn append(
    exported: Box<[SharedBuf]>,
    into: &mut Vec<u8>,
    room: usize,
    arena: Option<&Arc<ArgumentArena>>,
) -> Result<Vec<SharedBuf>, MessageError> {
    let mut exported: Vec<_> =
        exported.into_iter().map(|buffer| in_shared_memory(buffer, arena)).collect();
    let list: Vec<_> = exported.iter().map(|buffer| reference(buffer, arena)).collect();
    buffers::append(into, &list, room)?;
    exported.retain(|buffer| !matches!(reference(buffer, arena), Buffer::Inline(_)));
    Ok(exported)
}

/// Replaces references behind an argument by the bytes of those `buffers`, to which it refers in
/// this order, that the worker cannot read.
pub(crate) fn append_inline<'a>(
    list: Buffers<'_>,
    buffers: impl Iterator<Item = &'a SharedBuf>,
    mut can_read: impl FnMut(&SharedBuf) -> bool,
    into: &mut Vec<u8>,
    room: usize,
) -> Result<(), MessageError> {
    let mut buffers = buffers;
    let list: Vec<_> = list
        .map(|buffer| match buffer {
            Buffer::Inline(bytes) => Buffer::Inline(bytes),
            reference => match buffers.next() {
                Some(buffer) if !can_read(buffer) => Buffer::Inline(buffer),
                _ => reference,
            },
        })
        .collect();
    buffers::append(into, &list, room)
}

/// Copies a large buffer of this process's memory to where workers read it.
fn in_shared_memory(buffer: SharedBuf, arena: Option<&Arc<ArgumentArena>>) -> SharedBuf {
    let Some(arena) = arena.filter(|_| buffer.len() >= ARENA_THRESHOLD) else { return buffer };
    if buffer.place_for_worker(arena) != Place::Heap {
        return buffer;
    }
    let Ok(mut copy) = SharedBufMut::in_arguments(arena, buffer.len(), WhenFull::Exceed) else {
        return buffer;
    };
    copy.copy_from_slice(&buffer);
    copy.freeze()
}

/// Returns the buffer as a message to a worker names it.
fn reference<'a>(buffer: &'a SharedBuf, arena: Option<&Arc<ArgumentArena>>) -> Buffer<'a> {
    let place = arena.map_or(Place::Heap, |arena| buffer.place_for_worker(arena));
    named(place).unwrap_or(Buffer::Inline(buffer))
}

/// Returns the name of a place; `None` for the heap.
fn named(place: Place) -> Option<Buffer<'static>> {
    let location = |offset, length| Location { offset: offset as u64, length: length as u64 };
    match place {
        Place::Arguments { offset, length } => Some(Buffer::Argument(location(offset, length))),
        Place::Results { arena, offset, length } => {
            let file = File { inode: arena.inode, size: arena.length };
            Some(Buffer::Foreign(file, location(offset, length)))
        }
        _ => None,
    }
}

/// The identity of a block: the inode of its arena (0 for that of arguments), offset and length.
pub(crate) type Key = (u64, u64, u64);

fn key(buffer: &Buffer<'_>) -> Option<Key> {
    match *buffer {
        Buffer::Argument(Location { offset, length }) => Some((0, offset, length)),
        Buffer::Foreign(File { inode, .. }, Location { offset, length }) => {
            Some((inode, offset, length))
        }
        Buffer::Inline(_) | Buffer::Result(_) => None,
    }
}

/// Returns the buffer among `lent` that a worker names.
pub(crate) fn find<'a>(
    mut lent: impl Iterator<Item = &'a SharedBuf>,
    wanted: Key,
) -> Option<SharedBuf> {
    lent.find(|it| named(it.place()).as_ref().and_then(key) == Some(wanted)).cloned()
}

/// The buffers that a worker keeps beyond the tasks that it got them with, and how often.
#[derive(Debug, Default)]
pub(crate) struct Kept(HashMap<Key, (SharedBuf, usize)>);

impl Kept {
    /// Handles a worker's report that it keeps buffers of the task that finishes next.
    #[cold]
    ///
    /// `lent` returns a buffer of that task's argument.
    pub(crate) fn keep(
        &mut self,
        list: &[u8],
        lent: impl Fn(Key) -> Option<SharedBuf>,
    ) -> Result<(), String> {
        for buffer in names(list)? {
            let buffer = buffer.as_ref().and_then(|key| Some((*key, lent(*key)?)));
            let (key, buffer) = buffer.ok_or(NOT_LENT)?;
            self.0.entry(key).or_insert((buffer, 0)).1 += 1;
        }
        Ok(())
    }

    /// Handles a worker's report that it no longer uses buffers.
    #[cold]
    pub(crate) fn release(&mut self, list: &[u8]) -> Result<(), String> {
        for key in names(list)? {
            let key = key.ok_or(NOT_LENT)?;
            let (_, count) = self.0.get_mut(&key).ok_or(NOT_LENT)?;
            *count -= 1;
            if *count == 0 {
                self.0.remove(&key);
            }
        }
        Ok(())
    }
}

fn names(list: &[u8]) -> Result<impl Iterator<Item = Option<Key>>, String> {
    let (_, list) = buffers::split(list).map_err(|error| error.to_string())?;
    Ok(list.map(|buffer| key(&buffer)))
}

const NOT_LENT: &str = "named a shared buffer that was not lent to it";

/// The memory that a worker's message may name.
#[derive(Clone, Copy)]
pub(crate) struct Reachable<'a> {
    /// The worker's own arena.
    pub(crate) results: Option<&'a Arc<ResultView>>,
    pub(crate) kept: &'a Kept,
    /// The arena for copies that the pool's protection demands.
    pub(crate) copies: Option<&'a Arc<ArgumentArena>>,
}

impl Reachable<'_> {
    /// Returns the buffers of a worker's message. Returns an error if it names memory that is not
    /// the worker's own and was not lent to it. `lent` returns a buffer of the argument of the task
    /// that finishes next.
    #[cold]
    pub(crate) fn resolve(
        &self,
        list: Buffers<'_>,
        lent: impl Fn(Key) -> Option<SharedBuf>,
    ) -> Result<Box<[SharedBuf]>, String> {
        list.map(|buffer| match buffer {
            Buffer::Inline(bytes) => Ok(SharedBuf::copy_of(bytes)),
            Buffer::Result(location) => self
                .loan(location)
                .ok_or_else(|| "named a shared buffer outside of its memory".to_owned()),
            Buffer::Argument(_) | Buffer::Foreign(..) => {
                let wanted = key(&buffer).ok_or(NOT_LENT)?;
                let kept = self.kept.0.get(&wanted).map(|(buffer, _)| buffer.clone());
                Ok(kept.or_else(|| lent(wanted)).ok_or(NOT_LENT)?)
            }
        })
        .collect()
    }

    fn loan(&self, Location { offset, length }: Location) -> Option<SharedBuf> {
        let results = self.results?;
        let loan = results.loan_buffer(offset.try_into().ok()?, length.try_into().ok()?)?;
        Some(SharedBuf::from_loan(loan, results.terms().protection, self.copies))
    }
}
