//! The buffers of the message that a thread is encoding or decoding.
//!
//! A serializer has no room for a context, so the buffers are in a variable of the thread. Scopes
//! nest: the inner one hides the outer one and restores it at its end, also by a panic.

use std::cell::RefCell;
use std::thread::LocalKey;

use crate::shared::SharedBuf;

type Scope = RefCell<Option<Vec<SharedBuf>>>;

thread_local! {
    static EXPORTED: Scope = const { RefCell::new(None) };
    static IMPORTABLE: Scope = const { RefCell::new(None) };
}

/// Runs `f`, which serializes. Returns its value and the whole buffers that it has serialized, each
/// of them once, in the order of their indices.
pub fn exporting<T>(f: impl FnOnce() -> T) -> (T, Vec<SharedBuf>) {
    let mut inner = Inner::enter(&EXPORTED, Vec::new());
    let value = f();
    (value, inner.leave())
}

/// Runs `f`, which deserializes. `buffers` are those of the message, in the order in which
/// [`exporting`] has returned them.
pub fn importing<T>(buffers: &[SharedBuf], f: impl FnOnce() -> T) -> T {
    let _inner = Inner::enter(&IMPORTABLE, buffers.to_vec());
    f()
}

/// Adds the whole of a buffer to the message that is being encoded. Returns its index; `None`
/// outside of [`exporting`].
pub(crate) fn export(buffer: &SharedBuf) -> Option<u32> {
    EXPORTED.with_borrow_mut(|exported| {
        let exported = exported.as_mut()?;
        // The last ones first: parts of one buffer are often serialized one after the other.
        let known = exported.iter().rposition(|known| known.shares_memory(buffer));
        let index = known.unwrap_or_else(|| {
            exported.push(buffer.to_whole());
            exported.len() - 1
        });
        u32::try_from(index).ok()
    })
}

/// Runs `f` with the buffers of the message that is being decoded; `None` outside of [`importing`].
pub(crate) fn imported<T>(f: impl FnOnce(&[SharedBuf]) -> T) -> Option<T> {
    IMPORTABLE.with_borrow(|buffers| buffers.as_deref().map(f))
}

/// A scope that ends when it is dropped.
struct Inner {
    scope: &'static LocalKey<Scope>,
    outer: Option<Vec<SharedBuf>>,
    left: bool,
}

impl Inner {
    fn enter(scope: &'static LocalKey<Scope>, buffers: Vec<SharedBuf>) -> Self {
        Self { scope, outer: scope.replace(Some(buffers)), left: false }
    }

    fn leave(&mut self) -> Vec<SharedBuf> {
        if std::mem::replace(&mut self.left, true) {
            return Vec::new();
        }
        self.scope.replace(self.outer.take()).unwrap_or_default()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.leave();
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
        assert_eq!(buffers, [first, second]);
    }

    #[test]
    fn an_inner_scope_restores_the_outer_one() {
        let ((), outer) = exporting(|| {
            export(&buffer("before"));
            let ((), inner) = exporting(|| assert_eq!(export(&buffer("inner")), Some(0)));
            assert_eq!(inner.len(), 1);
            let panicked = std::panic::catch_unwind(|| {
                exporting(|| {
                    export(&buffer("lost"));
                    panic!("in the inner scope");
                })
            });
            panicked.expect_err("it panics");
            assert_eq!(export(&buffer("after")), Some(1));
        });
        assert_eq!(outer, [buffer("before"), buffer("after")]);
        assert_eq!(export(&buffer("outside")), None);

        let two = [buffer("one"), buffer("two")];
        importing(&two, || {
            importing(&[], || assert_eq!(imported(<[_]>::len), Some(0)));
            assert_eq!(imported(<[_]>::len), Some(2));
        });
        assert_eq!(imported(<[_]>::len), None);
    }
}
