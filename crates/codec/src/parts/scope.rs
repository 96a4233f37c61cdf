//! The parts of the values that a thread is encoding and decoding.
//!
//! Values nest: the inner one hides the parts of the outer one and restores them at its end, also
//! by a panic. The variables have no destructors, so values can be encoded at the end of a thread,
//! too. The vectors are empty, and own no memory, between the values with parts.

use std::cell::{Cell, RefCell};
use std::mem::{ManuallyDrop, take};

use brigade_sys::numbers::{Mark, Numbers, SharedNumbers};
use brigade_sys::random;

use super::{MARK_OF_END, MAX_PARTS};
use crate::contiguous::Form;

/// Packed vectors of fewer bytes are not worth a copy of their own.
#[cfg(not(test))]
const MIN_PART: usize = 1 << 20;
#[cfg(test)]
const MIN_PART: usize = 3;

thread_local! {
    /// Bytes that more parts of the value that is being encoded may have.
    static ROOM: Cell<usize> = const { Cell::new(0) };
    /// The number of its parts.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// The parts of all values that are being encoded, those of the innermost one at the end.
    static ADDED: RefCell<ManuallyDrop<Vec<(Mark, SharedNumbers)>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
    /// The value that is being decoded has parts.
    static HAS_ARRIVED: Cell<bool> = const { Cell::new(false) };
    /// Its parts.
    static ARRIVED: RefCell<ManuallyDrop<Vec<Arrived>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// Makes numbers of `length` bytes a part of the value that is being encoded, if they are large
/// enough, and there is room. Returns the mark to serialize in their place.
pub(crate) fn add(length: usize, numbers: impl FnOnce() -> SharedNumbers) -> Option<Mark> {
    let (room, count) = (ROOM.get(), COUNT.get());
    if length < MIN_PART || length > room || count == MAX_PARTS {
        return None;
    }
    let mark = random::bytes().ok().filter(|mark| *mark != MARK_OF_END)?;
    let added = (mark, numbers());
    ADDED.with_borrow_mut(|all| all.push(added));
    ROOM.set(room - length);
    COUNT.set(count + 1);
    Some(mark)
}

/// Returns `true` if packed vectors may become parts of the value that is being encoded.
#[inline]
pub(crate) fn is_open() -> bool {
    ROOM.get() > 0
}

/// Returns `true` if values of the type may have parts, as few small ones.
#[inline]
pub(super) fn may_have_parts<T: 'static>() -> bool {
    std::mem::needs_drop::<T>() && Form::of::<T>() == Form::Other
}

/// The time in which a value is encoded, perhaps within another one.
pub(crate) struct Scope {
    outer_room: usize,
    outer_count: usize,
}

impl Scope {
    /// Begins to encode a value whose parts may have `room` bytes together.
    #[inline]
    pub(crate) fn open(room: usize) -> Self {
        Self { outer_room: ROOM.replace(room), outer_count: COUNT.replace(0) }
    }

    /// Returns `true` if the value has no parts so far.
    #[expect(clippy::unused_self, reason = "only the innermost value may be asked")]
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        COUNT.get() == 0
    }

    /// Takes the parts.
    #[expect(clippy::unused_self, reason = "only the innermost value may be asked")]
    #[cold]
    pub(super) fn take(&self) -> Vec<(Mark, SharedNumbers)> {
        let count = COUNT.replace(0);
        ADDED.with_borrow_mut(|all| {
            let start = all.len() - count;
            if start == 0 { take(&mut **all) } else { all.split_off(start) }
        })
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if !self.is_empty() {
            drop(self.take());
        }
        ROOM.set(self.outer_room);
        COUNT.set(self.outer_count);
    }
}

/// A part of a value that is being decoded.
struct Arrived {
    mark: Mark,
    part: Option<Numbers>,
    /// Number of times that the value has asked for it.
    taken: usize,
}

/// Takes the part whose mark this is out of the value that is being decoded. Returns `None` for
/// other bytes. A part that was taken before is empty, so that a value that could not be decoded
/// can be decoded again to find out why.
pub(crate) fn take_part(mark: &[u8]) -> Option<Numbers> {
    if !HAS_ARRIVED.get() || mark.len() != size_of::<Mark>() {
        return None;
    }
    ARRIVED.with_borrow_mut(|all| {
        let arrived = all.iter_mut().find(|arrived| arrived.mark == mark)?;
        arrived.taken += 1;
        Some(arrived.part.take().unwrap_or_default())
    })
}

/// Returns the number of parts that the value which is being decoded has not taken once.
pub(super) fn untaken() -> usize {
    ARRIVED.with_borrow(|all| all.iter().filter(|arrived| arrived.taken != 1).count())
}

/// Returns `true` if the value that is being decoded has parts.
#[inline]
pub(crate) fn have_arrived() -> bool {
    HAS_ARRIVED.get()
}

/// The parts of the outer value, which return when this is dropped.
pub(crate) struct Outer(Vec<Arrived>);

impl Outer {
    /// Begins to decode a value with these parts.
    pub(super) fn hidden_by(parts: impl Iterator<Item = (Mark, Numbers)>) -> Self {
        let arrived = |(mark, part)| Arrived { mark, part: Some(part), taken: 0 };
        Self(replace(parts.map(arrived).collect()))
    }

    /// Begins to decode a value without parts.
    pub(crate) fn hidden() -> Self {
        Self(replace(Vec::new()))
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        drop(replace(take(&mut self.0)));
    }
}

fn replace(parts: Vec<Arrived>) -> Vec<Arrived> {
    HAS_ARRIVED.set(!parts.is_empty());
    ARRIVED.with_borrow_mut(|all| std::mem::replace(&mut **all, parts))
}
