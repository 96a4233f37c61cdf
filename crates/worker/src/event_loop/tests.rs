//! Tests of the event loop over a memory link, in one process.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_sys::executable::{EntryPoint, FunctionOffset, build_identity};
use brigade_sys::segment::Segment;
use brigade_wire::link::{memory, message_limit};
use brigade_wire::slots::{Grant, Revocation};
use brigade_wire::{Attempt, Chunk, Function, TaskId, codec, items};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use super::*;
use crate::functions::Named;
use crate::panic_capture;
use crate::{Emit, EmitEnd, emitting_function_of, function_of};

const SLOTS: u16 = 8;
const LIMIT: usize = 1024;

/// The host's side of a loop that runs in a thread.
struct Host {
    end: memory::End,
    slots: SlotTable,
    event_loop: JoinHandle<Result<LoopEnd, LoopError>>,
    next: u64,
}

/// The result of a task, copied out of the link.
#[derive(Debug, PartialEq)]
enum Answer {
    Value(Vec<u8>),
    Failed(Failure, String),
    Skipped,
}

#[derive(Debug, PartialEq)]
enum Failure {
    Panic,
    Argument,
    Result,
    Function,
}

impl Host {
    fn start() -> Self {
        panic_capture::install();
        let (end, worker) = memory::pair(message_limit(LIMIT));
        let segment = Segment::create("test", SlotTable::words(SLOTS)).expect("memory");
        let other = segment.as_fd().try_clone_to_owned().expect("a descriptor");
        let other = Segment::open(other, SlotTable::words(SLOTS)).expect("the same memory");
        let table = SlotTable::new(other, SLOTS);
        let event_loop = thread::spawn(move || {
            let functions = Arc::new(Functions::new(Named::new(), build_identity()));
            EventLoop::new(
                worker.sender,
                worker.receiver,
                table,
                None,
                LIMIT,
                functions,
                MemoryLimit::none(),
            )
            .run()
        });
        Self { end, slots: SlotTable::new(segment, SLOTS), event_loop, next: 0 }
    }

    /// Sends a task for `slot` and returns its id.
    fn send<A: Serialize + 'static>(
        &mut self,
        ring_index: u16,
        entry: EntryPoint,
        argument: &A,
    ) -> TaskId {
        let mut encoded = Vec::new();
        codec::encode(argument, &mut encoded, LIMIT).expect("encodes");
        let offset = FunctionOffset::of(entry).expect("a function of this program").raw();
        self.send_raw(ring_index, Function::Offset(offset), &encoded)
    }

    fn send_raw(&mut self, ring_index: u16, function: Function<'_>, argument: &[u8]) -> TaskId {
        let task = TaskId::new(self.next);
        self.next += 1;
        let attempt = Attempt::first();
        self.slots.arm(ring_index, slot_tag(task, attempt));
        self.post(&ToWorker::Run(Run {
            task,
            attempt,
            ring_index,
            function,
            chunk: None,
            limits: brigade_wire::RunLimits::NONE,
            location: None,
            has_segments: false,
            trace_context: None,
            granted: None,
            argument,
        }));
        task
    }

    fn post(&mut self, message: &ToWorker<'_>) {
        let mut head = Vec::new();
        message.encode_head(&mut head);
        self.end.sender.send(&head, message.payload()).expect("the loop runs");
    }

    fn receive(&mut self) -> (TaskId, Answer) {
        let message = self.end.receiver.receive().expect("the loop runs");
        match FromWorker::decode(message).expect("a message") {
            FromWorker::Skipped { task, .. } => (task, Answer::Skipped),
            FromWorker::Item(item) => panic!("an item without a chunk: {item:?}"),
            FromWorker::Keeps(_) | FromWorker::Releases(_) => panic!("no task has buffers"),
            FromWorker::Wants(_) => panic!("no argument has parts"),
            FromWorker::Finished(finished) => {
                assert!(finished.run_time > Duration::ZERO);
                (finished.task, answer(finished.outcome))
            }
        }
    }

    /// Sends a chunk for slot 0.
    fn send_chunk(&mut self, entry: EntryPoint, items: &[u32], budget: Duration) {
        let function = FunctionOffset::of(entry).expect("a function of this program").raw();
        self.send_chunk_of(Function::Offset(function), items, budget);
    }

    fn send_chunk_of(&mut self, function: Function<'_>, items: &[u32], budget: Duration) {
        let mut argument = Vec::new();
        for item in items {
            items::push_with(&mut argument, |bytes| codec::encode(item, bytes, LIMIT))
                .expect("encodes");
        }
        let items = u32::try_from(items.len()).expect("few");
        self.send_raw_chunk(function, Chunk { items, budget }, &argument, false);
    }

    fn send_raw_chunk(
        &mut self,
        function: Function<'_>,
        chunk: Chunk,
        argument: &[u8],
        has_segments: bool,
    ) {
        let (task, attempt, ring_index) = (TaskId::new(700), Attempt::first(), 0);
        self.slots.reset_items(ring_index);
        self.slots.arm(ring_index, slot_tag(task, attempt));
        self.post(&ToWorker::Run(Run {
            task,
            attempt,
            ring_index,
            function,
            chunk: Some(chunk),
            limits: brigade_wire::RunLimits::NONE,
            location: None,
            has_segments,
            trace_context: None,
            granted: None,
            argument,
        }));
    }

    /// Returns the results of the items of a chunk, up to its end.
    fn items(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        loop {
            let message = self.end.receiver.receive().expect("the loop runs");
            match FromWorker::decode(message).expect("a message") {
                FromWorker::Item(item) => {
                    assert_eq!(item.index as usize, answers.len());
                    answers.push(answer(item.outcome));
                }
                FromWorker::Finished(finished) => {
                    assert_eq!(finished.outcome, Outcome::Value(&[]));
                    return answers;
                }
                FromWorker::Skipped { .. } => panic!("skipped"),
                FromWorker::Keeps(_) | FromWorker::Releases(_) => panic!("no task has buffers"),
                FromWorker::Wants(_) => panic!("no argument has parts"),
            }
        }
    }

    fn value<T: DeserializeOwned + 'static>(&mut self) -> T {
        match self.receive() {
            (_, Answer::Value(bytes)) => codec::decode(&bytes).expect("decodes"),
            (task, other) => panic!("{task} has {other:?} instead of a value"),
        }
    }

    fn failure(&mut self, expected: &Failure) -> String {
        match self.receive() {
            (_, Answer::Failed(failure, text)) if failure == *expected => text,
            (task, other) => panic!("{task} did not fail with {expected:?}: {other:?}"),
        }
    }

    /// Checks that the loop still works, then stops it.
    fn stop(mut self) {
        self.send(0, function_of(double), &4_u32);
        assert_eq!(self.value::<u32>(), 8, "the loop no longer works");
        self.post(&ToWorker::Stop);
        assert!(matches!(self.event_loop.join(), Ok(Ok(LoopEnd::Stopped))));
    }
}

fn answer(outcome: Outcome<'_>) -> Answer {
    match outcome {
        Outcome::Value(bytes) => Answer::Value(bytes.to_vec()),
        Outcome::InArena(_) => panic!("there is no arena"),
        Outcome::Segmented(_) => panic!("no task returns buffers"),
        Outcome::Panicked(report) => Answer::Failed(Failure::Panic, report.message),
        Outcome::ArgumentCodec(text) => Answer::Failed(Failure::Argument, text),
        Outcome::ResultCodec(text) => Answer::Failed(Failure::Result, text),
        Outcome::UnknownFunction(text) => Answer::Failed(Failure::Function, text),
    }
}

fn double(number: u32) -> u32 {
    2 * number
}

#[test]
fn items_of_a_chunk_are_reported_and_fail_one_by_one() {
    let mut host = Host::start();
    let picky = |number: u32| assert!(number != 2, "no {number}");
    host.send_chunk(function_of(picky), &[1, 2, 3], Duration::MAX);
    let failed = Answer::Failed(Failure::Panic, "no 2".to_owned());
    assert_eq!(host.items(), [Answer::Value(vec![]), failed, Answer::Value(vec![])]);
    assert_eq!(host.slots.begun_items(0), 3);
    host.stop();
}

#[test]
fn an_item_leaves_nothing_to_the_next_one() {
    let mut host = Host::start();
    let mixed = |number: u32| match number {
        0 => vec![(1_u8,); 2 * LIMIT],
        1 => panic!("no 1"),
        number => vec![(7,); number as usize],
    };
    host.send_chunk(function_of(mixed), &[3, 0, 2, 1, 4], Duration::MAX);
    let answers = host.items();
    assert_eq!(answers[0], Answer::Value(vec![3, 7, 7, 7]));
    assert!(matches!(answers[1], Answer::Failed(Failure::Result, _)), "{:?}", answers[1]);
    assert_eq!(answers[2], Answer::Value(vec![2, 7, 7]));
    assert_eq!(answers[3], Answer::Failed(Failure::Panic, "no 1".to_owned()));
    assert_eq!(answers[4], Answer::Value(vec![4, 7, 7, 7, 7]));
    host.stop();
}

#[test]
fn an_item_with_a_malformed_list_of_buffers_fails_alone() {
    let mut host = Host::start();
    let mut argument = Vec::new();
    for (number, count) in [(1_u32, 0), (2, 9), (3, 0)] {
        let mut item = Vec::new();
        codec::encode(&number, &mut item, LIMIT).expect("encodes");
        // The number of buffers that precede this, of which there are none.
        item.extend_from_slice(&u64::to_le_bytes(count));
        items::push(&mut argument, &item).expect("a short item");
    }
    let function = FunctionOffset::of(function_of(double)).expect("a function of this program");
    let chunk = Chunk { items: 3, budget: Duration::MAX };
    host.send_raw_chunk(Function::Offset(function.raw()), chunk, &argument, true);
    let answers = host.items();
    assert_eq!(answers[0], Answer::Value(vec![2]));
    assert!(matches!(answers[1], Answer::Failed(Failure::Argument, _)), "{:?}", answers[1]);
    assert_eq!(answers[2], Answer::Value(vec![6]));
    host.stop();
}

#[test]
fn an_unknown_function_fails_each_item_of_its_chunk() {
    let mut host = Host::start();
    host.send_chunk_of(Function::Offset(u64::MAX), &[1, 2, 3], Duration::MAX);
    let answers = host.items();
    let failed = |answer: &Answer| matches!(answer, Answer::Failed(Failure::Function, _));
    assert!(answers.len() == 3 && answers.iter().all(failed), "{answers:?}");
    assert_eq!(host.slots.begun_items(0), 3);
    host.stop();
}

#[test]
fn a_chunk_that_exceeds_its_budget_returns_the_remaining_items() {
    let mut host = Host::start();
    let wait = |millis: u32| {
        let end = clock::now().saturating_add(Duration::from_millis(millis.into()));
        while clock::now() < end {}
    };
    // The items that do nothing stay far below the budget on an emulated machine too.
    host.send_chunk(function_of(wait), &[0, 0, 600, 0, 0], Duration::from_millis(500));
    assert_eq!(host.items().len(), 3);
    assert_eq!(host.slots.begun_items(0), 3);
    host.stop();
}

fn count(to: u32, emit: &mut Emit<'_, u32>) {
    for number in 0..to {
        if emit.emit(number).is_err() {
            return;
        }
    }
}

#[test]
fn items_are_emitted_as_they_are_granted() {
    let mut host = Host::start();
    host.slots.set_grant(1, Grant::UpTo(0));
    host.send(1, emitting_function_of(count), &3_u32);
    for index in 0..3 {
        host.slots.change_grant(1, Grant::UpTo(u64::from(index) + 1));
        let message = host.end.receiver.receive().expect("the loop runs");
        let FromWorker::Item(item) = FromWorker::decode(message).expect("a message") else {
            panic!("no item {index}");
        };
        let value = codec::decode::<u32>(match item.outcome {
            Outcome::Value(bytes) => bytes,
            other => panic!("{other:?}"),
        });
        assert_eq!((item.ring_index, item.index, value.ok()), (1, index, Some(index)));
    }
    assert_eq!(host.value::<EmitEnd>(), EmitEnd::Complete);
    host.stop();
}

#[test]
fn a_task_whose_items_nobody_wants_is_released() {
    let mut host = Host::start();
    host.slots.set_grant(1, Grant::UpTo(0));
    host.send(1, emitting_function_of(count), &3_u32);
    host.slots.change_grant(1, Grant::Closed);
    assert_eq!(host.value::<EmitEnd>(), EmitEnd::Closed);
    host.stop();
}

#[test]
fn a_value_is_returned_and_stop_ends_the_loop() {
    let mut host = Host::start();
    host.send(0, function_of(double), &21_u32);
    assert_eq!(host.value::<u32>(), 42);
    host.stop();
}

#[test]
fn outcomes_are_sent_in_order() {
    let mut host = Host::start();
    let sent: Vec<TaskId> =
        (0..SLOTS).map(|slot| host.send(slot, function_of(double), &u32::from(slot))).collect();
    for (task, number) in sent.into_iter().zip(0..) {
        let bytes = vec![2 * number];
        assert_eq!(host.receive(), (task, Answer::Value(bytes)));
    }
    host.stop();
}

#[test]
fn a_panic_is_reported_and_the_loop_goes_on() {
    let mut host = Host::start();
    let fail = |number: u32| -> u32 { panic!("no {number}") };
    host.send(0, function_of(fail), &7_u32);
    assert_eq!(host.failure(&Failure::Panic), "no 7");
    host.stop();
}

/// A type whose serde code or drop misbehaves as the number says.
struct Awkward(u8);

const PANICS_IN_DROP: u8 = 1;
const PANICS_WHEN_ENCODED: u8 = 2;
const REFUSES_TO_BE_ENCODED: u8 = 3;

impl Serialize for Awkward {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(self.0 != PANICS_WHEN_ENCODED, "panicked in serialize");
        if self.0 == REFUSES_TO_BE_ENCODED {
            return Err(serde::ser::Error::custom("refused"));
        }
        serializer.serialize_u8(self.0)
    }
}

impl Drop for Awkward {
    fn drop(&mut self) {
        assert!(self.0 != PANICS_IN_DROP, "panicked in drop");
    }
}

#[derive(Debug)]
struct Unreadable;

impl Serialize for Unreadable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> Deserialize<'de> for Unreadable {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("panicked in deserialize")
    }
}

#[test]
fn panics_of_argument_and_result_types_fail_the_task() {
    let mut host = Host::start();
    host.send(0, function_of(Awkward), &PANICS_IN_DROP);
    assert_eq!(host.failure(&Failure::Panic), "panicked in drop");
    host.send(0, function_of(Awkward), &PANICS_WHEN_ENCODED);
    assert_eq!(host.failure(&Failure::Panic), "panicked in serialize");
    host.send(0, function_of(|_: Unreadable| 0_u8), &());
    assert_eq!(host.failure(&Failure::Panic), "panicked in deserialize");
    host.stop();
}

#[test]
fn a_result_that_cannot_be_encoded_fails_only_its_task() {
    let mut host = Host::start();
    host.send(0, function_of(Awkward), &REFUSES_TO_BE_ENCODED);
    assert!(host.failure(&Failure::Result).contains("Awkward"));
    host.send(0, function_of(|length: usize| vec![0_u8; length]), &(LIMIT + 1));
    assert!(host.failure(&Failure::Result).contains(&LIMIT.to_string()));
    host.stop();
}

#[test]
fn a_result_as_large_as_the_limit_is_returned() {
    let mut host = Host::start();
    let length_takes = 2;
    host.send(0, function_of(|length: usize| vec![0_u8; length]), &(LIMIT - length_takes));
    assert_eq!(host.value::<Vec<u8>>().len(), LIMIT - length_takes);
    host.stop();
}

#[test]
fn an_argument_that_cannot_be_decoded_fails_only_its_task() {
    let mut host = Host::start();
    host.send(0, function_of(|text: String| text), &u64::MAX);
    assert!(host.failure(&Failure::Argument).contains("String"));
    host.stop();
}

#[test]
fn an_unknown_function_fails_only_its_task() {
    let mut host = Host::start();
    host.send_raw(0, Function::Offset(u64::MAX), &[]);
    assert!(host.failure(&Failure::Function).contains("not the same program"));
    host.send_raw(0, Function::Name { name: "resize", types: 0 }, &[]);
    let text = host.failure(&Failure::Function);
    assert!(text.contains("\"resize\"") && text.contains("no function by name"), "{text}");
    host.stop();
}

#[test]
fn a_revoked_task_is_skipped_and_does_not_run() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let mut host = Host::start();
    let count = function_of(|()| RUNS.fetch_add(1, Ordering::SeqCst));
    let holding = host.send(0, function_of(wait_for_gate), &());
    let revoked = host.send(1, count, &());
    assert_eq!(host.slots.revoke(1, slot_tag(revoked, Attempt::first())), Revocation::Revoked);
    GATE.open();
    assert_eq!(host.receive(), (holding, Answer::Value(Vec::new())));
    assert_eq!(host.receive(), (revoked, Answer::Skipped));
    assert_eq!(host.slots.running_since(1), None);
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
    host.stop();
}

/// Blocks a task until the test opens it.
struct Gate(Mutex<bool>, Condvar);

static GATE: Gate = Gate(Mutex::new(false), Condvar::new());

impl Gate {
    fn open(&self) {
        *self.0.lock().expect("no panic") = true;
        self.1.notify_all();
    }
}

fn wait_for_gate((): ()) {
    let shut = GATE.0.lock().expect("no panic");
    drop(GATE.1.wait_while(shut, |open| !*open));
}

#[test]
fn a_task_with_a_stale_or_invalid_slot_is_skipped() {
    let mut host = Host::start();
    let task = TaskId::new(900);
    for ring_index in [3, SLOTS, u16::MAX] {
        let run = Run {
            task,
            attempt: Attempt::first(),
            ring_index,
            function: Function::Offset(0),
            chunk: None,
            limits: brigade_wire::RunLimits::NONE,
            location: None,
            has_segments: false,
            trace_context: None,
            granted: None,
            argument: &[],
        };
        host.post(&ToWorker::Run(run));
        assert_eq!(host.receive(), (task, Answer::Skipped));
    }
    host.stop();
}

/// After sending the outcome, the worker must not touch the slot, which may hold the next task by
/// then.
#[test]
fn a_slot_can_be_armed_again_as_soon_as_its_outcome_arrives() {
    let mut host = Host::start();
    for number in 0..5_000_u32 {
        host.send(0, function_of(double), &number);
        assert_eq!(host.value::<u32>(), 2 * number);
    }
    host.stop();
}

#[test]
fn a_closed_link_is_an_error() {
    let host = Host::start();
    drop(host.end);
    assert!(matches!(host.event_loop.join(), Ok(Err(LoopError::Closed))));
}

#[test]
fn a_malformed_message_ends_the_loop() {
    let mut host = Host::start();
    host.end.sender.send(&[0xff; 40], &[]).expect("the loop runs");
    assert!(matches!(host.event_loop.join(), Ok(Err(LoopError::Message(_)))));
}

#[test]
fn an_outcome_that_cannot_be_sent_ends_the_loop() {
    let mut host = Host::start();
    // Only the direction to the host is closed, as by a task that closes descriptors.
    host.end.receiver = memory::pair(1).0.receiver;
    host.send(0, function_of(double), &1_u32);
    let ended = host.event_loop.join().expect("no panic");
    assert!(matches!(ended, Err(LoopError::Send(LinkError::Closed))), "{ended:?}");
}
