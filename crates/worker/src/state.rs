//! Holds the values that the initializer and `preload` returned, for the tasks of this worker.

use std::any::Any;
use std::cell::Cell;
use std::sync::OnceLock;

use crate::context;

thread_local! {
    static STATE: Cell<Option<&'static dyn Any>> = const { Cell::new(None) };
}

/// Returns the value that the pool's initializer returned in this worker.
///
/// Returns `None` if the value has another type, on any thread other than the one that runs tasks
/// (so that the type need not be `Sync`), if there is no initializer, and outside a worker. The
/// value lives until the process ends and is not dropped. Cleanup that must happen at the end
/// belongs in a finalizer.
pub fn state<T: 'static>() -> Option<&'static T> {
    // Thread-local storage is gone on a thread that is ending.
    STATE.try_with(Cell::get).ok().flatten()?.downcast_ref()
}

type Preloaded = &'static (dyn Any + Send + Sync);

static PRELOADED: OnceLock<Preloaded> = OnceLock::new();

thread_local! {
    /// The value of a worker that is a thread.
    static PRELOADED_HERE: Cell<Option<Preloaded>> = const { Cell::new(None) };
}

/// Returns the value that the pool's `preload` returned, in any thread of a worker.
///
/// All workers share its memory until they write to it. Returns `None` if the value has another
/// type, if the pool has no `preload`, and outside a worker. With `in_process`, each worker has a
/// value of its own, and threads that tasks have started get that of the first worker.
pub fn preloaded<T: Send + Sync + 'static>() -> Option<&'static T> {
    let here = PRELOADED_HERE.try_with(Cell::get).ok().flatten();
    here.or(PRELOADED.get().copied())?.downcast_ref()
}

/// Sets the value of `preload`.
pub(crate) fn set_preloaded<T: Send + Sync + 'static>(value: T) {
    let value = Box::leak(Box::new(value));
    if context::is_worker_thread() {
        PRELOADED_HERE.set(Some(value));
    }
    // It is called once, in the fork server or in the worker.
    let _ = PRELOADED.set(value);
}

/// Sets the state of this thread.
pub(crate) fn set<T: 'static>(value: T) {
    STATE.set(Some(Box::leak(Box::new(value))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_visible_only_to_its_thread_and_as_its_type() {
        assert_eq!(state::<u32>(), None);
        set(7_u32);
        assert_eq!((state::<u32>(), state::<i32>()), (Some(&7), None));
        let elsewhere = std::thread::spawn(|| state::<u32>().copied());
        assert_eq!(elsewhere.join().expect("no panic"), None);
    }
}
