//! Tasks with a key, typed and erased, in workers of the same program and of another one.

use std::process::Command;

use brigade::pool::Encoded;
use brigade::{Key, Pool, SharedBuf, SubmitErrorKind, TaskErrorKind};
use brigade_integration::{JOIN, builder, pool};
use brigade_testkit::{BOUND, Watchdog, outcome, repetitions};
use brigade_wire::codec;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Parcel {
    name: String,
    weights: Vec<f32>,
    content: Option<Vec<u8>>,
}

static REPACK: Key<Parcel, (usize, Parcel)> = Key::new("repack/1", |mut parcel: Parcel| {
    parcel.weights.reverse();
    (parcel.weights.len(), parcel)
});
static REVERSE: Key<Vec<u8>, Vec<u8>> = Key::new("reverse/1", |mut bytes: Vec<u8>| {
    bytes.reverse();
    bytes
});
static PICKY: Key<u64, u64> = Key::new("picky/1", brigade_integration::picky);

fn encoded<T: Serialize + 'static>(value: &T) -> Encoded {
    let mut bytes = Vec::new();
    codec::encode(value, &mut bytes, usize::MAX).unwrap();
    Encoded::new(bytes)
}

/// Builds a pool whose workers are another program.
fn server() -> Pool {
    let command = Command::new(env!("CARGO_BIN_EXE_server"));
    builder(2).worker_command(&command).build().unwrap()
}

/// Sizes around the threshold of the arenas and the fragments of a message.
fn parcels() -> impl Strategy<Value = Parcel> {
    let content = prop_oneof![
        Just(None),
        prop_oneof![Just(0_usize), 0..100_usize, 16_300..16_400_usize, Just(40_000)]
            .prop_map(|length| Some((0..=250).cycle().take(length).collect()))
    ];
    let weights = proptest::collection::vec(-1e9_f32..1e9, 0..20);
    (any::<String>(), weights, content).prop_map(|(name, weights, content)| Parcel {
        name,
        weights,
        content,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(repetitions(4)))]
    #[test]
    fn an_erased_task_takes_and_returns_the_bytes_of_the_typed_one(
        parcels in proptest::collection::vec(parcels(), 1..repetitions(40_usize)), chunk in 1_usize..9
    ) {
        let pool = pool(1);
        let expected: Vec<_> = pool.map(&REPACK, parcels.clone()).map(Result::unwrap).collect();
        let (repack, reverse) = (REPACK.erase(), REVERSE.erase());
        let inputs = || parcels.iter().map(encoded);
        let erased = pool.map(&repack, inputs()).chunk(chunk).map(Result::unwrap);
        prop_assert!(erased.eq(expected.iter().map(encoded)));
        let mut unordered: Vec<_> =
            pool.map_unordered(&repack, inputs()).map(|it| it.unwrap().into_bytes()).collect();
        unordered.sort();
        let mut sorted: Vec<_> = expected.iter().map(|it| encoded(it).into_bytes()).collect();
        sorted.sort();
        prop_assert_eq!(unordered, sorted);
        for (parcel, expected) in parcels.iter().zip(&expected) {
            let handle = pool.submit(&repack, encoded(parcel)).expect("a task");
            prop_assert_eq!(outcome(handle).unwrap(), encoded(expected));
            let bytes = parcel.content.clone().unwrap_or_default();
            let handle = pool.submit(&reverse, encoded(&bytes)).expect("a task");
            let reversed: Vec<u8> = bytes.into_iter().rev().collect();
            prop_assert_eq!(outcome(handle).unwrap(), encoded(&reversed));
        }
    }
}

#[test]
fn large_bytes_pass_through_an_erased_task() {
    let pool = pool(2);
    let bytes: Vec<u8> = (0..=250).cycle().take(5 << 20).collect();
    let handle = pool.submit(&REVERSE.erase(), encoded(&bytes)).expect("a task");
    let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    assert!(outcome(handle).unwrap() == encoded(&reversed));
}

#[test]
fn a_worker_of_another_program_finds_the_function_by_its_name() {
    let pool = server();
    let texts = |number: usize| vec!["ab".to_owned(); number];
    let handle = pool.submit(&JOIN, texts(2)).expect("a task");
    assert_eq!(outcome(handle).unwrap(), "abab");
    let named: Key<Vec<String>, String> = Key::named("join/1");
    let handle = pool.try_submit(&named, texts(3)).expect("a task");
    assert_eq!(outcome(handle).unwrap(), "ababab");
    let lengths = pool.map(&named.erase(), (0..500).map(|number| encoded(&texts(number % 9))));
    for (number, result) in (0..500).zip(lengths) {
        assert_eq!(result.unwrap(), encoded(&"ab".repeat(number % 9)));
    }
    let error = outcome(pool.submit(&PICKY, 1).expect("a task")).unwrap_err();
    assert!(error.to_string().contains("unknown function \"picky/1\""), "{error}");
}

#[test]
fn a_worker_program_tells_its_functions() {
    let names = server().registered_functions().unwrap();
    assert!(names.iter().any(|name| name == "double") && names.iter().any(|name| name == "join/1"));
    for name in &names {
        assert_eq!(Key::<Encoded, Encoded>::learned(name).unwrap().name(), name);
        assert!(!name.starts_with("brigade"), "{name}");
    }
    assert!(pool(1).registered_functions().unwrap().is_empty());
}

#[test]
fn a_worker_of_the_same_build_needs_no_names() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("an argument");
    let pool = builder(1).worker_command(&command).build().unwrap();
    assert_eq!(outcome(pool.submit(&JOIN, vec!["a".to_owned()]).expect("a task")).unwrap(), "a");
}

#[test]
fn a_key_without_a_function_needs_another_program() {
    let error = pool(1).submit(&Key::<u8, u8>::named("elsewhere/1"), 7).unwrap_err();
    let SubmitErrorKind::Function { message } = error.kind() else { panic!("{error:?}") };
    assert!(message.contains("\"elsewhere/1\" has no function in this program"), "{message}");
    assert_eq!(error.into_argument(), 7);
    let results: Vec<_> = pool(1).map(&Key::<u8, u8>::named("elsewhere/1"), [7]).collect();
    assert!(matches!(results[..], [Err(ref error)] if error.to_string().contains("elsewhere/1")));
}

#[test]
fn the_name_is_the_label_unless_another_is_set() {
    let pool = pool(1);
    let label = |task: brigade::pool::TaskBuilder<'_, u64, u64>| {
        let error = outcome(task.submit(7).expect("a task")).unwrap_err();
        error.label().map(str::to_owned)
    };
    assert_eq!(label(pool.task(&PICKY)).as_deref(), Some("picky/1"));
    assert_eq!(label(pool.task(&PICKY).label("seven")).as_deref(), Some("seven"));
    // One panics in the middle of a chunk, one dies.
    let results: Vec<_> = pool.map(&PICKY, [1, 7, 2, 50, 3]).chunk(5).collect();
    for failed in [1, 3] {
        assert_eq!(results[failed].as_ref().unwrap_err().label(), Some("picky/1"));
    }
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
}

#[test]
fn an_erased_result_with_buffers_is_an_error_without_leak() {
    static MAKE: Key<u8, SharedBuf> = Key::new("make/1", |byte: u8| {
        let mut buffer = brigade::worker::alloc(1 << 20).expect("memory");
        buffer.fill(byte);
        buffer.freeze()
    });
    let pool = builder(1).buffer_budget(8 << 20).build().unwrap();
    let _watchdog = Watchdog::new("buffers that were not released", BOUND);
    let erased = MAKE.erase();
    for byte in 0..40_u8 {
        let handle = pool.submit(&erased, encoded(&byte)).expect("a task");
        let error = outcome(handle).unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::Codec { .. }), "{error:?}");
        assert!(error.to_string().contains("shared buffers"), "{error}");
    }
    for result in pool.map(&erased, (0..40_u8).map(|byte| encoded(&byte))).chunk(2) {
        assert!(result.unwrap_err().to_string().contains("shared buffers"));
    }
    let handle = pool.submit(&MAKE, 3).expect("a task");
    assert_eq!(outcome(handle).unwrap()[..], vec![3; 1 << 20]);
}
