//! Every message decodes to itself, and no other bytes decode.

use proptest::prelude::*;

use super::outcome::VALUE;
use super::*;
use crate::outcome::{PanicReport, Segmented};
use crate::segments::{self, Segment};

const KINDS: u8 = 13;

prop_compose! {
    fn locations()(offset: u64, length: u64) -> Location {
        Location { offset, length }
    }
}

prop_compose! {
    fn chunks()(items: u32, micros in 0..u32::MAX) -> Chunk {
        Chunk { items, budget: Duration::from_micros(micros.into()) }
    }
}

prop_compose! {
    fn limits()(
        soft in proptest::option::of(0..u64::MAX), hard in proptest::option::of(0..u64::MAX),
    ) -> RunLimits {
        RunLimits::new(soft.map(Duration::from_nanos), hard.map(Duration::from_nanos))
    }
}

prop_compose! {
    fn reports()(message: String, location: Option<String>, backtrace: String) -> PanicReport {
        PanicReport { message, location, backtrace }
    }
}

prop_compose! {
    fn ids()(task: u64, attempt: u32, ring_index: u16) -> (TaskId, Attempt, u16) {
        (TaskId::new(task), Attempt::new(attempt), ring_index)
    }
}

fn from_worker(
    (kind, is_item): (u8, bool),
    (task, attempt, ring_index): (TaskId, Attempt, u16),
    nanos: u64,
    value: &[u8],
    report: PanicReport,
) -> FromWorker<'_> {
    let outcome = match kind {
        0 => Outcome::Value(value),
        1 => Outcome::ArgumentCodec(report.message),
        2 => Outcome::ResultCodec(report.message),
        3 => Outcome::UnknownFunction(report.message),
        5 => Outcome::InArena(Location { offset: nanos, length: 7 }),
        4 => Outcome::Panicked(Box::new(report)),
        6..=8 => {
            let location = (kind > 6).then_some(Location { offset: 7, length: nanos });
            let offer = nanos.is_multiple_of(3).then_some(nanos);
            Outcome::Segmented(Box::new(Segmented { location, offer, payload: value }))
        }
        9 => return FromWorker::Keeps(value),
        10 => return FromWorker::Releases(value),
        11 => {
            let (block, address) = (nanos, nanos / 3);
            return FromWorker::Wants(Wanted { ring_index, block, address });
        }
        _ => return FromWorker::Skipped { task, attempt, ring_index },
    };
    if is_item {
        return FromWorker::Item(Item { ring_index, index: attempt.get(), outcome });
    }
    let run_time = Duration::from_nanos(nanos);
    let worn = nanos % 2 == 1;
    let began = Monotonic::from_nanos(nanos / 2);
    FromWorker::Finished(Finished { task, attempt, ring_index, run_time, began, worn, outcome })
}

/// Returns the end with its value that is in the bytes.
fn inline_of(bytes: &[u8]) -> Option<(FinishedInline, &[u8])> {
    let Ok(FromWorker::Finished(finished)) = FromWorker::decode(bytes) else { return None };
    let Finished { task, attempt, ring_index, run_time, began, worn, outcome } = finished;
    let Outcome::Value(value) = outcome else { return None };
    let run_time = u64::try_from(run_time.as_nanos()).expect("it was decoded from a word");
    Some((FinishedInline { task, attempt, ring_index, run_time, began, worn }, value))
}

fn function(offset: u64, name: Option<&str>) -> Function<'_> {
    name.map_or(Function::Offset(offset), |name| Function::Name { name, types: offset })
}

proptest! {
    #[test]
    fn tasks_decode_to_themselves_and_truncated_heads_do_not(
        (task, attempt, ring_index) in ids(), offset: u64,
        name in proptest::option::of("[a-zäß]{0,40}"), argument: Vec<u8>,
        chunk in proptest::option::of(chunks()), location in proptest::option::of(locations()),
        limits in limits(), has_segments: bool, context in proptest::option::of("[0-9a-fß-]{0,60}"),
        granted in proptest::option::of("[a-z0-9=:, ]{0,60}"),
    ) {
        let function = function(offset, name.as_deref());
        let argument = &argument;
        let run = Run {
            task, attempt, ring_index, function, chunk, limits, location, has_segments,
            trace_context: context.as_deref(), granted: granted.as_deref(), argument,
        };
        let inline = RunInline { task, attempt, ring_index, function: offset };
        let is_inline = function == Function::Offset(offset)
            && Run { chunk: None, limits: RunLimits::NONE, location: None, has_segments: false, trace_context: None, granted: None, ..run } == run;
        let message = ToWorker::Run(run);
        let mut bytes = Vec::new();
        message.encode_head(&mut bytes);
        prop_assert_eq!(inline.words().map(u64::to_le_bytes).as_flattened() == bytes, is_inline);
        for cut in 0..bytes.len() {
            prop_assert!(ToWorker::decode(&bytes[..cut]).is_err());
        }
        bytes.extend(message.payload());
        prop_assert_eq!(ToWorker::decode(&bytes), Ok(message));
    }

    #[test]
    fn outcomes_decode_to_themselves_and_truncated_heads_do_not(
        kind in (0..KINDS, any::<bool>()), ids in ids(), nanos: u64, mut value: Vec<u8>, report in reports(),
    ) {
        if kind.0 >= 6 {
            let inline = std::mem::take(&mut value);
            value.extend(if kind.0 == 6 { &*inline } else { &[] });
            let list = [Segment::Inline(&inline), Segment::Result(Location { offset: 1, length: nanos })];
            segments::append(&mut value, &list, usize::MAX).expect("room");
        }
        let message = from_worker(kind, ids, nanos, &value, report);
        let mut bytes = Vec::new();
        message.encode_head(&mut bytes);
        for cut in 0..bytes.len() {
            prop_assert!(FromWorker::decode(&bytes[..cut]).is_err());
        }
        let head = bytes.len();
        let words = FinishedInline::decode(&bytes).map(|inline| inline.words().map(u64::to_le_bytes));
        prop_assert!(words.is_none_or(|words| words.as_flattened() == bytes));
        bytes.extend(message.payload());
        for cut in head..bytes.len() {
            // A text that is truncated within a character is an error; other truncated payloads are
            // shorter ones.
            let _ = FromWorker::decode(&bytes[..cut]);
        }
        let inline = FinishedInline::decode(&bytes).map(|it| (it, FinishedInline::value(&bytes)));
        prop_assert_eq!(inline, inline_of(&bytes));
        prop_assert_eq!(FromWorker::decode(&bytes), Ok(message));
    }

    #[test]
    fn an_end_with_its_value_is_the_same_in_parts(
        kind in 0..2 * VALUE, flags in 0..4_u8, number: u32, bytes in proptest::collection::vec(any::<u8>(), 0..60)
    ) {
        let mut message = Vec::new();
        push(&mut message, first_word(kind, flags, 7, number));
        message.extend(bytes);
        let inline = FinishedInline::decode(&message).map(|it| (it, FinishedInline::value(&message)));
        prop_assert_eq!(inline, inline_of(&message));
    }

    #[test]
    fn random_bytes_never_decode_to_a_larger_message(bytes: Vec<u8>, kind in 0..32_u8) {
        let mut with_kind = bytes.clone();
        with_kind.insert(0, kind);
        for bytes in [&bytes, &with_kind] {
            if let Ok(ToWorker::Run(run)) = ToWorker::decode(bytes) {
                prop_assert!(run.argument.len() < bytes.len());
            }
            if let Ok(FromWorker::Finished(finished)) = FromWorker::decode(bytes) {
                prop_assert!(held(&finished.outcome) < bytes.len());
            }
        }
    }

    #[test]
    fn random_payloads_take_no_more_memory_than_their_bytes(kind in VALUE..=VALUE + 2 * ITEM, payload: Vec<u8>) {
        let mut bytes = Vec::new();
        push(&mut bytes, first_word(kind, 0, 0, 1));
        if kind < ITEM {
            bytes.extend([0; 16]);
        }
        bytes.extend(&payload);
        if let Ok(FromWorker::Finished(Finished { outcome, .. }) | FromWorker::Item(Item { outcome, .. })) =
            FromWorker::decode(&bytes)
        {
            prop_assert!(held(&outcome) <= payload.len());
        }
    }
}

/// Returns the memory that a decoded outcome has allocated or borrows.
fn held(outcome: &Outcome<'_>) -> usize {
    match outcome {
        Outcome::Value(value) => value.len(),
        Outcome::Segmented(segmented) => segmented.payload.len(),
        Outcome::InArena(_) => 0,
        Outcome::Panicked(report) => {
            let location = report.location.as_ref().map_or(0, String::capacity);
            report.message.capacity() + location + report.backtrace.capacity()
        }
        Outcome::ArgumentCodec(text)
        | Outcome::ResultCodec(text)
        | Outcome::UnknownFunction(text) => text.capacity(),
    }
}

#[test]
fn stop_is_exactly_one_word() {
    let mut bytes = Vec::new();
    for message in [ToWorker::Stop, ToWorker::Yourself] {
        bytes.clear();
        message.encode_head(&mut bytes);
        assert_eq!(bytes.len(), 8);
        assert_eq!(ToWorker::decode(&bytes), Ok(message));
    }
    bytes.push(0);
    assert!(ToWorker::decode(&bytes).is_err());
    bytes.pop();
    bytes[1] = 2;
    assert!(ToWorker::decode(&bytes).is_err());
}

#[test]
fn a_chunk_without_a_budget_arrives_without_one() {
    let arrives = |budget| split_chunk_word(chunk_word(&Chunk { items: 5, budget }));
    let longest = Duration::from_micros(u64::from(u32::MAX) - 1);
    for budget in [Duration::ZERO, longest, Duration::MAX] {
        assert_eq!(arrives(budget), Chunk { items: 5, budget });
    }
}

#[test]
fn a_head_is_words_in_little_endian() {
    let (task, attempt, ring_index) = (TaskId::new(0x0102), Attempt::new(3), 0x0405);
    let mut run = Vec::new();
    let function = Function::Name { name: "ab", types: 7 };
    let chunk = Some(Chunk { items: 6, budget: Duration::from_micros(7) });
    ToWorker::Run(Run {
        task,
        attempt,
        ring_index,
        function,
        chunk,
        limits: RunLimits::NONE,
        location: None,
        has_segments: false,
        trace_context: Some("cd"),
        granted: Some("e=1"),
        argument: &[9],
    })
    .encode_head(&mut run);
    let mut expected = words(&[0x0000_0003_0405_3102, 0x0102, 2, 7, 0x0000_0007_0000_0006, 2, 3]);
    expected.extend(b"abcde=1");
    assert_eq!(run, expected);

    let mut finished = Vec::new();
    let run_time = Duration::from_nanos(0x0607);
    let outcome = Outcome::Value(&[9]);
    let began = Monotonic::from_nanos(0x0809);
    let message = Finished { task, attempt, ring_index, run_time, began, worn: false, outcome };
    FromWorker::Finished(message).encode_head(&mut finished);
    assert_eq!(finished, words(&[0x0000_0003_0405_0010, 0x0102, 0x0607, 0x0809]));

    let mut item = Vec::new();
    let outcome = Outcome::Value(&[9]);
    FromWorker::Item(Item { ring_index, index: 8, outcome }).encode_head(&mut item);
    assert_eq!(item, words(&[0x0000_0008_0405_0030]));
}

#[test]
fn a_trace_context_that_is_too_long_is_an_error() {
    let run = |length: usize| {
        let head = [first_word(RUN_OFFSET, HAS_CONTEXT, 0, 1), 1, 2, length as u64];
        let mut bytes = words(&head);
        bytes.extend(vec![b'0'; length]);
        ToWorker::decode(&bytes).is_ok()
    };
    assert!(run(TRACE_CONTEXT_LIMIT));
    assert!(!run(TRACE_CONTEXT_LIMIT + 1));
}

#[test]
fn a_run_time_too_long_for_the_head_is_clamped() {
    let (task, attempt) = (TaskId::new(1), Attempt::first());
    let outcome = Outcome::Value(&[]);
    let (run_time, began) = (Duration::MAX, Monotonic::ZERO);
    let message = Finished { task, attempt, ring_index: 0, run_time, began, worn: false, outcome };
    let mut bytes = Vec::new();
    FromWorker::Finished(message).encode_head(&mut bytes);
    let Ok(FromWorker::Finished(decoded)) = FromWorker::decode(&bytes) else {
        panic!("decodes to another message");
    };
    assert_eq!(decoded.run_time, Duration::from_nanos(u64::MAX));
}

#[test]
fn bytes_after_a_panic_report_are_an_error() {
    let (task, attempt) = (TaskId::new(1), Attempt::first());
    let report = PanicReport { message: "m".to_owned(), location: None, backtrace: String::new() };
    let outcome = Outcome::Panicked(Box::new(report));
    let (run_time, began) = (Duration::ZERO, Monotonic::ZERO);
    let message = Finished { task, attempt, ring_index: 0, run_time, began, worn: false, outcome };
    let mut bytes = Vec::new();
    FromWorker::Finished(message).encode_head(&mut bytes);
    assert!(FromWorker::decode(&bytes).is_ok());
    bytes.push(0);
    assert!(FromWorker::decode(&bytes).is_err());
}

#[test]
fn a_flag_that_no_task_has_is_an_error() {
    let run =
        |flags| ToWorker::decode(&words(&[first_word(RUN_OFFSET, flags, 0, 1), 1, 2])).is_ok();
    assert_eq!([0, HAS_SEGMENTS, FLAGS + 1, 128].map(run), [true, true, false, false]);
}

#[test]
fn an_encoding_in_the_arena_is_not_in_the_message_too() {
    for (encoded, is_right) in [(&b""[..], true), (b"x", false)] {
        let mut payload = encoded.to_vec();
        segments::append(&mut payload, &[], usize::MAX).expect("room");
        let location = Some(Location { offset: 1, length: 2 });
        let segmented = Segmented { location, offer: None, payload: &payload };
        let outcome = Outcome::Segmented(Box::new(segmented));
        let message = FromWorker::Item(Item { ring_index: 0, index: 0, outcome });
        let mut bytes = Vec::new();
        message.encode_head(&mut bytes);
        bytes.extend(message.payload());
        assert_eq!(FromWorker::decode(&bytes).is_ok(), is_right);
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
