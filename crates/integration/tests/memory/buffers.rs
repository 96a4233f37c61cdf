//! Shared buffers in arguments and results of all kinds of tasks.

use std::sync::mpsc::channel;

use brigade::worker::Server;
use brigade::{Pool, SharedBuf, SharedBufMut, SubmitErrorKind, TaskErrorKind};
use brigade_integration::{attempt, builder, pool, worker_died};
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, outcome};
use serde::ser::Error;
use serde::{Deserialize, Serialize, Serializer};

pub(super) fn serve() {
    Server::new().task("reversed", reversed).run();
}

/// Sizes around the alignment, the threshold of the arenas, and the fragments of a message.
const SIZES: [usize; 7] = [0, 1, 64, 4_095, 16_384, 100_000, 3 << 20];

fn buffer(length: usize, seed: u8) -> SharedBuf {
    let mut buffer = SharedBufMut::on_heap(length);
    for (index, byte) in (0_u8..251).cycle().zip(buffer.iter_mut()) {
        *byte = index.wrapping_mul(7).wrapping_add(seed);
    }
    buffer.freeze()
}

fn reversed(buffer: SharedBuf) -> SharedBuf {
    buffer.iter().rev().copied().collect::<Vec<u8>>().into()
}

/// A value with buffers and parts of buffers in several places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Batch {
    name: String,
    images: Vec<SharedBuf>,
    header: Option<SharedBuf>,
    weights: Vec<f64>,
}

fn batch() -> Batch {
    let all = buffer(10_000, 1);
    Batch {
        name: "a batch".to_owned(),
        images: vec![all.slice(..100), buffer(0, 2), all.slice(9_000..), buffer(50_000, 3)],
        header: Some(all.slice(5..5)),
        weights: vec![0.5; 5_000],
    }
}

#[test]
fn buffers_arrive_in_arguments_and_results() {
    let pool = pool(2);
    for size in SIZES {
        let sent = buffer(size, 9);
        let back = outcome(pool.submit(reversed, sent.clone()).expect("a task")).expect("a value");
        assert!(back.iter().eq(sent.iter().rev()), "{size} bytes");
        assert!(back.as_ptr().addr().is_multiple_of(64));
    }
    let echo = |batch: Batch| batch;
    assert_eq!(outcome(pool.submit(echo, batch()).expect("a task")).expect("a value"), batch());
    let lengths = |batch: Batch| batch.images.iter().map(|it| it.len()).collect::<Vec<_>>();
    let lengths = outcome(pool.submit(lengths, batch()).expect("a task")).expect("a value");
    assert_eq!(lengths, [100, 0, 1_000, 50_000]);
}

#[test]
fn items_of_maps_with_and_without_buffers_keep_their_own() {
    fn echo((number, buffer): (usize, Option<SharedBuf>)) -> (usize, Option<SharedBuf>) {
        (number, buffer.map(reversed).filter(|_| number % 5 != 0))
    }
    let pool = pool(2);
    let inputs = || {
        (0..200).zip(0_u8..).map(|(number, seed)| {
            let size = SIZES[number % 6];
            (number, (number > 20 && number % 3 != 0).then(|| buffer(size, seed)))
        })
    };
    let expected: Vec<_> = inputs().map(echo).collect();
    for chunk in [1, 7] {
        let results = pool.map(echo, inputs()).chunk(chunk);
        assert!(results.map(Result::unwrap).eq(expected.iter().cloned()));
    }
    assert!(pool.map(echo, inputs()).map(Result::unwrap).eq(expected.iter().cloned()));
    let mut unordered: Vec<_> = pool.map_unordered(echo, inputs()).map(Result::unwrap).collect();
    unordered.sort_by_key(|(number, _)| *number);
    assert_eq!(unordered, expected);
}

#[test]
fn items_of_a_chunk_have_outcomes_of_any_kind_one_by_one() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Answer {
        Small(u32),
        Large(Vec<f64>),
        Buffer(SharedBuf, u32),
        Fails(SharedBuf, #[serde(serialize_with = "fail")] u32),
    }
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn fail<S: Serializer>(_: &u32, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("not this one"))
    }
    fn answer(number: u32) -> Answer {
        match number % 5 {
            0 => Answer::Small(number),
            1 => Answer::Large(vec![f64::from(number); 10_000]),
            2 => Answer::Buffer(buffer(20_000, 2), number),
            3 => Answer::Fails(buffer(20_000, 3), number),
            _ => panic!("no {number}"),
        }
    }
    let pool = pool(2);
    for chunk in [1, 7, 100] {
        for (number, result) in (0..60).zip(pool.map(answer, 0..60).chunk(chunk)) {
            match (number % 5, result.map_err(|error| error.to_string())) {
                (0..=2, result) => assert_eq!(result, Ok(answer(number))),
                (3, Err(error)) => assert!(error.contains("cannot be encoded"), "{error}"),
                (4, Err(error)) => assert!(error.contains(&format!("no {number}")), "{error}"),
                (_, Ok(answer)) => panic!("{number} returned {answer:?}"),
                (_, Err(error)) => panic!("{number} failed: {error}"),
            }
        }
    }
}

#[test]
fn retried_tasks_and_divided_chunks_keep_their_buffers() {
    fn dies_at_first((number, buffer): (u8, SharedBuf)) -> SharedBuf {
        if number % 4 == 2 && attempt() < 2 {
            std::process::abort();
        }
        reversed(buffer)
    }
    let pool = pool(2);
    let argument = (2, buffer(70_000, 2));
    let handle = pool.task(dies_at_first).retries(1).submit(argument.clone()).expect("a task");
    assert_eq!(outcome(handle).expect("a value"), reversed(argument.1));
    let inputs: Vec<_> = (0..12).map(|number| (number, buffer(20_000, number))).collect();
    for chunk in [1, 5] {
        let results = pool.map(dies_at_first, inputs.clone()).chunk(chunk).retries(1);
        let expected = inputs.iter().map(|(_, buffer)| reversed(buffer.clone()));
        assert!(results.map(Result::unwrap).eq(expected));
    }
    let results = pool.map(dies_at_first, inputs.clone()).chunk(5);
    for ((number, buffer), result) in inputs.into_iter().zip(results) {
        if number % 4 == 2 {
            worker_died(result);
        } else {
            assert_eq!(result.expect("a value"), reversed(buffer));
        }
    }
}

#[test]
fn every_worker_gets_the_buffers_of_a_broadcast() {
    let pool = pool(3);
    let sent = buffer(40_000, 5);
    for handle in pool.broadcast(reversed, sent.clone()).expect("tasks") {
        assert_eq!(outcome(handle).expect("a value"), reversed(sent.clone()));
    }
}

#[test]
fn functions_with_names_take_buffers() {
    let pool = pool(1);
    let sent = buffer(40_000, 5);
    let handle = pool.submit::<_, _, SharedBuf, _>("reversed", sent.clone()).expect("a task");
    assert_eq!(outcome(handle).expect("a value"), reversed(sent));
}

#[test]
fn a_callback_and_the_handle_get_the_same_buffers() {
    let pool = pool(1);
    let (sender, receiver) = channel();
    let handle = pool.submit(reversed, buffer(40_000, 5)).expect("a task");
    for _ in 0..2 {
        let sender = sender.clone();
        handle.on_done(move |outcome| sender.send(outcome).expect("the test listens"));
    }
    let value = outcome(handle).expect("a value");
    for _ in 0..2 {
        let called = receiver.recv_timeout(BOUND).expect("a call").expect("a value");
        assert_eq!(called, value);
        assert!(std::ptr::eq(called.as_ptr(), value.as_ptr()), "the bytes exist once");
    }
}

#[test]
fn a_value_outlives_its_handle_its_worker_and_its_pool() {
    let pool = pool(1);
    let sent = buffer(100_000, 8);
    let value = outcome(pool.submit(reversed, sent.clone()).expect("a task")).expect("a value");
    let part = value.slice(10..20);
    drop(value);
    worker_died(outcome(pool.submit(aborts, ()).expect("a task")));
    drop(pool);
    assert_eq!(part, reversed(sent).slice(10..20));
}

#[test]
fn too_many_buffers_are_an_error_that_names_the_limit() {
    fn many(count: usize) -> Vec<SharedBuf> {
        (0..count).map(|_| SharedBuf::copy_of(b"")).collect()
    }
    let pool = pool(1);
    let error = pool.submit(|_: Vec<SharedBuf>| (), many(4_097)).expect_err("too many");
    let SubmitErrorKind::Codec { message } = error.kind() else { panic!("{error:?}") };
    assert!(message.contains("4096 shared buffers"), "{message}");
    let error = outcome(pool.submit(many, 4_097).expect("a task")).expect_err("too many");
    let TaskErrorKind::Codec { message } = error.kind() else { panic!("{error:?}") };
    assert!(message.contains("4096 shared buffers"), "{message}");
    assert_eq!(outcome(pool.submit(many, 4_096).expect("a task")).expect("a value").len(), 4_096);
    let results: Vec<_> = pool.map(many, [1, 4_097, 2]).map(|result| result.is_ok()).collect();
    assert_eq!(results, [true, false, true]);
    let inputs = [many(1), many(4_097), many(2)];
    let results: Vec<_> =
        pool.map(|list: Vec<SharedBuf>| list.len(), inputs).map(Result::ok).collect();
    assert_eq!(results, [Some(1), None, Some(2)]);
}

#[test]
fn initializers_get_at_most_as_many_buffers_as_tasks() {
    let many: Vec<_> = (0..4_097).map(|_| SharedBuf::copy_of(b"")).collect();
    let error = builder(1).initializer(|_: Vec<SharedBuf>| (), many).build();
    let error = error.map(drop).expect_err("too many").to_string();
    assert!(error.contains("4096 shared buffers"), "{error}");
}

#[test]
fn failures_around_buffers_cost_only_their_own_task() {
    fn panics(_: SharedBuf) -> SharedBuf {
        panic!("with a buffer");
    }
    fn keeps(buffer: SharedBuf) -> usize {
        static KEPT: std::sync::Mutex<Vec<SharedBuf>> = std::sync::Mutex::new(Vec::new());
        let mut kept = KEPT.lock().expect("no panic under the lock");
        assert!(kept.iter().all(|earlier| *earlier == reversed(reversed(earlier.clone()))));
        kept.push(buffer);
        kept.len()
    }
    let pool: Pool = pool(1);
    assert!(outcome(pool.submit(panics, buffer(9, 1)).expect("a task")).is_err());
    for count in 1..4 {
        let handle = pool.submit(keeps, buffer(100_000, 1)).expect("a task");
        assert_eq!(outcome(handle).expect("a value"), count);
    }
    // The types of the two sides differ.
    let handle = pool.submit::<_, _, String, _>("reversed", buffer(10, 1)).expect("a task");
    assert!(outcome(handle).is_err());
    let handle = pool.submit::<_, _, SharedBuf, _>("reversed", "text".to_owned()).expect("a task");
    assert!(outcome(handle).is_err());
    drop(pool.submit(reversed, buffer(100_000, 1)).expect("a task"));
    let sent = buffer(10, 2);
    let handle = pool.submit(reversed, sent.clone()).expect("a task");
    assert_eq!(outcome(handle).expect("a value"), reversed(sent));
}
