//! What a worker's initializer has made, for the tasks that come after it.

use std::any::Any;
use std::cell::Cell;

thread_local! {
    static STATE: Cell<Option<&'static dyn Any>> = const { Cell::new(None) };
}

/// The value that the pool's initializer has returned in this worker.
///
/// `None` for another type, on another thread than the one that runs tasks (so the type need not be `Sync`), without an
/// initializer and outside a worker. The value lives until the process ends and is not dropped; what must happen then
/// belongs into a finalizer.
pub fn state<T: 'static>() -> Option<&'static T> {
    // A thread that is ending has none.
    STATE.try_with(Cell::get).ok().flatten()?.downcast_ref()
}

/// Makes `value` the state of this thread.
pub(crate) fn set<T: 'static>(value: T) {
    STATE.set(Some(Box::leak(Box::new(value))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_made_it_sees_it_and_only_as_its_type() {
        assert_eq!(state::<u32>(), None);
        set(7_u32);
        assert_eq!((state::<u32>(), state::<i32>()), (Some(&7), None));
        let elsewhere = std::thread::spawn(|| state::<u32>().copied());
        assert_eq!(elsewhere.join().expect("no panic"), None);
    }
}
