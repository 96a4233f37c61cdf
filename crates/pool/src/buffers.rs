//! The shared buffers of arguments and values on the host.
//!
//! The host lends the buffers of an argument to the worker that runs the task: the argument has a
//! clone of each, until the task has its outcome. A worker that keeps some of them longer reports
//! that, and then the host has further clones until the worker reports their release, or dies.

use std::collections::HashMap;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, ResultView, WhenFull};
use brigade_wire::Location;
use brigade_wire::codec::CodecError;
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::segments::{self, Apart, Segment, Segments};
use brigade_wire::shared::{SharedBuf, SharedBufMut};

/// Buffers of the items of a chunk, by the index of the item, in order.
pub(crate) type ItemBuffers = Vec<(u32, SharedBuf)>;

/// Appends the list of an argument's segments to its encoding. Returns the buffers that the list
/// only refers to, which have to exist until the outcome.
#[cold]
pub(crate) fn append(
    exported: Box<[SharedBuf]>,
    parts: &[Apart],
    into: &mut Vec<u8>,
    room: usize,
    arena: Option<&Arc<ArgumentArena>>,
    type_name: &'static str,
) -> Result<Vec<SharedBuf>, CodecError> {
    let mut exported: Vec<_> =
        exported.into_iter().map(|buffer| in_shared_memory(buffer, arena)).collect();
    let apart = parts.iter().map(|part| Segment::Apart(*part));
    let list: Vec<_> = apart.chain(exported.iter().map(|buffer| named(buffer, arena))).collect();
    segments::append(into, &list, room)
        .map_err(|error| CodecError::Encode { type_name, source: error.into() })?;
    exported.retain(|buffer| !matches!(named(buffer, arena), Segment::Inline(_)));
    Ok(exported)
}

/// Copies a large buffer of this process's memory to where workers read it.
fn in_shared_memory(buffer: SharedBuf, arena: Option<&Arc<ArgumentArena>>) -> SharedBuf {
    let Some(arena) = arena.filter(|_| buffer.len() >= ARENA_THRESHOLD) else { return buffer };
    if buffer.name_for_worker(arena).is_some() {
        return buffer;
    }
    let Ok(mut copy) = SharedBufMut::in_arguments(arena, buffer.len(), WhenFull::Exceed) else {
        return buffer;
    };
    copy.copy_from_slice(&buffer);
    copy.freeze()
}

/// Returns the buffer as a message to a worker names it.
fn named<'a>(buffer: &'a SharedBuf, arena: Option<&Arc<ArgumentArena>>) -> Segment<'a> {
    let name = arena.and_then(|arena| buffer.name_for_worker(arena));
    name.unwrap_or(Segment::Inline(buffer))
}

/// The identity of a block: the inode of its arena (0 for that of arguments), offset and length.
pub(crate) type BlockKey = (u64, u64, u64);

fn key(buffer: &Segment<'_>) -> Option<BlockKey> {
    match *buffer {
        Segment::Argument(Location { offset, length }) => Some((0, offset, length)),
        Segment::Foreign(arena, Location { offset, length }) => Some((arena.inode, offset, length)),
        Segment::Inline(_) | Segment::Result(_) | Segment::Apart(_) => None,
    }
}

/// Returns the buffer among `lent` that a worker names.
pub(crate) fn find<'a>(
    mut lent: impl Iterator<Item = &'a SharedBuf>,
    wanted: BlockKey,
) -> Option<SharedBuf> {
    lent.find(|it| it.name().as_ref().and_then(key) == Some(wanted)).cloned()
}

/// The buffers that a worker keeps beyond the tasks that it got them with, and how often.
#[derive(Debug, Default)]
pub(crate) struct Kept(HashMap<BlockKey, (SharedBuf, usize)>);

impl Kept {
    /// Handles a worker's report that it keeps buffers of the task that finishes next.
    #[cold]
    ///
    /// `lent` returns a buffer of that task's argument.
    pub(crate) fn keep(
        &mut self,
        list: &[u8],
        lent: impl Fn(BlockKey) -> Option<SharedBuf>,
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

fn names(list: &[u8]) -> Result<impl Iterator<Item = Option<BlockKey>>, String> {
    let (_, list) = segments::split(list).map_err(|error| error.to_string())?;
    let mut names = list.map(|buffer| key(&buffer)).peekable();
    // Without an end, empty lists would occupy the host.
    if names.peek().is_some() { Ok(names) } else { Err(NOT_LENT.to_owned()) }
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
    /// Returns the buffers of a worker's message, and the numbers that are apart from the value.
    /// Returns an error if it names memory that is not the worker's own and was not lent to it.
    /// `lent` returns a buffer of the argument of the task that finishes next.
    #[cold]
    pub(crate) fn resolve(
        &self,
        list: Segments<'_>,
        lent: impl Fn(BlockKey) -> Option<SharedBuf>,
    ) -> Result<(Box<[SharedBuf]>, Vec<Apart>), String> {
        let (mut buffers, mut parts) = (Vec::new(), Vec::new());
        for segment in list {
            buffers.push(match segment {
                Segment::Inline(bytes) => SharedBuf::copy_of(bytes),
                Segment::Result(location) => {
                    self.loan(location).ok_or("named a shared buffer outside of its memory")?
                }
                Segment::Argument(_) | Segment::Foreign(..) => {
                    let wanted = key(&segment).ok_or(NOT_LENT)?;
                    let kept = self.kept.0.get(&wanted).map(|(buffer, _)| buffer.clone());
                    kept.or_else(|| lent(wanted)).ok_or(NOT_LENT)?
                }
                Segment::Apart(apart) => {
                    parts.push(apart);
                    continue;
                }
            });
        }
        Ok((buffers.into(), parts))
    }

    fn loan(&self, location: Location) -> Option<SharedBuf> {
        let (results, (offset, length)) = (self.results?, location.in_memory()?);
        let loan = results.loan_buffer(offset, length)?;
        Some(SharedBuf::from_loan(loan, results.terms().protection, self.copies))
    }
}
