//! Checks every interleaving of a worker that writes, exports and reuses a block and a host that
//! reads and releases it.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::sync::mpsc::{Receiver, channel};
use loom::thread;

use super::{BlockCounters, ReleaseBell, Word, release};

impl Word for AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    fn add(&self, value: u64, ordering: Ordering) {
        self.fetch_add(value, ordering);
    }

    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}

/// One block with its words.
struct Arena {
    exported: AtomicU64,
    released: AtomicU64,
    waiting: AtomicU64,
    rings: AtomicU64,
    bytes: UnsafeCell<u64>,
}

impl Arena {
    fn new() -> Arc<Self> {
        let word = || AtomicU64::new(0);
        // The host's counter has some value that the block before has left.
        let released = AtomicU64::new(u64::MAX);
        let (exported, waiting, rings) = (word(), word(), word());
        Arc::new(Self { exported, released, waiting, rings, bytes: UnsafeCell::new(0) })
    }

    fn counters(&self) -> BlockCounters<'_, AtomicU64> {
        BlockCounters { exported: &self.exported, released: &self.released }
    }

    fn bell(&self) -> ReleaseBell<'_, AtomicU64> {
        ReleaseBell { waiting: &self.waiting, rings: &self.rings }
    }

    fn write(&self, value: u64) {
        // SAFETY: the model reports an access at the same time; that is what it checks.
        self.bytes.with_mut(|bytes| unsafe { *bytes = value });
    }

    fn read(&self) -> u64 {
        // SAFETY: see above.
        self.bytes.with(|bytes| unsafe { *bytes })
    }
}

/// The host: reads the block once for each message and releases it.
fn host(arena: &Arena, messages: &Receiver<u64>, count: usize) {
    for _ in 0..count {
        let expected = messages.recv().expect("a message");
        assert_eq!(arena.read(), expected, "the bytes changed while they were lent");
        release(&arena.released);
        let _ = arena.bell().ring();
    }
}

#[test]
fn a_block_is_reused_only_after_every_release() {
    loom::model(|| {
        let arena = Arena::new();
        let (sender, messages) = channel();
        let reader = {
            let arena = Arc::clone(&arena);
            thread::spawn(move || host(&arena, &messages, 2))
        };
        arena.counters().begin();
        arena.write(1);
        for _ in 0..2 {
            arena.counters().export();
            sender.send(1).expect("the host listens");
        }
        // A message that is not sent leaves no trace.
        arena.counters().export();
        arena.counters().undo_export();
        if arena.counters().is_released() {
            arena.counters().begin();
            arena.write(2);
        }
        reader.join().expect("the host");
        assert!(arena.counters().is_released(), "a release is lost");
    });
}

#[test]
fn a_worker_that_waits_does_not_miss_the_release() {
    loom::model(|| {
        let arena = Arena::new();
        let (sender, messages) = channel();
        arena.counters().begin();
        arena.write(1);
        arena.counters().export();
        sender.send(1).expect("the host listens");
        let reader = {
            let arena = Arc::clone(&arena);
            thread::spawn(move || host(&arena, &messages, 1))
        };
        arena.bell().announce();
        let seen = arena.bell().seen();
        if !arena.counters().is_released() {
            // The model fails if this never ends.
            while arena.bell().seen() == seen {
                thread::yield_now();
            }
            assert!(arena.counters().is_released(), "it was woken for nothing");
        }
        arena.write(2);
        arena.bell().withdraw();
        reader.join().expect("the host");
    });
}
