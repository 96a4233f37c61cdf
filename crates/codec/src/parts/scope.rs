//! The parts of the values that a thread is encoding and decoding.
//!
//! Scopes nest: the inner one hides the outer one and restores it at its end, also by a panic.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};

use brigade_sys::numbers::{Numbers, SharedNumbers};

use crate::contiguous::Form;

/// The bytes in the place of a part.
pub(crate) type Mark = [u8; 16];

/// Packed vectors of fewer bytes are not worth a copy of their own.
const LEAST: usize = if cfg!(test) { 3 } else { 1 << 20 };

/// A value has no more parts.
pub(super) const MOST: usize = 64;

/// Makes numbers of `length` bytes a part of the value that is being encoded, if they are large
/// enough, and there is room. Returns the mark to serialize in their place.
pub(crate) fn add(length: usize, numbers: impl FnOnce() -> SharedNumbers) -> Option<Mark> {
    let (room, count) = (ROOM.get(), COUNT.get());
    if length < LEAST || length > room || count == MOST {
        return None;
    }
    ROOM.set(room - length);
    let mut mark = Mark::default();
    for half in mark.chunks_exact_mut(size_of::<u64>()) {
        // Its keys are random.
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    let added = Added { mark, part: numbers() };
    ADDED.with_borrow_mut(|all| all.push(added));
    COUNT.set(count + 1);
    Some(mark)
}

/// A part that was taken before.
pub(crate) struct Taken;

/// Takes the part whose mark this is out of the value that is being decoded. Returns `None` for
/// other bytes.
pub(crate) fn take(mark: &[u8]) -> Option<Result<Numbers, Taken>> {
    if mark.len() != size_of::<Mark>() {
        return None;
    }
    ARRIVED.with_borrow_mut(|all| {
        all.iter_mut().find(|(known, _)| known == mark).map(|(_, part)| part.take().ok_or(Taken))
    })
}

thread_local! {
    /// Bytes that more parts of the value that is being encoded may have. Many values enter and
    /// leave a scope, so this and the next are words that are never dropped.
    static ROOM: Cell<usize> = const { Cell::new(0) };
    /// The number of its parts.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// The parts of all values that are being encoded, those of the innermost one at the end.
    static ADDED: RefCell<Vec<Added>> = const { RefCell::new(Vec::new()) };
    /// The parts of the value that is being decoded.
    static ARRIVED: RefCell<Vec<(Mark, Option<Numbers>)>> = const { RefCell::new(Vec::new()) };
}

pub(super) struct Added {
    pub(super) mark: Mark,
    pub(super) part: SharedNumbers,
}

/// The time in which a value is encoded. It returns to that of the outer value when it is dropped,
/// also by a panic.
pub(crate) struct Scope {
    outer_room: usize,
    outer_count: usize,
}

impl Scope {
    /// Begins to encode a value, perhaps within another one, whose parts may have `room` bytes
    /// together. Returns `None` if the value can have no parts, as almost all small ones.
    #[inline]
    pub(crate) fn open<T: 'static>(room: usize) -> Option<Self> {
        let may_have = std::mem::needs_drop::<T>() && Form::of::<T>() == Form::Other;
        let is_needed = may_have && (room > 0 || ROOM.get() > 0);
        is_needed.then(|| Self { outer_room: ROOM.replace(room), outer_count: COUNT.replace(0) })
    }

    /// Returns `true` if the value has no parts so far.
    #[expect(clippy::unused_self, reason = "only the innermost scope may be asked")]
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        COUNT.get() == 0
    }

    /// Takes the parts.
    #[expect(clippy::unused_self, reason = "only the innermost scope may be asked")]
    #[cold]
    pub(super) fn take(&self) -> Vec<Added> {
        let count = COUNT.replace(0);
        ADDED.with_borrow_mut(|all| all.split_off(all.len() - count))
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

/// Runs `decode`, which decodes a value with these parts. Returns how many it has not taken, too.
pub(super) fn arriving<T>(
    parts: impl Iterator<Item = (Mark, Numbers)>,
    decode: impl FnOnce() -> T,
) -> (T, usize) {
    let parts = parts.map(|(mark, part)| (mark, Some(part))).collect();
    let _scope = Arrived(ARRIVED.replace(parts));
    let value = decode();
    (value, ARRIVED.with_borrow(|all| all.iter().filter(|(_, part)| part.is_some()).count()))
}

/// Returns to the outer value when it is dropped, also by a panic.
struct Arrived(Vec<(Mark, Option<Numbers>)>);

impl Drop for Arrived {
    fn drop(&mut self) {
        drop(ARRIVED.replace(std::mem::take(&mut self.0)));
    }
}
