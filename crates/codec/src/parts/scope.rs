//! The parts of the values that a thread is encoding and decoding.
//!
//! Scopes nest: the inner one hides the outer one and restores it at its end, also by a panic.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};

use brigade_sys::numbers::{Numbers, SharedNumbers};

use crate::contiguous::Form;

/// The bytes in the place of a part.
pub(crate) type Mark = [u8; 16];

/// The vectors that become parts.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The least bytes of each.
    pub least: usize,
    /// The most bytes of all together.
    pub most: usize,
    /// The table has their addresses in this process, and not 0.
    pub has_addresses: bool,
}

/// Makes numbers of `length` bytes a part of the value that is being encoded, if they are large
/// enough. Returns the mark to serialize in their place.
pub(crate) fn add(length: usize, numbers: impl FnOnce() -> SharedNumbers) -> Option<Mark> {
    let Terms { least, most, .. } = TERMS.get()?;
    if !(*least..=*most).contains(&length) {
        return None;
    }
    let mut mark = Mark::default();
    for half in mark.chunks_exact_mut(size_of::<u64>()) {
        // Its keys are random.
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_le_bytes());
    }
    let added = Added { mark, part: numbers() };
    ADDED.with_borrow_mut(|all| all.push(added));
    COUNT.set(COUNT.get() + 1);
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
    /// The terms of the value that is being encoded. Many values enter and leave a scope, so this
    /// and the next are words that are never dropped.
    static TERMS: Cell<Option<&'static Terms>> = const { Cell::new(None) };
    /// The number of those below.
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
    outer: Option<&'static Terms>,
    start: usize,
}

impl Scope {
    /// Begins to encode a value, perhaps within another one. Returns `None` if the value can have
    /// no parts, as almost all small ones.
    #[inline]
    pub(crate) fn of<T: 'static>(terms: Option<&'static Terms>) -> Option<Self> {
        let may_have = std::mem::needs_drop::<T>() && Form::of::<T>() == Form::Other;
        let is_needed = may_have && (terms.is_some() || TERMS.get().is_some());
        is_needed.then(|| Self { outer: TERMS.replace(terms), start: COUNT.get() })
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        COUNT.get() == self.start
    }

    /// Takes the parts that were added meanwhile.
    #[cold]
    pub(super) fn take(&self) -> Vec<Added> {
        COUNT.set(self.start);
        ADDED.with_borrow_mut(|all| all.split_off(self.start))
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        TERMS.set(self.outer);
        if !self.is_empty() {
            drop(self.take());
        }
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
