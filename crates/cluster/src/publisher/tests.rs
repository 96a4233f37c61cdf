//! Tests of replies, and of outstanding publishes against a model.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_nats::{HeaderMap, Message, StatusCode};
use bytes::Bytes;
use proptest::prelude::*;

use super::outstanding::Outstanding;
use super::{ANSWER_TIMEOUT, Publication, RefusalKind, Stored, Verdict};

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
        (r#"{"stream":"S","seq":7}"#, Verdict::Stored(Stored { sequence: 7, is_duplicate: false })),
        (
            r#"{"stream":"S","seq":7,"duplicate":true}"#,
            Verdict::Stored(Stored { sequence: 7, is_duplicate: true }),
        ),
        (
            r#"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"S","seq":0}"#,
            Verdict::Refused(RefusalKind::Exists),
        ),
        (
            r#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"}}"#,
            Verdict::Refused(RefusalKind::Full),
        ),
        (
            r#"{"error":{"code":503,"err_code":10077,"description":"store is closed"}}"#,
            Verdict::Again,
        ),
        (
            r#"{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}"#,
            Verdict::Again,
        ),
        (
            r#"{"error":{"code":400,"err_code":10060,"description":"expected stream does not match"}}"#,
            Verdict::Refused(RefusalKind::Other(
                "expected stream does not match (400/10060)".to_owned(),
            )),
        ),
    ];
    for (payload, expected) in cases {
        assert_eq!(Verdict::of(&reply(payload, None)), expected, "{payload}");
    }
    assert_eq!(Verdict::of(&reply("", Some(StatusCode::NO_RESPONDERS))), Verdict::Again);
    assert!(matches!(Verdict::of(&reply("?", None)), Verdict::Refused(RefusalKind::Other(_))));
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
        let mut now = Instant::now();
        let mut outstanding = Outstanding::default();
        // Number to time of the next attempt, and whether there was a second one.
        let mut model: BTreeMap<u64, (Instant, bool)> = BTreeMap::new();
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
            prop_assert_eq!(outstanding.next_due(), model.values().map(|(due, _)| *due).min());
            prop_assert!(outstanding.next_due().is_none_or(|due| due > now));
        }
    }
}
