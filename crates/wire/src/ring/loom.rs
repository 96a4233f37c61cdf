//! Checks every interleaving of a side that is about to sleep and a side that publishes; `data`
//! checks those of writing and reading.

mod data;
mod model;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

use super::bell::{ASLEEP, AWAKE};

/// The steps of [`Bell::sleep_unless`](super::Bell::sleep_unless) up to the sleep, and those of
/// publishing and [`Bell::ring`](super::Bell::ring). The sleeper would be woken if the publisher
/// has won the swap.
#[test]
fn a_side_that_sleeps_is_woken_or_the_word_has_changed() {
    loom::model(|| {
        let (head, bell) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(AWAKE)));
        let publisher = {
            let (head, bell) = (Arc::clone(&head), Arc::clone(&bell));
            thread::spawn(move || {
                head.store(1, Ordering::Release);
                fence(Ordering::SeqCst);
                bell.load(Ordering::Relaxed) == ASLEEP
                    && bell.swap(AWAKE, Ordering::SeqCst) == ASLEEP
            })
        };
        bell.store(ASLEEP, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let sleeps = head.load(Ordering::Acquire) == 0;
        let rung = publisher.join().expect("the publisher");
        assert!(!sleeps || rung, "it sleeps and nobody rings");
        assert!(
            !rung || bell.load(Ordering::Relaxed) == AWAKE,
            "it was rung and the kernel lets it sleep"
        );
    });
}

/// A host that sets the listener and then looks, against a worker that publishes and then reads the
/// listener.
#[test]
fn a_message_is_seen_by_the_last_look_or_rung() {
    loom::model(|| {
        let (head, listener) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let worker = {
            let (head, listener) = (Arc::clone(&head), Arc::clone(&listener));
            thread::spawn(move || {
                head.store(1, Ordering::Release);
                fence(Ordering::SeqCst);
                listener.load(Ordering::Relaxed) != 0
            })
        };
        listener.store(2, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let seen = head.load(Ordering::Acquire) == 1;
        let rung = worker.join().expect("the worker");
        assert!(seen || rung, "the host misses a message");
    });
}
