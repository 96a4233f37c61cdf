//! Checks every interleaving of owners that change a shared value and drop it.

use std::sync::atomic::Ordering;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::count::{Count, ONE, Word};
use super::lock::{FREE, Lock};

/// A word at which threads sleep as at a futex: they compare and fall asleep in one step.
struct Slept {
    word: AtomicU32,
    bucket: Mutex<()>,
    woken: Condvar,
}

impl Slept {
    fn new(value: u32) -> Self {
        Self { word: AtomicU32::new(value), bucket: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Word for Slept {
    fn load(&self, ordering: Ordering) -> u32 {
        self.word.load(ordering)
    }

    fn store(&self, value: u32, ordering: Ordering) {
        self.word.store(value, ordering);
    }

    fn swap(&self, value: u32, ordering: Ordering) -> u32 {
        self.word.swap(value, ordering)
    }

    fn replace_zero(&self, value: u32, ordering: Ordering) -> bool {
        self.word.compare_exchange(0, value, ordering, Ordering::Relaxed).is_ok()
    }

    fn add(&self, value: u32, ordering: Ordering) -> u32 {
        self.word.fetch_add(value, ordering)
    }

    fn fence(ordering: Ordering) {
        fence(ordering);
    }

    fn wait(&self, value: u32) {
        let bucket = self.bucket.lock().unwrap();
        if self.word.load(Ordering::Relaxed) == value {
            drop(self.woken.wait(bucket).unwrap());
        }
    }

    fn wake(&self) {
        let _bucket = self.bucket.lock().unwrap();
        self.woken.notify_one();
    }
}

/// The words of a value and its content. Loom reports an access at the same time as another.
struct Model {
    count: Slept,
    lock: Slept,
    content: UnsafeCell<u32>,
}

/// Has other threads than the first run `run`, each as an owner, and then the first one.
fn run(threads: u32, run: fn(&Model)) {
    let (count, lock) = (Slept::new(ONE), Slept::new(FREE));
    let model = Arc::new(Model { count, lock, content: UnsafeCell::new(0) });
    let others: Vec<_> = (1..threads)
        .map(|_| {
            assert!(Count(&model.count).add_to_exclusive() || Count(&model.count).add());
            let model = Arc::clone(&model);
            thread::spawn(move || run(&model))
        })
        .collect();
    run(&model);
    for other in others {
        other.join().unwrap();
    }
    // SAFETY: all other threads have ended.
    assert_eq!(model.content.with(|content| unsafe { *content }), DROPPED);
}

const DROPPED: u32 = 1000;

fn change(model: &Model) {
    Lock(&model.lock).lock();
    // SAFETY: the lock is held; otherwise loom reports it.
    model.content.with_mut(|content| unsafe { *content += 1 });
    Lock(&model.lock).unlock();
}

fn leave(model: &Model, changes: u32) {
    if Count(&model.count).is_one() || Count(&model.count).subtract() {
        // SAFETY: this was the last owner; otherwise loom reports it.
        model.content.with_mut(|content| unsafe {
            assert_eq!(*content, changes);
            *content = DROPPED;
        });
    }
}

#[test]
fn two_owners_change_a_value_in_turn_and_the_last_drops_it() {
    loom::model(|| {
        run(2, |model| {
            change(model);
            leave(model, 2);
        });
    });
}

#[test]
fn no_thread_sleeps_at_a_free_lock() {
    loom::model(|| {
        run(3, |model| {
            change(model);
            leave(model, 3);
        });
    });
}
