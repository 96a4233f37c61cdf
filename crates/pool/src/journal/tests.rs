//! Journals of a machine that is told by hand; those of whole pools are in crates/integration.

use std::fs;

use brigade_wire::{Attempt, TaskId, WorkerId};

use super::*;
use crate::machine::Submission;

const MILLISECOND: Duration = Duration::from_millis(1);

fn settings() -> Settings {
    Settings {
        workers: 2,
        min_workers: 0,
        idle_timeout: None,
        max_tasks: None,
        max_age: None,
        quarantine: 3,
        queue_limit: 10,
        credit: 8,
        restart_limit: 5,
        restart_window: Duration::from_secs(10),
        stop_grace: MILLISECOND,
    }
}

/// Two tasks, of which one is answered and one dies with its worker; the bytes of the journal.
fn recorded() -> Vec<u8> {
    let path = std::env::temp_dir().join(format!(
        "brigade-journal-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let mut journal = Journal::create(&path, &settings()).expect("a journal");
    let (mut machine, mut outbox) = (Machine::new(settings()), Outbox::default());
    let worker = WorkerId { slot: 0, generation: 1 };
    let submit = |id| {
        let (id, attempt) = (TaskId::new(id), Attempt::first());
        Event::Submit(Submission { id, task: "task", attempt, retries: 0, terms: None })
    };
    let finished = Event::Finished {
        worker,
        task: TaskId::new(1),
        attempt: Attempt::first(),
        run_time: MILLISECOND,
        worn: false,
    };
    let events = [
        submit(1),
        Event::Ready { worker },
        finished,
        submit(2),
        Event::Died { worker, ran: vec![0] },
        Event::Tick,
    ];
    for (time, event) in (1..).zip(events) {
        journal.record(&mut machine, MILLISECOND * time, event, &mut outbox).expect("a record");
        while let Some(action) = outbox.pop() {
            if let Action::Rearm = action {
                machine.arm();
            }
        }
    }
    drop(journal);
    let bytes = fs::read(&path).expect("the journal");
    fs::remove_file(&path).expect("the journal is ours");
    bytes
}

#[test]
fn a_journal_plays_as_it_was_recorded() {
    let played = replay(&*recorded()).expect("the same decisions");
    assert_eq!((played.events, played.torn), (6, false));
    assert!(played.actions >= 6, "{played:?}");
}

#[test]
fn a_journal_that_was_cut_off_plays_up_to_there() {
    let whole = recorded();
    let mut events = std::collections::BTreeSet::new();
    for length in 1..whole.len() {
        match replay(&whole[..length]) {
            Ok(played) => drop(events.insert(played.events)),
            // Not even the settings are whole.
            Err(ReplayError::Read(error)) => assert_eq!(error.kind(), ErrorKind::UnexpectedEof),
            Err(other) => panic!("{length} bytes: {other}"),
        }
    }
    assert_eq!(events.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn another_decision_is_told_with_its_event() {
    let mut bytes = recorded();
    // The last byte belongs to the actions after the last event.
    *bytes.last_mut().expect("bytes") ^= 1;
    let error = replay(&*bytes).expect_err("another decision");
    assert!(matches!(error, ReplayError::Differs { number: 6, .. }), "{error}");
    assert!(error.to_string().contains("after event 6, Tick,"), "{error}");
}

#[test]
fn what_is_no_journal_is_refused() {
    for (bytes, says) in [
        (&b""[..], "it is empty"),
        (b"\x02\0\0\0ab", "does not begin with a version"),
        (b"#!/bin/sh\n", "more than any event takes"),
    ] {
        let error = replay(bytes).expect_err("no journal").to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    let error =
        Journal::create(Path::new("/no/such/folder/journal"), &settings()).expect_err("no folder");
    let text = error.to_string();
    assert!(text.starts_with("journal: /no/such/folder/journal cannot be written: "), "{text}");
}
