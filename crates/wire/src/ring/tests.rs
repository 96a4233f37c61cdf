//! Messages arrive unchanged; whatever the other side writes, nothing panics and no memory grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use brigade_sys::segment::Segment;
use proptest::prelude::*;

use super::*;
use crate::items;
use crate::link::LinkError;

const CAPACITY: usize = 64;

fn ring(limit: usize) -> (Producer, Consumer, Arc<Segment>) {
    let segment = Arc::new(Segment::create("test", words(CAPACITY)).expect("a segment"));
    let region = Region::new(&segment, 0, words(CAPACITY));
    (Producer::new(region.clone()), Consumer::new(region, limit), segment)
}

/// Returns the next message, if there is one.
fn pop(consumer: &mut Consumer) -> Result<Option<&[u8]>, LinkError> {
    Ok(if consumer.advance()? { Some(consumer.message()) } else { None })
}

/// Sends a message and reads on the other side whenever the ring is full.
fn carry(producer: &mut Producer, consumer: &mut Consumer, head: &[u8], payload: &[u8]) -> Vec<u8> {
    let (total, mut offset) = (head.len() + payload.len(), 0);
    loop {
        match producer.push(head, payload, offset).expect("an honest consumer") {
            Pushed::UpTo(end) => offset = end,
            Pushed::Full => assert!(offset < total, "full and complete"),
        }
        if let Some(message) = pop(consumer).expect("an honest producer") {
            return message.to_vec();
        }
    }
}

proptest! {
    #[test]
    fn messages_of_any_size_arrive_unchanged(
        messages in proptest::collection::vec((
            proptest::collection::vec(any::<u8>(), 1..40), proptest::collection::vec(any::<u8>(), 0..2000)
        ), 1..20)
    ) {
        let (mut producer, mut consumer, _) = ring(4096);
        for (head, payload) in &messages {
            let message = carry(&mut producer, &mut consumer, head, payload);
            prop_assert_eq!(message, [head.as_slice(), payload].concat());
        }
        prop_assert!(!consumer.has_more());
    }

    #[test]
    fn several_messages_wait_in_order_until_the_ring_is_full(sizes in proptest::collection::vec(0..60_usize, 1..60)) {
        let (mut producer, mut consumer, _) = ring(4096);
        let mut waiting = std::collections::VecDeque::new();
        for (number, size) in sizes.into_iter().enumerate() {
            let message = vec![u8::try_from(number).expect("few"); size + 1];
            while producer.push(&message, &[], 0).expect("honest") == Pushed::Full {
                let expected: Vec<u8> = waiting.pop_front().expect("something is in there");
                prop_assert_eq!(pop(&mut consumer).expect("honest"), Some(expected.as_slice()));
            }
            waiting.push_back(message);
        }
        for expected in waiting {
            prop_assert_eq!(pop(&mut consumer).expect("honest"), Some(expected.as_slice()));
        }
        prop_assert_eq!(pop(&mut consumer).expect("honest"), None);
    }

    #[test]
    fn another_end_goes_on_where_the_last_one_has_ended(
        steps in proptest::collection::vec((0..5_u8, 0..90_usize), 1..200)
    ) {
        let (mut producer, mut consumer, segment) = ring(4096);
        let region = Region::new(&segment, 0, words(CAPACITY));
        let mut waiting = std::collections::VecDeque::new();
        for (number, (step, size)) in steps.into_iter().enumerate() {
            match step {
                0 => {
                    producer = Producer::new(region.clone());
                    producer.resume().expect("honest");
                }
                1 => {
                    consumer = Consumer::new(region.clone(), 4096);
                    consumer.resume().expect("honest");
                }
                2 => {
                    let expected: Option<Vec<u8>> = waiting.pop_front();
                    prop_assert_eq!(pop(&mut consumer).expect("honest"), expected.as_deref());
                }
                _ => {
                    let message = vec![u8::try_from(number).expect("few"); size + 1];
                    if producer.push(&message, &[], 0).expect("honest") != Pushed::Full {
                        waiting.push_back(message);
                    }
                }
            }
        }
        for expected in waiting {
            prop_assert_eq!(pop(&mut consumer).expect("honest"), Some(expected.as_slice()));
        }
    }

    #[test]
    fn an_end_never_goes_on_over_impossible_words(words in any::<[u64; 2]>(), small: bool) {
        let (mut producer, mut consumer, segment) = ring(4096);
        let [head, tail] = if small { words.map(|word| word % 128) } else { words };
        segment.words()[HEAD].store(head, Ordering::Relaxed);
        segment.words()[TAIL].store(tail, Ordering::Relaxed);
        let possible = tail <= head && head - tail <= CAPACITY as u64;
        prop_assert_eq!(producer.resume().is_ok(), possible);
        prop_assert_eq!(consumer.resume().is_ok(), possible);
    }

    #[test]
    fn both_sides_survive_any_overwritten_memory(
        scribbles in proptest::collection::vec((0..words(CAPACITY), any::<u64>(), any::<bool>()), 1..200)
    ) {
        let (mut producer, mut consumer, segment) = ring(4096);
        let (mut can_send, mut can_receive) = (true, true);
        for (index, value, honest) in scribbles {
            if honest {
                let _ = producer.push_item(7, &[5; 20]);
                let sent = producer.push(&[1, 2, 3], &[4; 30], 0).is_ok();
                prop_assert!(can_send || !sent, "it recovered after a breach");
                prop_assert_eq!(producer.check().is_ok(), sent);
                can_send = sent;
            } else {
                // Small values are the dangerous ones: they look like positions and lengths.
                let value = if value % 2 == 0 { value % 128 } else { value };
                segment.words()[index].store(value, Ordering::Relaxed);
            }
            for _ in 0..=CAPACITY {
                let mut values = Vec::new();
                prop_assert!(take_items(&mut consumer, 7, 2, &mut values) <= 2);
                prop_assert!(values.len() <= 2 * (1 + SHORT_ITEM));
                let message = pop(&mut consumer);
                prop_assert!(can_receive || message.is_err(), "it recovered after a breach");
                can_receive = message.is_ok();
                match message {
                    Ok(Some(message)) => prop_assert!(message.len() <= 4096),
                    Ok(None) | Err(_) => break,
                }
            }
        }
    }
}

#[test]
fn the_last_short_message_is_read_beside_the_head() {
    for length in [0, 1, 8, 39, COPY_BYTES] {
        let (mut producer, mut consumer, segment) = ring(4096);
        let (first, last) = (vec![1; length], vec![2; length]);
        producer.push(&first, &[], 0).expect("honest");
        let end = usize::try_from(producer.sent()).expect("few");
        producer.push(&last[..length / 2], &last[length / 2..], 0).expect("honest");
        for word in &segment.words()[DATA + end..] {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        assert_eq!(pop(&mut consumer).expect("honest"), Some(&*first));
        assert_eq!(pop(&mut consumer).expect("honest"), Some(&*last));
        assert_eq!(pop(&mut consumer).expect("honest"), None);
    }
}

#[test]
fn a_copy_that_is_not_the_next_message_is_not_used() {
    for (index, value) in
        [(COPY_END, 0), (COPY_END, 4), (COPY, 9), (COPY, LENGTH), (COPY, LAST | 8)]
    {
        let (mut producer, mut consumer, segment) = ring(4096);
        producer.push(b"short", &[], 0).expect("honest");
        segment.words()[index].store(value, Ordering::Relaxed);
        assert_eq!(pop(&mut consumer).expect("honest"), Some(&b"short"[..]));
        let long = [7; COPY_BYTES + 1];
        producer.push(&long, &[], 0).expect("honest");
        assert_eq!(pop(&mut consumer).expect("honest"), Some(&long[..]));
    }
}

#[test]
fn invalid_words_are_an_error_and_the_error_stays() {
    let full = fragment_bytes(CAPACITY) as u64;
    let cases: [(&[u64], u64, &str); 6] = [
        (&[], CAPACITY as u64 + 1, "ring head out of range"),
        (&[FIRST | LAST | 9, 9], 3, "fragment longer than the published words"),
        (&[LAST | 8], 2, "fragment outside a message"),
        (&[FIRST, 4000], 2, "fragment too short"),
        (
            &[FIRST | full, full - 1],
            2 + full / 8,
            "message length differs from the declared length",
        ),
        (&[FIRST | LAST | 8, 4097], 3, "message exceeds the limit"),
    ];
    for (published, head, problem) in cases {
        let (_, mut consumer, segment) = ring(4096);
        let words = segment.words();
        for (index, word) in published.iter().enumerate() {
            words[DATA + index].store(*word, Ordering::Relaxed);
        }
        for head in [head, 0] {
            words[HEAD].store(head, Ordering::Release);
            let Err(LinkError::Protocol(found)) = pop(&mut consumer) else { panic!("{problem}") };
            assert_eq!(found, problem);
        }
    }
}

/// Takes the short items that have arrived.
fn take_items(consumer: &mut Consumer, first: u32, most: u32, values: &mut Vec<u8>) -> u32 {
    match consumer.find_published() {
        Ok(true) => consumer.take_items(first, most, values),
        Ok(false) | Err(_) => 0,
    }
}

#[test]
fn short_items_arrive_unchanged_between_messages() {
    let (mut producer, mut consumer, _) = ring(4096);
    let all: Vec<u8> = (1..=u8::try_from(SHORT_ITEM).expect("short")).collect();
    // Several times around the ring.
    for length in [0, 1, 7, 8, 9, 63, 64].repeat(3) {
        let value = &all[..length];
        producer.push(b"before", &[], 0).expect("honest");
        assert!(producer.push_item(u32::MAX, value).expect("honest"));
        assert!(producer.push_item(0, value).expect("honest"));
        producer.push(b"behind", &[], 0).expect("honest");

        let mut values = Vec::new();
        assert_eq!(take_items(&mut consumer, u32::MAX, 9, &mut values), 0, "a message is next");
        assert_eq!(pop(&mut consumer).expect("honest"), Some(&b"before"[..]));
        assert_eq!(take_items(&mut consumer, u32::MAX, 9, &mut values), 2);
        let mut rest = values.as_slice();
        let values: Vec<_> = std::iter::from_fn(|| items::take(&mut rest)).collect();
        assert_eq!(values, [Ok(value), Ok(value)]);
        assert_eq!(pop(&mut consumer).expect("honest"), Some(&b"behind"[..]));
    }
}

#[test]
fn a_short_item_waits_for_room() {
    let (mut producer, mut consumer, _) = ring(4096);
    let pushed = (0..).take_while(|index| producer.push_item(*index, &[1; 24]).expect("honest"));
    assert_eq!(pushed.count(), CAPACITY / 4);
    assert_eq!(take_items(&mut consumer, 0, 1, &mut Vec::new()), 1);
    assert!(producer.push_item(0, &[1; 24]).expect("honest"));
}

#[test]
fn a_short_item_that_is_not_wanted_is_refused() {
    for (first, most) in [(1, 9), (3, 9), (2, 0)] {
        let (mut producer, mut consumer, _) = ring(4096);
        assert!(producer.push_item(2, &[1]).expect("honest"));
        assert_eq!(take_items(&mut consumer, first, most, &mut Vec::new()), 0);
        assert!(pop(&mut consumer).is_err());
    }
}

#[test]
fn a_short_item_inside_a_message_is_refused() {
    let (mut producer, mut consumer, _) = ring(4096);
    let long = [1; 300];
    assert_eq!(producer.push(&long, &[], 0).expect("honest"), Pushed::UpTo(112));
    assert!(producer.push_item(0, &[1]).expect("honest"));
    assert_eq!(take_items(&mut consumer, 0, 9, &mut Vec::new()), 0, "a message is next");
    assert!(pop(&mut consumer).is_err());
    assert_eq!(take_items(&mut consumer, 0, 9, &mut Vec::new()), 0, "it recovered");
}

#[test]
fn a_malformed_short_item_is_refused() {
    let cases = [(SHORT_ITEM as u64 + 1, 12), (8, 1), (LENGTH, 2)];
    for (length, head) in cases {
        let (_, mut consumer, segment) = ring(4096);
        segment.words()[DATA].store(length | short_item(0), Ordering::Relaxed);
        segment.words()[HEAD].store(head, Ordering::Release);
        assert_eq!(take_items(&mut consumer, 0, 9, &mut Vec::new()), 0);
        assert!(pop(&mut consumer).is_err());
    }
}

#[test]
fn a_message_above_the_limit_is_an_error() {
    let (mut producer, mut consumer, _) = ring(10);
    producer.push(&[0; 11], &[], 0).expect("honest");
    assert!(pop(&mut consumer).is_err());
}

#[test]
fn threads_agree_on_many_messages() {
    let (mut producer, mut consumer, _) = ring(4096);
    let bell = Bell::new(producer_region(&producer));
    let other = bell.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..300_000_u64 {
                while producer.push(&number.to_le_bytes(), &[], 0).expect("honest") == Pushed::Full
                {
                    std::thread::yield_now();
                }
                other.ring();
            }
        });
        for number in 0..300_000_u64 {
            loop {
                if let Some(message) = pop(&mut consumer).expect("honest") {
                    assert_eq!(message, number.to_le_bytes());
                    break;
                }
                bell.sleep_unless(|| consumer.has_more());
            }
        }
    });
}

#[test]
fn a_wake_up_happens_when_it_is_dropped() {
    let bell = Bell::new(producer_region(&ring(10).0));
    let published = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| bell.sleep_unless(|| published.load(Ordering::Relaxed)));
        while !bell.seems_asleep() {
            std::thread::yield_now();
        }
        published.store(true, Ordering::Relaxed);
        // `None` if the sleeper has seen just now that something was published.
        let wake_up = bell.wake_up();
        assert!(!bell.ring(), "it is taken for awake");
        drop(wake_up);
        sleeper.join().expect("it was woken");
    });
}

fn producer_region(producer: &Producer) -> Region {
    producer.region().clone()
}
