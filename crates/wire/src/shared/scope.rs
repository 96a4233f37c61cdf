//! The buffers of the message that a thread is encoding or decoding.
//!
//! A serializer has no room for a context, so the buffers are in a variable of the thread. Scopes
//! nest: the inner one hides the outer one and restores it at its end, also by a panic.

use std::cell::{Cell, RefCell};

use crate::shared::buf::SharedBuf;

/// The innermost [`exporting`] of a thread, or none.
///
/// It is one word: a processor stalls when it copies what was just written in smaller parts.
#[derive(Clone, Copy)]
struct Scope(usize);

impl Scope {
    const CLOSED: Self = Self(0);

    /// Returns a scope in which this number of buffers was exported.
    #[inline]
    const fn with(exported: usize) -> Self {
        Self(exported + 1)
    }

    /// Returns the number of buffers that were exported in it; `None` outside of any scope.
    #[inline]
    const fn exported(self) -> Option<usize> {
        self.0.checked_sub(1)
    }

    #[inline]
    fn is_empty(self) -> bool {
        self.0 <= Self::with(0).0
    }
}

thread_local! {
    /// Each task enters and leaves a scope, so this is a word that is never dropped.
    static SCOPE: Cell<Scope> = const { Cell::new(Scope::CLOSED) };
    /// The buffers of all scopes, those of the innermost one at the end.
    static EXPORTED: RefCell<Vec<SharedBuf>> = const { RefCell::new(Vec::new()) };
    static IMPORTABLE: RefCell<Option<Vec<SharedBuf>>> = const { RefCell::new(None) };
}

/// Runs `f`, which serializes. Returns its value and the whole buffers that it has serialized, each
/// of them once, in the order of their indices; `None` if there are none.
#[inline]
pub fn exporting<T>(f: impl FnOnce() -> T) -> (T, Option<Box<[SharedBuf]>>) {
    let _scope = Exporting(SCOPE.replace(Scope::with(0)));
    let value = f();
    // Almost always none. A `Vec` would be returned in memory, and moved right after.
    let buffers = if SCOPE.get().is_empty() { None } else { Some(take()) };
    (value, buffers)
}

/// Runs `f`, which deserializes. `buffers` are those of the message, in the order in which
/// [`exporting`] has returned them.
pub fn importing<T>(buffers: &[SharedBuf], f: impl FnOnce() -> T) -> T {
    let _scope = Importing(IMPORTABLE.replace(Some(buffers.to_vec())));
    f()
}

/// Adds the whole of a buffer to the message that is being encoded. Returns its index; `None`
/// outside of [`exporting`].
pub(crate) fn export(buffer: &SharedBuf) -> Option<u32> {
    let count = SCOPE.get().exported()?;
    EXPORTED.with_borrow_mut(|all| {
        let exported = &all[all.len() - count..];
        // The last ones first: parts of one buffer are often serialized one after the other.
        let known = exported.iter().rposition(|known| known.shares_memory(buffer));
        let index = known.unwrap_or_else(|| {
            all.push(buffer.to_whole());
            SCOPE.set(Scope::with(count + 1));
            count
        });
        u32::try_from(index).ok()
    })
}

/// Runs `f` with the buffers of the message that is being decoded; `None` outside of [`importing`].
pub(crate) fn imported<T>(f: impl FnOnce(&[SharedBuf]) -> T) -> Option<T> {
    IMPORTABLE.with_borrow(|buffers| buffers.as_deref().map(f))
}

/// Takes the buffers of the innermost scope.
#[cold]
fn take() -> Box<[SharedBuf]> {
    let exported = SCOPE.replace(Scope::with(0)).exported().unwrap_or(0);
    EXPORTED.with_borrow_mut(|all| all.split_off(all.len() - exported).into())
}

/// Returns to the outer scope when it is dropped.
struct Exporting(Scope);

impl Drop for Exporting {
    #[inline]
    fn drop(&mut self) {
        if !SCOPE.get().is_empty() {
            drop(take());
        }
        SCOPE.set(self.0);
    }
}

/// Returns to the buffers of the outer scope when it is dropped.
struct Importing(Option<Vec<SharedBuf>>);

impl Drop for Importing {
    fn drop(&mut self) {
        drop(IMPORTABLE.replace(self.0.take()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> SharedBuf {
        SharedBuf::copy_of(text.as_bytes())
    }

    #[test]
    fn each_memory_is_exported_once() {
        let (first, second) = (buffer("first"), buffer("second"));
        let (indices, buffers) = exporting(|| {
            [&first, &second.slice(..3), &first.slice(1..), &second, &second.slice(3..)].map(export)
        });
        assert_eq!(indices, [Some(0), Some(1), Some(0), Some(1), Some(1)]);
        assert_eq!(buffers.as_deref(), Some(&[first, second][..]));
    }

    #[test]
    fn an_inner_scope_restores_the_outer_one() {
        let ((), outer) = exporting(|| {
            export(&buffer("before"));
            let ((), inner) = exporting(|| assert_eq!(export(&buffer("inner")), Some(0)));
            assert_eq!(inner.map(|buffers| buffers.len()), Some(1));
            let panicked = std::panic::catch_unwind(|| {
                exporting(|| {
                    export(&buffer("lost"));
                    panic!("in the inner scope");
                })
            });
            panicked.expect_err("it panics");
            assert_eq!(export(&buffer("after")), Some(1));
        });
        assert_eq!(outer.as_deref(), Some(&[buffer("before"), buffer("after")][..]));
        assert_eq!(exporting(|| ()).1, None);
        assert_eq!(export(&buffer("outside")), None);

        let two = [buffer("one"), buffer("two")];
        importing(&two, || {
            importing(&[], || assert_eq!(imported(<[_]>::len), Some(0)));
            assert_eq!(imported(<[_]>::len), Some(2));
        });
        assert_eq!(imported(<[_]>::len), None);
    }
}
