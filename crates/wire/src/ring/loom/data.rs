//! Checks every interleaving of a producer that writes and a consumer that reads.

use loom::thread;

use super::model::{CAPACITY, ring};
use crate::ring::producer::Pushed;

/// Returns a message of `length` bytes, each different from its neighbors and from those of another
/// number.
fn message(number: u8, length: u8) -> Vec<u8> {
    (0..length).map(|index| number.wrapping_mul(40).wrapping_add(index + 1)).collect()
}

#[test]
fn published_messages_are_read_whole_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring();
        let producer = thread::spawn(move || {
            producer.send(&message(1, 12), 0);
            producer.send(&message(2, 5), 0);
        });
        // Does not wait for messages, so that loom tries a look at every moment.
        let mut taken: Vec<_> = (0..2).filter_map(|_| consumer.take()).collect();
        producer.join().expect("the producer");
        taken.extend(std::iter::from_fn(|| consumer.take()));
        assert_eq!(taken, [message(1, 12), message(2, 5)]);
    });
}

/// The second message may be written to the copy while the consumer reads the first one there.
#[test]
fn a_copy_is_read_whole_or_not_at_all() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring();
        producer.send(&message(1, 9), 0);
        let producer = thread::spawn(move || producer.send(&message(2, 9), 0));
        let mut taken: Vec<_> = consumer.take().into_iter().collect();
        producer.join().expect("the producer");
        taken.extend(std::iter::from_fn(|| consumer.take()));
        assert_eq!(taken, [message(1, 9), message(2, 9)]);
    });
}

#[test]
fn a_message_that_wraps_around_is_read_whole() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring();
        // 14 of 16 words: the next message has its frame and its length at the end and its bytes at
        // the beginning.
        for _ in 0..2 {
            producer.send(&message(0, 10), 0);
            assert_eq!(consumer.take(), Some(message(0, 10)));
        }
        for _ in 0..2 {
            producer.send(&message(0, 5), 0);
            assert_eq!(consumer.take(), Some(message(0, 5)));
        }
        let producer = thread::spawn(move || producer.send(&message(1, 12), 0));
        let early = consumer.take();
        producer.join().expect("the producer");
        assert_eq!(early.or_else(|| consumer.take()), Some(message(1, 12)));
    });
}

#[test]
fn a_producer_that_finds_the_ring_full_continues_later() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring();
        for number in 0..4 {
            producer.send(&message(number, 9), 0);
        }
        assert_eq!(producer.push(&message(4, 9), 0), Pushed::Full);
        let producer = thread::spawn(move || producer.send(&message(4, 9), 0));
        for number in 0..5 {
            assert_eq!(consumer.wait(), message(number, 9));
        }
        producer.join().expect("the producer");
        assert_eq!(consumer.take(), None);
    });
}

#[test]
fn a_message_longer_than_the_ring_comes_in_fragments() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring();
        let long = message(1, 178);
        assert!(long.len() > CAPACITY * 8);
        // All but the last two fragments, which find the ring full again.
        let mut offset = 0;
        while let Pushed::UpTo(end) = producer.push(&long, offset) {
            offset = end;
        }
        assert_eq!(consumer.take(), None);
        while let Pushed::UpTo(end) = producer.push(&long, offset) {
            offset = end;
        }
        assert_eq!(offset, 160);
        let producer = thread::spawn(move || producer.send(&message(1, 178), offset));
        assert_eq!(consumer.wait(), long);
        producer.join().expect("the producer");
    });
}

#[test]
fn a_killed_producer_leaves_a_whole_fragment_or_none() {
    // Frame, length and two words of data; twice the end of the copy, its frame and all of its
    // words; then the head.
    const STORES: usize = 13;
    for stores in 0..=STORES {
        loom::model(move || {
            let (mut producer, mut consumer) = ring();
            producer.send(&message(1, 5), 0);
            producer.let_live(stores);
            let producer = thread::spawn(move || producer.send(&message(2, 12), 0));
            assert_eq!(consumer.take(), Some(message(1, 5)));
            let early = consumer.take();
            producer.join().expect("the producer");
            let whole = early.or_else(|| consumer.take());
            assert_eq!(whole, (stores == STORES).then(|| message(2, 12)));
            assert_eq!(consumer.take(), None);
            assert!(!consumer.is_in_the_middle());
        });
    }
}

#[test]
fn a_killed_producer_leaves_whole_short_items() {
    // For each of two items a frame, a word of data, and the head.
    const STORES: usize = 6;
    for stores in 0..=STORES {
        loom::model(move || {
            let (mut producer, mut consumer) = ring();
            producer.let_live(stores);
            let producer = thread::spawn(move || {
                producer.send_item(0, &[1, 2]);
                producer.send_item(1, &[3]);
            });
            let mut taken = consumer.take_items(0);
            producer.join().expect("the producer");
            let next = u32::from(!taken.is_empty()) + u32::from(taken.len() > 3);
            taken.extend(consumer.take_items(next));
            let all = [2, 1, 2, 1, 3];
            let whole = [0, 3, 5][stores / 3];
            assert_eq!(taken, all[..whole]);
        });
    }
}

/// The host has more than there was room for, announces that and looks once more, as
/// `HostEnd::send` does; the worker has taken everything and checks for more before it sleeps, as
/// `WorkerReceiver::receive` does.
#[test]
fn the_consumer_asks_for_more_or_the_producer_sees_room() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring();
        for number in 0..4 {
            producer.send(&message(number, 9), 0);
        }
        let producer = thread::spawn(move || {
            producer.set_more();
            producer.push(&message(4, 9), 0) != Pushed::Full
        });
        let mut taken = 0;
        while consumer.take().is_some() {
            taken += 1;
        }
        let asks = taken == 5 || consumer.more_is_waiting();
        let sent = producer.join().expect("the producer");
        assert!(asks || sent, "the rest of a message waits forever");
    });
}
