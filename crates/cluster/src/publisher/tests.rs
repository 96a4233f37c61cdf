//! Tests of replies, and of outstanding publishes against a model.

use std::collections::BTreeMap;
use std::time::Duration;

use async_nats::{HeaderMap, Message, StatusCode};
use bytes::Bytes;
use proptest::prelude::*;

use super::outstanding::Outstanding;
use super::verdict::Verdict;
use super::{ANSWER_TIMEOUT, Monotonic, Publication, RefusalKind};

fn reply(payload: &'static str, status: Option<StatusCode>) -> Message {
    Message {
        subject: "_INBOX.x.1".into(),
        reply: None,
        payload: Bytes::from_static(payload.as_bytes()),
        headers: None,
        status,
        description: None,
        length: 0,
    }
}

#[test]
fn replies_are_understood() {
    let cases = [
        (r#"{"stream":"S","seq":7}"#, Verdict::Stored(7)),
        (r#"{"stream":"S","seq":7,"duplicate":true}"#, Verdict::Stored(7)),
        (
            r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"S","seq":0}"#,
            Verdict::Refused(RefusalKind::Exists),
        ),
    ];
    for (payload, expected) in cases {
        assert_eq!(Verdict::of(&reply(payload, None)), expected, "{payload}");
    }
    assert_eq!(Verdict::of(&reply("", Some(StatusCode::NO_RESPONDERS))), Verdict::Again);
    assert!(matches!(Verdict::of(&reply("?", None)), Verdict::Refused(RefusalKind::Other(_))));
}

/// Answers of the server's error table that a publish can meet; see `verdict`.
#[test]
fn each_refusal_is_final_or_repeated_or_full() {
    let verdict = |code: u32, err_code: u32, description: &str| {
        let payload = format!(
            r#"{{"error":{{"code":{code},"err_code":{err_code},"description":"{description}"}},"stream":"S","seq":0}}"#
        );
        Verdict::of(&reply(payload.leak(), None))
    };
    for (code, err_code, description) in [
        (400, 10_164, "wrong last sequence"),
        (409, 10_158, "duplicate message id is in process"),
        (503, 10_163, "expected last sequence per subject temporarily unavailable"),
        (429, 10_167, "too many requests"),
        (429, 10_210, "atomic publish too many inflight"),
        (503, 10_063, "expected stream sequence does not match"),
        (503, 10_077, "store is closed"),
        (503, 10_008, "JetStream system temporarily unavailable"),
        (503, 10_039, "JetStream not enabled for account"),
        (500, 10_009, "JetStream cluster can not handle request"),
    ] {
        assert_eq!(verdict(code, err_code, description), Verdict::Again, "{err_code}");
    }
    for (code, err_code, description) in [
        (503, 10_077, "maximum messages exceeded"),
        (503, 10_077, "maximum bytes exceeded"),
        (400, 10_002, "resource limits exceeded for account"),
        (503, 10_023, "insufficient resources"),
        (500, 10_047, "insufficient storage resources available"),
    ] {
        let reason = format!("{description} ({code}/{err_code})");
        assert_eq!(verdict(code, err_code, description), Verdict::Full(reason));
    }
    for (code, err_code, description) in [
        (503, 10_077, "message too large"),
        (400, 10_054, "message size exceeds maximum allowed"),
        (400, 10_060, "expected stream does not match"),
        (400, 10_109, "invalid operation on sealed stream"),
    ] {
        let reason = format!("{description} ({code}/{err_code})");
        let refused = Verdict::Refused(RefusalKind::Other(reason));
        assert_eq!(verdict(code, err_code, description), refused);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Add,
    Answer(usize),
    PutOff(usize, u64),
    LinkBack,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Add),
        3 => any::<usize>().prop_map(Step::Answer),
        1 => (any::<usize>(), 1..3_000_u64).prop_map(|(which, millis)| Step::PutOff(which, millis)),
        1 => Just(Step::LinkBack),
        2 => (1..3_000_u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Each publish has one answer, and is sent again exactly when a plain map says so.
    #[test]
    fn outstanding_publishes_match_a_map(steps in prop::collection::vec(step(), 0..200)) {
        let publication = Publication {
            subject: "s".into(),
            headers: HeaderMap::new(),
            payload: Bytes::new(),
        };
        let mut now = Monotonic::ZERO;
        let mut outstanding = Outstanding::default();
        // Number to time of the next attempt, and whether there was a second one.
        let mut model: BTreeMap<u64, (Monotonic, bool)> = BTreeMap::new();
        let mut added = 0;
        for step in steps {
            match step {
                Step::Add => {
                    let number = outstanding.add(added, publication.clone(), now);
                    prop_assert_eq!(number, added);
                    model.insert(added, (now + ANSWER_TIMEOUT, false));
                    added += 1;
                }
                Step::Answer(which) => {
                    let number = which as u64 % (added + 1);
                    let expected = model.remove(&number).map(|(_, retried)| (number, retried));
                    let answered = outstanding.remove(number);
                    let answered = answered.map(|answered| (answered.tag, answered.is_retried));
                    prop_assert_eq!(answered, expected);
                }
                Step::PutOff(which, millis) => {
                    let number = which as u64 % (added + 1);
                    let due = now + Duration::from_millis(millis);
                    outstanding.put_off(number, due);
                    if let Some(entry) = model.get_mut(&number) {
                        entry.0 = due;
                    }
                }
                Step::LinkBack => {
                    outstanding.make_all_due(now);
                    for entry in model.values_mut() {
                        entry.0 = now;
                    }
                }
                Step::Wait(millis) => now += Duration::from_millis(millis),
            }
            while let Some((number, _)) = outstanding.take_due(now) {
                let entry = model.get_mut(&number).expect("an answered publish was sent again");
                prop_assert!(entry.0 <= now);
                *entry = (now + ANSWER_TIMEOUT, true);
            }
            prop_assert_eq!(outstanding.len(), model.len());
            prop_assert_eq!(outstanding.next_deadline(), model.values().map(|(due, _)| *due).min());
            prop_assert!(outstanding.next_deadline().is_none_or(|due| due > now));
        }
    }
}
