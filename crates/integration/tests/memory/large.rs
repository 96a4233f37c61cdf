//! Large values and arguments that the host copies from the memory of its workers and to it.

use std::any::type_name;
use std::fmt::Debug;
use std::fs;
use std::time::{Duration, Instant};

use brigade::packed::Packed;
use brigade::pool::Encoded;
use brigade::stream::Emit;
use brigade::{Function, Key, Link, Pool, TaskErrorKind, worker};
use brigade_integration::{builder, pool};
use brigade_sys::arena::MAX_OFFERED;
use brigade_testkit::{BOUND, PATIENCE, Watchdog, outcome, repeated, wait_until};
use brigade_wire::codec;
use serde::{Deserialize, Serialize};

/// From the second value of this size on, a worker offers it.
const OFFERED: usize = 4 << 20;

/// Returns bytes that depend on the position and the seed.
fn pattern((size, seed): (usize, u8)) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..251).map(|byte: u8| byte.wrapping_add(seed)).collect();
    while bytes.len() < size {
        bytes.extend_from_within(..bytes.len().min(size - bytes.len()));
    }
    bytes.truncate(size);
    bytes
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Picture {
    name: String,
    pixels: Vec<u8>,
}

/// Gets values through the arena, after which workers offer them.
fn warm_up(pool: &Pool) {
    for seed in 0..8 {
        assert!(
            outcome(pool.submit(pattern, (OFFERED, seed)).unwrap()).unwrap()
                == pattern((OFFERED, seed))
        );
    }
}

#[test]
fn values_of_every_type_arrive_whole() {
    let pool = pool(1);
    warm_up(&pool);
    for size in [OFFERED - 1, OFFERED, OFFERED + 1, 2 * OFFERED + 7] {
        let value = outcome(pool.submit(pattern, (size, 3)).unwrap()).unwrap();
        assert!(value == pattern((size, 3)), "{} of {size} bytes", value.len());
        let text = outcome(pool.submit(|size| "ä".repeat(size), size / 2).unwrap()).unwrap();
        assert!(text == "ä".repeat(size / 2), "{} bytes", text.len());
    }
    // Encoded byte by byte, which takes long without optimization.
    let picture = |size| Picture { name: "x".to_owned(), pixels: pattern((size, 9)) };
    assert!(outcome(pool.submit(picture, OFFERED).unwrap()).unwrap() == picture(OFFERED));
    let maybe = |size| Ok::<_, String>("x".repeat(size));
    let value: Result<String, String> = outcome(pool.submit(maybe, OFFERED).unwrap()).unwrap();
    assert!(value == maybe(OFFERED));
}

#[test]
fn a_failed_value_that_is_large_is_retried() {
    let pool = builder(1).build().unwrap();
    warm_up(&pool);
    let fails = |size: usize| {
        let attempt = worker::attempt().unwrap().get();
        Err::<(), _>(attempt.to_string().repeat(size))
    };
    let handle = pool.task(fails).retries(2).retry_errors().submit(2 * OFFERED).unwrap();
    assert!(outcome(handle).unwrap() == Err("3".repeat(2 * OFFERED)));
}

/// Returns the bytes of shared memory that this process has.
fn shared_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssShmem:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

#[test]
fn a_large_value_takes_no_shared_memory() {
    let pool = pool(1);
    warm_up(&pool);
    let before = shared_memory();
    let value = outcome(pool.submit(pattern, (64 << 20, 5)).unwrap()).unwrap();
    assert!(value == pattern((64 << 20, 5)));
    let grown = shared_memory().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes of shared memory");
}

#[test]
fn values_arrive_for_many_callers_at_once() {
    let pool = pool(4);
    let _watchdog = Watchdog::new("large values", Duration::from_secs(60 * PATIENCE));
    warm_up(&pool);
    std::thread::scope(|scope| {
        for caller in 0..6_u8 {
            let pool = &pool;
            scope.spawn(move || {
                for turn in 0..10_u8 {
                    let wanted = (OFFERED + usize::from(turn) * 100_000, caller * 10 + turn);
                    let handle = pool.submit(pattern, wanted).unwrap();
                    if turn % 3 == 0 {
                        drop(handle);
                    } else {
                        assert!(outcome(handle).unwrap() == pattern(wanted));
                    }
                }
            });
        }
    });
    // Nobody waits for these: the collector's thread finds them.
    let handles: Vec<_> =
        (0..8).map(|seed| pool.submit(pattern, (2 * OFFERED, seed)).unwrap()).collect();
    pool.shutdown().unwrap();
    for (seed, handle) in (0..8).zip(handles) {
        assert!(outcome(handle).unwrap() == pattern((2 * OFFERED, seed)));
    }
}

/// Returns a large value while another thread ends the process at about the same time.
fn dies_soon((size, turns): (usize, u32)) -> Vec<u8> {
    let value = pattern((size, 7));
    std::thread::spawn(move || {
        for _ in 0..turns {
            std::thread::yield_now();
        }
        std::process::exit(3);
    });
    value
}

#[test]
fn a_value_arrives_whole_or_its_worker_has_died() {
    let pool = builder(2).restart_budget(1000, Duration::from_secs(1)).build().unwrap();
    let _watchdog = Watchdog::new("workers that die", Duration::from_secs(60 * PATIENCE));
    let (mut died, mut turn) = (0, 0_u32);
    // A busy machine needs more turns until a worker is dead in time.
    while turn < 40 || died == 0 {
        turn += 1;
        // A worker has to learn first that it may offer, and its last one may be about to end.
        let warm_up = || outcome(pool.submit(pattern, (OFFERED, 1)).unwrap());
        assert!((0..10).any(|_| warm_up().is_ok()), "no worker lives");
        let task = (2 * OFFERED, (turn % 20) * 20);
        match outcome(pool.submit(dies_soon, task).unwrap()) {
            Ok(value) => assert!(value == pattern((2 * OFFERED, 7)), "{} bytes", value.len()),
            Err(error) => {
                assert!(matches!(error.kind(), TaskErrorKind::WorkerDied { .. }), "{error}");
                died += 1;
            }
        }
    }
}

/// Returns a number that depends on all parts of the bytes.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().step_by(127).zip(1..).map(|(byte, place)| u64::from(*byte) * place).sum()
}

#[test]
fn arguments_arrive_whole() {
    let pool = pool(2);
    for size in [OFFERED - 1, OFFERED, OFFERED + 1, 3 * OFFERED + 7] {
        let bytes = pattern((size, 4));
        let expected = (size, sum(&bytes));
        let handle = pool.submit(|bytes: Vec<u8>| (bytes.len(), sum(&bytes)), bytes).unwrap();
        assert_eq!(outcome(handle).unwrap(), expected);
        let text = "xyz".repeat(size / 3 + 1);
        let expected = (text.len(), sum(text.as_bytes()));
        let handle = pool.submit(|text: String| (text.len(), sum(text.as_bytes())), text).unwrap();
        assert_eq!(outcome(handle).unwrap(), expected);
    }
}

#[test]
fn a_task_that_is_refused_gives_its_argument_back() {
    let pool = builder(1).queue_limit(1).build().unwrap();
    let blocks = pool.submit(waits_forever, ()).unwrap();
    // Some may find room before the first task has left the queue.
    let mut queued = Vec::new();
    let (error, address) = loop {
        let argument = pattern((3 * OFFERED, 5));
        let address = argument.as_ptr();
        match pool.task(|bytes: Vec<u8>| bytes.len()).try_submit(argument) {
            Ok(handle) => queued.push(handle),
            Err(error) => break (error, address),
        }
    };
    let argument = error.into_argument();
    assert!(argument == pattern((3 * OFFERED, 5)));
    assert_eq!(argument.as_ptr(), address, "it was copied");
    blocks.kill();
    for handle in queued {
        assert_eq!(outcome(handle).unwrap(), 3 * OFFERED);
    }
}

fn waits_forever((): ()) {
    loop {
        std::thread::park();
    }
}

#[test]
fn an_argument_survives_the_death_of_its_worker() {
    let pool = pool(1);
    let dies_first = |bytes: Vec<u8>| {
        if worker::attempt().unwrap().get() < 3 {
            std::process::abort();
        }
        sum(&bytes)
    };
    for size in [OFFERED, 3 * OFFERED] {
        let bytes = pattern((size, 8));
        let expected = sum(&bytes);
        let handle = pool.task(dies_first).retries(2).submit(bytes).unwrap();
        assert_eq!(outcome(handle).unwrap(), expected);
    }
}

#[test]
fn arguments_of_many_tasks_arrive_while_workers_are_killed() {
    let pool = builder(3).restart_budget(1000, Duration::from_secs(1)).build().unwrap();
    let _watchdog = Watchdog::new("large arguments", Duration::from_secs(60 * PATIENCE));
    let handles: Vec<_> = (0..60_u8)
        .map(|seed| {
            let bytes = pattern((2 * OFFERED, seed));
            let task = pool.task(|bytes: Vec<u8>| sum(&bytes)).retries(10);
            let handle = task.submit(bytes).unwrap();
            if seed % 7 == 3 {
                handle.kill();
            }
            handle
        })
        .collect();
    for (seed, handle) in (0..60_u8).zip(handles) {
        match outcome(handle) {
            Ok(found) => assert_eq!(found, sum(&pattern((2 * OFFERED, seed)))),
            Err(error) => assert_eq!(seed % 7, 3, "{error}"),
        }
    }
}

#[test]
fn the_bytes_of_arguments_are_counted_once() {
    let pool = pool(1);
    let length = |bytes: Vec<u8>| bytes.len();
    let labelled = |size: usize| {
        let before = pool.snapshot().bytes_in;
        assert_eq!(
            outcome(pool.task(length).label("x").submit(vec![1; size]).unwrap()).unwrap(),
            size
        );
        pool.snapshot().bytes_in - before
    };
    // The encoded length comes first, and the list of segments behind it if the bytes are apart.
    for size in [0, 5, 100, 10_000, 100_000, OFFERED] {
        let (counted, size) = (labelled(size), size as u64);
        assert!((size..size + 60).contains(&counted), "{counted} for {size} bytes");
    }
}

/// Returns numbers that depend on the position.
fn count<N: From<u8> + Copy>(length: usize) -> Vec<N> {
    let period: Vec<N> = (0..251).map(N::from).collect();
    repeated(&period, length)
}

/// Sends numbers there and back, around the size from which on they stay with the task.
fn check_numbers<N, F, By>(pool: &Pool, back: F)
where
    F: Function<Vec<N>, Vec<N>, By>,
    N: From<u8> + Copy + Debug + PartialEq + Serialize + for<'de> Deserialize<'de> + 'static,
{
    let least = OFFERED / size_of::<N>();
    for length in [0, 3, 10_000, least - 1, least, least + 1, 2 * least + 5, least] {
        let mut expected = count::<N>(length);
        let handle = pool.submit(back, expected.clone()).unwrap();
        expected.reverse();
        assert!(outcome(handle).unwrap() == expected, "{length} of {}", type_name::<N>());
    }
}

fn reversed<N>(mut numbers: Vec<N>) -> Vec<N> {
    numbers.reverse();
    numbers
}

#[test]
fn vectors_of_numbers_arrive_whole() {
    let pools = [
        builder(1).build().unwrap(),
        // Whose host does not reach the memory of arguments, and has no arena for them.
        builder(1).link(Link::Ring).fresh_process_per_task().build().unwrap(),
        builder(1).link(Link::Ipc).build().unwrap(),
    ];
    for pool in &pools {
        check_numbers(pool, reversed::<f32>);
        check_numbers(pool, reversed::<u64>);
        check_numbers(pool, reversed::<i16>);
        check_numbers(pool, reversed::<u128>);
    }
}

static REVERSED: Key<Vec<f64>, Vec<f64>> = Key::new("reversed/1", reversed::<f64>);

#[test]
fn vectors_of_numbers_are_encoded_alike_on_every_way() {
    let lengths = [0, 3, 300, 5_000, 100_000, OFFERED / 8 + 1, OFFERED / 8 + 1];
    let vectors = || lengths.map(count::<f64>);
    let expected = vectors().map(reversed);
    let is_sent = |vector: Vec<f64>| worker::state::<Vec<f64>>().unwrap() == &vector;
    for (sent, link) in vectors().into_iter().zip([Link::Ring, Link::Ipc].into_iter().cycle()) {
        let initial = sent.clone();
        let pool = builder(1).link(link).initializer(|it: Vec<f64>| it, initial).build().unwrap();
        assert!(outcome(pool.submit(is_sent, sent).unwrap()).unwrap());
    }
    let pool = pool(2);
    for chunk in [1, 3] {
        let mapped = pool.map(reversed::<f64>, vectors()).chunk(chunk);
        assert!(mapped.map(Result::unwrap).eq(expected.clone()));
    }
    let emits = |numbers: Vec<f64>, emit: &mut Emit<'_, Vec<f64>>| {
        emit.emit(reversed(numbers)).unwrap();
    };
    let stream = pool.stream_flat(emits).ordered(true).start().unwrap();
    let erased = REVERSED.erase();
    for (vector, expected) in vectors().into_iter().zip(expected) {
        stream.put(vector.clone()).unwrap();
        assert!(stream.recv_timeout(BOUND).unwrap().result.unwrap() == expected);
        let [sent, expected] = [vector, expected].map(|it| {
            let mut bytes = Vec::new();
            codec::encode(&it, &mut bytes, usize::MAX).unwrap();
            Encoded::new(bytes)
        });
        assert!(outcome(pool.submit(&erased, sent).unwrap()).unwrap() == expected);
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Field {
    name: String,
    #[serde(with = "brigade::packed")]
    heights: Vec<f32>,
    #[serde(with = "brigade::packed")]
    marks: Box<[u8]>,
    last: u16,
}

fn field(length: usize) -> Field {
    Field {
        name: "x".to_owned(),
        heights: count(length),
        marks: count(length).into_boxed_slice(),
        last: 7,
    }
}

type Grid = Packed<Vec<u64>>;

/// A value with several vectors, some of which are too small to be copied alone.
fn grids(length: usize) -> Vec<(Grid, u8)> {
    [length, 3, length / 2, 0, length / 16].map(|it| (Grid::new(count(it)), 1)).into()
}

#[test]
fn packed_numbers_inside_values_arrive_whole() {
    let pools = [
        builder(1).build().unwrap(),
        builder(1).link(Link::Ring).fresh_process_per_task().build().unwrap(),
        builder(1).link(Link::Ipc).build().unwrap(),
    ];
    for pool in &pools {
        for length in [0, 5, 100_000, OFFERED, OFFERED / 2, OFFERED] {
            let echo = |field: Field| field;
            assert!(outcome(pool.submit(echo, field(length)).unwrap()).unwrap() == field(length));
            let both = |(number, grids): (u8, Vec<(Grid, u8)>)| Ok::<_, String>((grids, number));
            let sent = grids(length / 8);
            let handle = pool.submit(both, (1, sent.clone())).unwrap();
            assert!(outcome(handle).unwrap() == Ok((sent, 1)), "{length}");
        }
    }
}

static ECHO: Key<(u8, Grid), (u8, Grid)> = Key::new("echo/1", |value: (u8, Grid)| value);

#[test]
fn packed_numbers_arrive_whole_on_every_way() {
    let pool = pool(2);
    let _watchdog = Watchdog::new("packed numbers", Duration::from_secs(60 * PATIENCE));
    let sent = || (1, Grid::new(count(OFFERED / 4)));
    let mapped = pool.map(|value: (u8, Grid)| value, (0..3).map(|_| sent())).chunk(1);
    assert!(mapped.map(Result::unwrap).all(|value| value == sent()));
    let everywhere = pool.broadcast(|(_, grid): (u8, Grid)| sum_of(&grid), sent()).unwrap();
    assert!(everywhere.into_iter().all(|handle| outcome(handle).unwrap() == sum_of(&sent().1)));
    for _ in 0..3 {
        let mut bytes = Vec::new();
        codec::encode(&sent(), &mut bytes, usize::MAX).unwrap();
        let encoded = Encoded::new(bytes.clone());
        let back = outcome(pool.submit(&ECHO.erase(), encoded).unwrap()).unwrap();
        assert!(back.as_slice() == bytes);
        assert!(outcome(pool.submit(&ECHO, sent()).unwrap()).unwrap() == sent());
    }
}

fn sum_of(grid: &Grid) -> u64 {
    grid.iter().zip(1..).fold(0, |sum, (number, place)| sum ^ (number * place))
}

#[test]
fn packed_numbers_survive_the_death_of_their_worker() {
    let pool = builder(2).restart_budget(1000, Duration::from_secs(1)).build().unwrap();
    let _watchdog = Watchdog::new("packed numbers", Duration::from_secs(60 * PATIENCE));
    let dies_first = |(number, grids): (u32, Vec<(Grid, u8)>)| {
        if worker::attempt().unwrap().get() < number {
            std::process::abort();
        }
        grids
    };
    let handles: Vec<_> = (0..12)
        .map(|number| {
            let task = pool.task(dies_first).retries(10);
            let handle = task.submit((number % 4, grids(OFFERED / 8))).unwrap();
            if number == 5 {
                handle.kill();
            }
            handle
        })
        .collect();
    for (number, handle) in handles.into_iter().enumerate() {
        match outcome(handle) {
            Ok(found) => assert!(found == grids(OFFERED / 8), "{number}"),
            Err(error) => assert_eq!(number, 5, "{error}"),
        }
    }
}

#[test]
fn packed_numbers_beyond_what_is_offered_arrive() {
    let pool = pool(1);
    warm_up(&pool);
    // Each could be offered alone, but not both. The second is encoded number by number, so it is
    // the small one.
    let sizes = [MAX_OFFERED - (4 << 20), 8 << 20];
    let make = |sizes: [usize; 2]| sizes.map(|size| Packed::new(vec![0_u8; size]));
    let values = outcome(pool.submit(make, sizes).unwrap()).unwrap();
    assert_eq!(values.each_ref().map(|it| it.len()), sizes);
    let lengths = |values: [Packed<Vec<u8>>; 2]| values.map(|it| it.len());
    assert_eq!(outcome(pool.submit(lengths, values).unwrap()).unwrap(), sizes);
}

#[test]
fn packed_numbers_take_no_shared_memory() {
    let pool = pool(1);
    warm_up(&pool);
    let before = shared_memory();
    let sent = ("x".to_owned(), Grid::new(count(8 << 20)));
    let value = outcome(pool.submit(|value: (String, Grid)| value, sent.clone()).unwrap()).unwrap();
    assert!(value == sent);
    let grown = shared_memory().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes of shared memory");
}

#[test]
fn a_complete_value_is_not_late_while_it_is_copied() {
    const SIZE: usize = 480 << 20;
    fn ends_just_in_time(limit: Duration) -> Vec<u8> {
        let begin = Instant::now();
        let value = pattern((SIZE, 1));
        while begin.elapsed() + Duration::from_millis(60) < limit {}
        value
    }
    // Over ipc, a worker encodes it.
    let pool = builder(1).link(Link::Ring).build().unwrap();
    let mut limit = Duration::from_millis(750);
    // A worker that is slow, or gets no core at the end, is late indeed.
    wait_until("a value just in time", BOUND, || {
        limit *= 2;
        // The first large value of a worker is encoded, which counts.
        warm_up(&pool);
        let task = pool.task(ends_just_in_time).deadline(limit);
        match outcome(task.submit(limit).unwrap()) {
            Ok(value) => value.len() == SIZE,
            Err(error) if error.is_deadline() => false,
            Err(error) => panic!("{error}"),
        }
    });
}
