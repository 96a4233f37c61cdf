//! Tests of messages: their way there and back, cuts, and garbage.

use std::time::Duration;

use brigade_task::{Retry, TaskError, TaskErrorKind};
use proptest::prelude::*;

use super::*;
use crate::names::{ItemId, Origin, TaskKey};

impl TaskHead {
    /// Returns the head of a task with the default settings.
    pub(crate) fn new(key: TaskKey, name: impl Into<String>) -> Self {
        Self {
            key,
            name: name.into(),
            label: None,
            items: 1,
            is_chunk: false,
            run: RunSettings::default(),
            may_be_done: false,
            announces_start: false,
            submitted_at: 0,
        }
    }
}

fn key() -> impl Strategy<Value = TaskKey> {
    ("~?[A-Za-z0-9_-]{1,64}", "[A-Za-z0-9_-]{1,64}").prop_map(|(origin, item)| TaskKey {
        origin: origin.parse::<Origin>().unwrap(),
        item: item.parse::<ItemId>().unwrap(),
    })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![proptest::collection::vec(any::<u8>(), 0..300), Just(vec![7; 20_000])]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        proptest::collection::vec(bytes(), 0..5).prop_map(|items| Body::Inline(encoded(&items))),
        (any::<String>(), any::<u64>())
            .prop_map(|(object, length)| Body::Stored(StoredBody { object, length })),
    ]
}

fn encoded(items: &[Vec<u8>]) -> Items {
    let mut builder = ItemsBuilder::default();
    for item in items {
        builder.push(item);
    }
    builder.finish()
}

fn task() -> impl Strategy<Value = TaskMessage> {
    let settings = (any::<Option<String>>(), any::<u32>(), any::<bool>(), any::<Option<u32>>());
    let counts = (any::<u32>(), any::<u32>(), any::<bool>(), any::<u64>());
    (key(), any::<String>(), settings, counts, body()).prop_map(
        |(key, name, settings, counts, body)| {
            let mut head = TaskHead::new(key, name);
            (head.label, head.items, head.is_chunk) = (settings.0, settings.1, settings.2);
            head.run.deadline = settings.3.map(|millis| Duration::from_millis(millis.into()));
            let retries;
            (retries, head.run.max_deaths, head.may_be_done, head.submitted_at) = counts;
            head.run.retry = Retry::of(retries).delay(Duration::from_secs(1));
            (head.run.retries_panics, head.run.retries_errors) = (settings.2, !settings.2);
            TaskMessage { head, body }
        },
    )
}

fn outcome() -> impl Strategy<Value = OutcomeMessage> {
    let hashes = proptest::collection::vec(any::<u64>(), 0..5);
    (any::<String>(), any::<u32>(), any::<u64>(), hashes, body()).prop_map(
        |(by, items, delivery, input_hashes, body)| {
            let mut head = OutcomeHead::new(by, items);
            (head.delivery, head.input_hashes) = (delivery, input_hashes);
            OutcomeMessage { head, body }
        },
    )
}

proptest! {
    #[test]
    fn a_task_survives_its_way(task in task()) {
        let message = task.to_bytes().unwrap();
        prop_assert_eq!(TaskMessage::from_bytes(&message).unwrap(), task);
    }

    #[test]
    fn an_outcome_survives_its_way(outcome in outcome()) {
        let message = outcome.to_bytes().unwrap();
        prop_assert_eq!(OutcomeMessage::from_bytes(&message).unwrap(), outcome);
    }

    #[test]
    fn items_survive_their_way(items in proptest::collection::vec(bytes(), 0..20)) {
        let found: Vec<Vec<u8>> = encoded(&items).map(|item| item.unwrap().to_vec()).collect();
        prop_assert_eq!(found, items);
    }

    #[test]
    fn a_cut_message_never_panics(task in task(), cut in 0_usize..400) {
        let message = task.to_bytes().unwrap();
        let cut = cut.min(message.len());
        if let Ok(task) = TaskMessage::from_bytes(&message.slice(..cut))
            && let Body::Inline(items) = task.body
        {
            items.for_each(drop);
        }
    }

    #[test]
    fn garbage_never_panics(garbage in proptest::collection::vec(any::<u8>(), 0..200), version in any::<bool>()) {
        let mut garbage = garbage;
        if version && let Some(first) = garbage.first_mut() {
            *first = version_of_this_program();
        }
        let garbage = Bytes::from(garbage);
        let _ = TaskMessage::from_bytes(&garbage);
        let _ = OutcomeMessage::from_bytes(&garbage);
        let _ = History::from_bytes(&garbage);
        let _ = DeadLetterMessage::from_bytes(&garbage);
        let _ = CancelMessage::from_bytes(&garbage);
        let _ = Manifest::from_bytes(&garbage);
        let _ = NodeStatus::from_bytes(&garbage);
        let _ = item_outcome(garbage.clone());
        Items::from_bytes(garbage).for_each(drop);
    }
}

#[test]
fn a_message_of_another_version_says_so() {
    let mut message = CancelMessage {
        key: TaskKey { origin: Origin::batch("b").unwrap(), item: ItemId::number(1) },
        kill: true,
    }
    .to_bytes()
    .unwrap()
    .to_vec();
    message[0] = 9;
    let error = CancelMessage::from_bytes(&message.into()).unwrap_err();
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn outcomes_of_items_keep_their_kind() {
    let mut builder = ItemsBuilder::default();
    builder.push_value(b"");
    let failure = TaskError::of(TaskErrorKind::Cancelled, Some("label"), 1, None);
    builder.push_error(&failure);
    builder.push(&[1]);
    assert_eq!(builder.count(), 3);
    let mut items = builder.finish().map(|item| item_outcome(item.unwrap()));
    assert_eq!(items.next().unwrap().unwrap().unwrap(), Bytes::new());
    let found = items.next().unwrap().unwrap().unwrap_err();
    assert_eq!((found.kind(), found.label()), (failure.kind(), Some("label")));
    assert!(items.next().unwrap().is_err(), "an empty failure is malformed");
}
