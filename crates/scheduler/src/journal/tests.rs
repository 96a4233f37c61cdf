//! Journals of a scheduler that the test drives. Those of whole pools are tested in
//! crates/integration.

use std::fs;
use std::num::NonZeroU32;
use std::time::Duration;

use brigade_base::{Attempt, TaskId, WorkerId};

use super::*;
use crate::{InterruptedAttempt, Returned, Submission, WorkerDeath};

const MILLISECOND: Duration = Duration::from_millis(1);

fn settings() -> Settings {
    Settings {
        workers: 2,
        min_workers: 0,
        spare_workers: 0,
        idle_timeout: None,
        max_tasks: None,
        max_age: None,
        quarantine: 3,
        queue_limit: 10,
        credit: 8,
        restart_limit: 5,
        restart_window: Duration::from_secs(10),
        slow_after: None,
        cores: 1,
        copies: false,
        exclusive_slots: false,
        resources: Vec::new(),
        trusts_workers: true,
        stop_grace: MILLISECOND,
    }
}

/// Returns the journal of two tasks and a chunk: one task finishes, one dies with its worker, and
/// some items of the chunk come back.
fn recorded() -> Vec<u8> {
    let path = std::env::temp_dir().join(format!(
        "brigade-journal-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut journal = Journal::create(&path, &settings()).expect("a journal");
    let (mut scheduler, mut outbox) = (
        Scheduler::new(settings(), |first: &TaskId, at| TaskId::new(first.get() + u64::from(at))),
        Outbox::default(),
    );
    let worker = WorkerId { slot: 0, generation: 1 };
    let submit = |id, items| {
        let (task, items) = (TaskId::new(id), NonZeroU32::new(items));
        Event::Submit(Submission { task, items, retries: 0, constraints: None })
    };
    let next = WorkerId { slot: 0, generation: 2 };
    let returned = Returned {
        worker: next,
        task: TaskId::new(3),
        attempt: Attempt::first(),
        run_time: MILLISECOND,
        worn: false,
        finished: NonZeroU32::MIN,
        parts: 2,
        failed: Vec::new(),
    };
    let interrupted = InterruptedAttempt::of_task(1);
    let death = Box::new(WorkerDeath {
        interrupted: vec![interrupted],
        cause: None,
        gone: true,
        end: "SIGKILL".into(),
    });
    let finished = Event::Finished {
        worker,
        task: TaskId::new(1),
        attempt: Attempt::first(),
        run_time: MILLISECOND,
        worn: false,
        failure: None,
    };
    let events = [
        submit(1, 0),
        Event::Ready { worker },
        finished,
        submit(2, 0),
        Event::Died { worker, death: death.clone() },
        submit(3, 4),
        Event::Ready { worker: next },
        Event::Returned(Box::new(returned)),
        Event::Died { worker: next, death },
    ];
    for (time, event) in (1..).zip(events) {
        journal
            .record(
                &mut scheduler,
                Monotonic::ZERO.saturating_add(MILLISECOND * time),
                event,
                &mut outbox,
            )
            .expect("a record");
        while outbox.pop().is_some() {}
    }
    drop(journal);
    let bytes = fs::read(&path).expect("the journal");
    fs::remove_file(&path).expect("the journal is ours");
    bytes
}

#[test]
fn a_journal_replays_to_the_same_decisions() {
    let played = replay(&*recorded()).expect("the same decisions");
    assert_eq!((played.events, played.torn), (9, false));
    assert!(played.actions >= 6, "{played:?}");
}

#[test]
fn a_truncated_journal_replays_up_to_the_cut() {
    let whole = recorded();
    let mut events = std::collections::BTreeSet::new();
    for length in 1..whole.len() {
        match replay(&whole[..length]) {
            Ok(played) => drop(events.insert(played.events)),
            // The settings are truncated.
            Err(ReplayError::Read(error)) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
            Err(other) => panic!("{length} bytes: {other}"),
        }
    }
    assert_eq!(events.into_iter().collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
}

#[test]
fn a_different_decision_is_reported_with_its_event() {
    let mut bytes = recorded();
    // The last byte belongs to the actions after the last event.
    *bytes.last_mut().expect("bytes") ^= 1;
    let error = replay(&*bytes).expect_err("another decision");
    assert!(matches!(error, ReplayError::Differs { number: 9, .. }), "{error}");
    assert!(error.to_string().contains("after event 9, Died"), "{error}");
}

#[test]
fn a_file_that_is_not_a_journal_is_refused() {
    for (bytes, says) in [
        (&b""[..], "the journal is empty"),
        (b"\x02\0\0\0ab", "does not begin with a version"),
        (b"#!/bin/sh\n", "no event is as long as"),
    ] {
        let error = replay(bytes).expect_err("no journal").to_string();
        assert!(error.contains(says), "{error}");
    }
}
