//! Tests a host's end over memory that another thread scribbles over: it continues or reports a
//! breach of the protocol, and every call returns. (nextest ends a call that does not return.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

use super::*;

const SLOTS: u16 = 8;

/// Above the ring's size, so that messages wait for room.
const LIMIT: usize = 600 << 10;

/// The words before the data that have a meaning: see `ring`. Random indexes hit those of the table
/// of task states.
const MEANINGFUL: [usize; 4] = [0, 16, 32, 40];

#[derive(Debug, Clone)]
enum Step {
    Scribble {
        word: usize,
        value: u64,
    },
    Send {
        length: usize,
    },
    Advance,
    TakeItems,
    Pump,
    MadeRoom,
    /// The worker, which knows nothing of the scribbles, sends a message.
    Answer {
        length: usize,
    },
    /// The worker takes what has arrived.
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (word(), value()).prop_map(|(word, value)| Step::Scribble { word, value }),
        2 => length().prop_map(|length| Step::Send { length }),
        4 => Just(Step::Advance),
        2 => Just(Step::TakeItems),
        2 => Just(Step::Pump),
        1 => Just(Step::MadeRoom),
        3 => length().prop_map(|length| Step::Answer { length }),
        2 => Just(Step::Take),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Mostly the few words that matter.
fn word() -> impl Strategy<Value = usize> {
    let ring = (0..2_usize).prop_map(|ring| ring_at(SLOTS) + ring * ring::words(CAPACITY));
    prop_oneof![
        4 => (ring.clone(), proptest::sample::select(&MEANINGFUL[..])).prop_map(|(ring, word)| ring + word),
        3 => (ring, 48..120_usize).prop_map(|(ring, word)| ring + word),
        1 => 0..words(SLOTS),
    ]
}

/// Mostly values that look like positions, lengths and frames.
fn value() -> impl Strategy<Value = u64> {
    let frame = (0..8_u64, 0..100_u64).prop_map(|(flags, length)| flags << 40 | length);
    prop_oneof![3 => 0..100_u64, 1 => 0..70_000_u64, 2 => frame, 2 => any::<u64>()]
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..100_usize, 1 => 0..=LIMIT]
}

/// The worker's half, which does not sleep.
struct Worker {
    producer: Producer,
    consumer: Consumer,
    /// Length of the message being sent, and how much of it there was room for.
    under_way: Option<(usize, usize)>,
}

impl Worker {
    /// Continues to send the current message, or begins one.
    fn answer(&mut self, length: usize) {
        let (length, offset) = self.under_way.unwrap_or((length, 0));
        let pushed = self.producer.push(&vec![3; length], &[], offset);
        self.under_way = match pushed {
            Ok(Pushed::UpTo(end)) => (end < length).then_some((length, end)),
            Ok(Pushed::Full) | Err(_) => Some((length, offset)),
        };
    }

    fn take(&mut self) {
        let _ = self.consumer.advance();
    }
}

fn ends() -> (HostEnd, Worker, Arc<Segment>) {
    let segment = Arc::new(Segment::create("test", words(SLOTS)).expect("a segment"));
    let (to_worker, to_host) = regions(&segment, SLOTS);
    let (producer, consumer) = (Producer::new(to_host), Consumer::new(to_worker, LIMIT));
    let worker = Worker { producer, consumer, under_way: None };
    (HostEnd::new(&segment, SLOTS, LIMIT), worker, segment)
}

/// The host's end with its invariants.
struct Checked {
    end: HostEnd,
    cannot_send: bool,
    cannot_receive: bool,
}

impl Checked {
    fn new(end: HostEnd) -> Self {
        Self { end, cannot_send: false, cannot_receive: false }
    }

    fn send(&mut self, length: usize) {
        let sent = self.end.send(&[1; 24][..length.min(24)], &vec![2; length.saturating_sub(24)]);
        self.sending_said(&sent);
    }

    fn pump(&mut self) {
        let pumped = self.end.pump();
        self.sending_said(&pumped);
    }

    fn sending_said(&mut self, result: &Result<(), LinkError>) {
        assert!(result.is_err() || !self.cannot_send, "it recovered after a breach");
        assert!(matches!(result, Ok(()) | Err(LinkError::Protocol(_))), "{result:?}");
        self.cannot_send = result.is_err();
        assert!(
            !self.cannot_send || self.end.waiting.is_empty(),
            "keeps messages that it can never send"
        );
    }

    /// Returns `true` if there was a message.
    fn advance(&mut self) -> bool {
        let advanced = self.end.consumer.advance();
        assert!(advanced.is_err() || !self.cannot_receive, "it recovered after a breach");
        self.cannot_receive = advanced.is_err();
        assert!(self.end.consumer.message().len() <= LIMIT);
        advanced.unwrap_or(false)
    }

    fn take_items(&mut self) {
        let (found, mut values) = (self.end.consumer.find_published(), Vec::new());
        assert!(found.is_err() || !self.cannot_receive, "it recovered after a breach");
        self.cannot_receive = found.is_err();
        if found.is_ok_and(|found| found) {
            self.end.consumer.take_items(0, 3, &mut values);
        }
        assert!(values.len() <= 3 * 65);
    }

    /// Does everything once more.
    fn use_all(&mut self) {
        self.take_items();
        while self.advance() {}
        self.end.made_room();
        let _ = (self.end.has_more(), self.end.consumer.is_in_the_middle());
        self.pump();
        self.send(100);
    }
}

/// The same cases in each run.
fn config(cases: u32) -> Config {
    Config {
        cases,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0x5C21_BB1E),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn the_host_end_survives_scribbles_between_its_calls(steps in steps()) {
        let (end, mut worker, segment) = ends();
        let mut host = Checked::new(end);
        for step in steps {
            match step {
                Step::Scribble { word, value } => segment.words()[word].store(value, Ordering::Relaxed),
                Step::Send { length } => host.send(length),
                Step::Advance => { host.advance(); }
                Step::TakeItems => host.take_items(),
                Step::Pump => host.pump(),
                Step::MadeRoom => host.end.made_room(),
                Step::Answer { length } => worker.answer(length),
                Step::Take => worker.take(),
            }
        }
        host.use_all();
        // Nothing moves any more, so nothing more arrives.
        prop_assert!(!host.advance());
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn the_host_end_survives_scribbles_during_its_calls(
        scribbles in proptest::collection::vec((word(), value()), 1..30), lengths in proptest::collection::vec(length(), 8)
    ) {
        let (end, mut worker, segment) = ends();
        let mut host = Checked::new(end);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let scribbling = scope.spawn(|| {
                // Some messages first, so that there is something to scribble over.
                for length in &lengths {
                    worker.answer(*length);
                    worker.take();
                }
                for _ in 0..200 {
                    for (word, value) in &scribbles {
                        segment.words()[*word].store(*value, Ordering::Relaxed);
                    }
                    worker.answer(50);
                    worker.take();
                }
                ended.store(true, Ordering::Release);
            });
            while !ended.load(Ordering::Acquire) {
                host.use_all();
            }
            scribbling.join().expect("the worker's half survives as well");
        });
        host.use_all();
    }
}

#[test]
fn without_scribbles_everything_arrives() {
    let (end, mut worker, _) = ends();
    let mut host = Checked::new(end);
    for length in [0, 1, 30, 300_000, LIMIT] {
        host.send(length);
        let mut taken = None;
        // As often as the ring is full.
        for _ in 0..100 {
            if worker.consumer.advance().expect("an honest host") {
                taken = Some(worker.consumer.message().len());
            }
            host.pump();
        }
        assert_eq!(taken, Some(length));
    }
    assert!(!host.cannot_send && !host.end.has_more());
}

#[test]
fn a_worker_without_room_is_woken_before_the_ring_is_empty() {
    let (mut end, mut worker, segment) = ends();
    let bell = &segment.words()[ring_at(SLOTS) + ring::words(CAPACITY) + 32];
    for length in [1000, 10, 60 << 10] {
        worker.answer(length);
        while worker.under_way.is_none() {
            worker.answer(length);
        }
        // It sleeps.
        bell.store(1, Ordering::SeqCst);
        while bell.load(Ordering::SeqCst) == 1 {
            assert!(
                end.consumer.advance().expect("an intact ring"),
                "nothing is left, and it sleeps"
            );
            end.made_room();
        }
        while end.consumer.advance().expect("an intact ring") {
            end.made_room();
        }
    }
}
