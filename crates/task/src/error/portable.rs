//! Errors of tasks on their way to another program, which may be of another version.
//!
//! The layout of a [`Portable`] never changes: a new kind of failure gets a new code, and what it
//! contains is a list of texts and a list of numbers. So a program reads the errors of newer ones.
//! The calls of a task are bytes, which other versions need not understand.

use std::sync::Arc;
use std::time::Duration;

use brigade_sandbox::{Limit, calls};
use brigade_sys::process::Exit;
use brigade_wire::{Attempt, codec};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

use super::{Circumstances, TaskError, TaskErrorKind};

const VERSION: u8 = 1;

/// Longer texts are cut.
const TEXT_LIMIT: usize = 64 << 10;

/// Maximum number of bytes for the calls of a task. The deepest stack with the longest names takes
/// fewer.
const PLACES_LIMIT: usize = 256 << 10;

const QUARANTINED: u8 = 1;
const IN_THE_QUEUE: u8 = 2;
const BROKE_PROTOCOL: u8 = 4;

#[derive(serde::Serialize, serde::Deserialize)]
struct Portable<T> {
    version: u8,
    /// The code of the kind.
    kind: u8,
    texts: Vec<T>,
    numbers: Vec<i64>,
    attempt: u32,
    label: Option<T>,
    elapsed: Option<Duration>,
    flags: u8,
    /// The crash and the stack, which are missing for a version that cannot decode them.
    places: Vec<u8>,
}

/// Contains everything but the task's id, which has a meaning only in its own pool.
impl Serialize for TaskError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let inner = &*self.inner;
        let (kind, texts, numbers) = parts(&inner.kind);
        let Circumstances { elapsed, quarantined, in_the_queue, broke_protocol, crash, stack } =
            &inner.circumstances;
        let mut places = Vec::new();
        if codec::encode(&(crash.clone(), stack.clone()), &mut places, PLACES_LIMIT).is_err() {
            places.clear();
        }
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let portable = Portable {
            version: VERSION,
            kind,
            texts: texts.into_iter().map(cut).collect(),
            numbers,
            attempt: inner.attempt.get(),
            label: inner.label.as_deref().map(cut),
            elapsed: *elapsed,
            flags: flag(*quarantined, QUARANTINED)
                | flag(*in_the_queue, IN_THE_QUEUE)
                | flag(*broke_protocol, BROKE_PROTOCOL),
            places,
        };
        portable.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TaskError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let portable = Portable::<String>::deserialize(deserializer)?;
        let Portable { version, kind, texts, numbers, attempt, label, elapsed, flags, places } =
            portable;
        if version != VERSION {
            let problem = format_args!("the error of a task has the unknown version {version}");
            return Err(D::Error::custom(problem));
        }
        let mut error = Self::new(kind_of(kind, texts, &numbers));
        let (crash, stack) = codec::decode(&places).unwrap_or_default();
        error.inner.attempt = Attempt::new(attempt);
        error.inner.label = label.map(|label| Arc::from(cut(&label)));
        Ok(error.under(Circumstances {
            elapsed,
            quarantined: flags & QUARANTINED != 0,
            in_the_queue: flags & IN_THE_QUEUE != 0,
            broke_protocol: flags & BROKE_PROTOCOL != 0,
            crash,
            stack,
        }))
    }
}

/// Returns the code of a kind, its texts and its numbers.
fn parts(kind: &TaskErrorKind) -> (u8, Vec<&str>, Vec<i64>) {
    match kind {
        TaskErrorKind::Panicked { message, location, backtrace } => {
            (0, vec![message, location, backtrace], vec![])
        }
        TaskErrorKind::WorkerDied { pid, exit, stderr_tail } => {
            let (tag, number) = match *exit {
                Exit::Code(code) => (0, code),
                Exit::Signal(signal) => (1, signal),
                _ => (2, 0),
            };
            (1, vec![stderr_tail], vec![(*pid).into(), tag, number.into()])
        }
        TaskErrorKind::DeadlineExceeded { limit, elapsed } => {
            (2, vec![], vec![nanos(*limit), nanos(*elapsed)])
        }
        TaskErrorKind::Cancelled => (3, vec![], vec![]),
        TaskErrorKind::Killed => (4, vec![], vec![]),
        TaskErrorKind::Codec { message } => (5, vec![message], vec![]),
        TaskErrorKind::Function { message } => (6, vec![message], vec![]),
        TaskErrorKind::PoolBroken { reason } => (7, vec![reason], vec![]),
        TaskErrorKind::PoolClosed => (8, vec![], vec![]),
        TaskErrorKind::Forked => (9, vec![], vec![]),
        TaskErrorKind::GivenUp { deaths, reason } => (10, vec![reason], vec![(*deaths).into()]),
        TaskErrorKind::Disconnected { reason } => (11, vec![reason], vec![]),
        TaskErrorKind::Lost { reason } => (12, vec![reason], vec![]),
        TaskErrorKind::LimitExceeded { limit, used } => (
            13,
            vec![],
            [Some(*limit), *used].into_iter().flatten().flat_map(limit_parts).collect(),
        ),
        TaskErrorKind::Denied { call, pid } => (14, vec![call], vec![(*pid).into()]),
        TaskErrorKind::Needs { message } => (15, vec![message], vec![]),
    }
}

/// Returns the kind of a code. That of a newer version says so, and is otherwise a broken pool.
fn kind_of(code: u8, texts: Vec<String>, numbers: &[i64]) -> TaskErrorKind {
    let mut texts = texts.into_iter().map(cut_to_limit);
    let mut text = || texts.next().unwrap_or_default();
    let number = |index: usize| numbers.get(index).copied().unwrap_or_default();
    let unsigned = |index| u32::try_from(number(index)).unwrap_or_default();
    match code {
        0 => TaskErrorKind::Panicked { message: text(), location: text(), backtrace: text() },
        1 => {
            let exit = match (number(1), i32::try_from(number(2))) {
                (0, Ok(code)) => Exit::Code(code),
                (1, Ok(signal)) => Exit::Signal(signal),
                _ => Exit::Unknown,
            };
            TaskErrorKind::WorkerDied { pid: unsigned(0), exit, stderr_tail: text() }
        }
        2 => TaskErrorKind::DeadlineExceeded {
            limit: Duration::from_nanos(number(0).unsigned_abs()),
            elapsed: Duration::from_nanos(number(1).unsigned_abs()),
        },
        3 => TaskErrorKind::Cancelled,
        4 => TaskErrorKind::Killed,
        5 => TaskErrorKind::Codec { message: text() },
        6 => TaskErrorKind::Function { message: text() },
        7 => TaskErrorKind::PoolBroken { reason: text() },
        8 => TaskErrorKind::PoolClosed,
        9 => TaskErrorKind::Forked,
        10 => TaskErrorKind::GivenUp { deaths: unsigned(0), reason: text() },
        11 => TaskErrorKind::Disconnected { reason: text() },
        12 => TaskErrorKind::Lost { reason: text() },
        13 if limit_at(numbers, 0).is_some() => TaskErrorKind::LimitExceeded {
            limit: limit_at(numbers, 0).unwrap_or(Limit::Memory(0)),
            used: limit_at(numbers, 2),
        },
        14 => TaskErrorKind::Denied {
            call: calls::named(&text()).map_or("unknown", |line| line.name),
            pid: unsigned(0),
        },
        15 => TaskErrorKind::Needs { message: text() },
        newer => TaskErrorKind::PoolBroken {
            reason: format!(
                "a newer version of Brigade reports a failure of kind {newer}, which this one does not know: {}",
                text()
            ),
        },
    }
}

/// Returns a limit as its kind and its number.
fn limit_parts(limit: Limit) -> [i64; 2] {
    let (kind, number) = limit.to_parts();
    [kind.into(), i64::try_from(number).unwrap_or(i64::MAX)]
}

/// Returns the limit whose kind is the number at `index`.
fn limit_at(numbers: &[i64], index: usize) -> Option<Limit> {
    let kind = u8::try_from(*numbers.get(index)?).ok()?;
    Limit::from_parts(kind, numbers.get(index + 1)?.unsigned_abs())
}

fn nanos(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

fn cut(text: &str) -> &str {
    let end = (0..=TEXT_LIMIT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn cut_to_limit(mut text: String) -> String {
    text.truncate(cut(&text).len());
    text
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use brigade_crash::{CrashReport, Files, Stack};
    use brigade_sys::crash::Snapshot;
    use proptest::prelude::*;

    use super::*;

    fn limit() -> impl Strategy<Value = Limit> {
        let number = 0..u64::MAX >> 1;
        (0..4_u8, number).prop_map(|(kind, number)| Limit::from_parts(kind, number).unwrap())
    }

    fn kinds() -> impl Strategy<Value = TaskErrorKind> {
        let text = any::<String>;
        let exit = prop_oneof![
            any::<i32>().prop_map(Exit::Code),
            any::<i32>().prop_map(Exit::Signal),
            Just(Exit::Unknown)
        ];
        let time = || any::<u32>().prop_map(|micros| Duration::from_micros(micros.into()));
        prop_oneof![
            (text(), text(), text()).prop_map(|(message, location, backtrace)| {
                TaskErrorKind::Panicked { message, location, backtrace }
            }),
            (any::<u32>(), exit, text()).prop_map(|(pid, exit, stderr_tail)| {
                TaskErrorKind::WorkerDied { pid, exit, stderr_tail }
            }),
            (time(), time())
                .prop_map(|(limit, elapsed)| TaskErrorKind::DeadlineExceeded { limit, elapsed }),
            Just(TaskErrorKind::Cancelled),
            Just(TaskErrorKind::Killed),
            text().prop_map(|message| TaskErrorKind::Codec { message }),
            text().prop_map(|message| TaskErrorKind::Function { message }),
            text().prop_map(|reason| TaskErrorKind::PoolBroken { reason }),
            Just(TaskErrorKind::PoolClosed),
            Just(TaskErrorKind::Forked),
            (any::<u32>(), text())
                .prop_map(|(deaths, reason)| TaskErrorKind::GivenUp { deaths, reason }),
            text().prop_map(|reason| TaskErrorKind::Disconnected { reason }),
            text().prop_map(|reason| TaskErrorKind::Lost { reason }),
            (limit(), proptest::option::of(limit()))
                .prop_map(|(limit, used)| TaskErrorKind::LimitExceeded { limit, used }),
            any::<u32>().prop_map(|pid| TaskErrorKind::Denied { call: "socket", pid }),
            text().prop_map(|message| TaskErrorKind::Needs { message }),
        ]
    }

    fn encoded<T: Serialize + 'static>(value: &T) -> Vec<u8> {
        let mut bytes = Vec::new();
        codec::encode(value, &mut bytes, usize::MAX).unwrap();
        bytes
    }

    fn sent(error: &TaskError) -> TaskError {
        codec::decode(&encoded(error)).unwrap()
    }

    proptest! {
        #[test]
        fn an_error_arrives_with_its_text(
            kind in kinds(),
            attempt in 1..9_u32,
            label in proptest::option::of(any::<String>()),
            millis in proptest::option::of(0..9_999_u64),
            flags in 0..8_u8,
        ) {
            let elapsed = millis.map(Duration::from_millis);
            let mut error = TaskError::of(kind, label.as_deref(), attempt, elapsed);
            error.inner.circumstances.quarantined = flags & 1 != 0;
            error.inner.circumstances.in_the_queue = flags & 2 != 0;
            error.inner.circumstances.broke_protocol = flags & 4 != 0;
            let arrived = sent(&error);
            prop_assert_eq!(arrived.to_string(), error.to_string());
            prop_assert_eq!(arrived.kind(), error.kind());
            prop_assert_eq!(arrived.label(), error.label());
            prop_assert_eq!(arrived.elapsed(), elapsed);
            prop_assert_eq!(arrived.is_quarantined(), error.is_quarantined());
        }

        #[test]
        fn garbage_never_panics(bytes in any::<Vec<u8>>()) {
            let _ = codec::decode::<TaskError>(&bytes);
        }
    }

    #[test]
    fn an_error_arrives_with_its_calls() {
        let record =
            Snapshot { signal: 11, last_signal: 11, code: 1, thread: 7, ..Snapshot::default() };
        let stack = Stack::new(record.clone(), Files::OfWorker);
        let crash = CrashReport::new(record, Files::OfWorker);
        for (crash, stack) in [(crash, None), (None, Some(stack))] {
            let error = TaskError::new(TaskErrorKind::Killed);
            let error = error.under(Circumstances { crash, stack, ..Circumstances::default() });
            let arrived = sent(&error);
            assert_eq!(format!("{arrived:#}"), format!("{error:#}"));
            assert_eq!(arrived.crash().is_some(), error.crash().is_some());
            assert!(arrived.stack().is_some_and(|stack| stack.thread() == 7));
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let message = format!("x{}", "ä".repeat(TEXT_LIMIT));
        let error = sent(&TaskError::new(TaskErrorKind::Codec { message: message.clone() }));
        let TaskErrorKind::Codec { message: arrived } = error.kind() else { panic!("{error:?}") };
        assert_eq!(arrived.len(), TEXT_LIMIT - 1);
        assert!(message.starts_with(arrived.as_str()));
    }

    fn portable(version: u8, kind: u8) -> Vec<u8> {
        encoded(&Portable {
            version,
            kind,
            texts: vec!["a text"],
            numbers: vec![1],
            attempt: 2,
            label: None,
            elapsed: None,
            flags: 0x80,
            places: vec![0x80],
        })
    }

    #[test]
    fn newer_kinds_are_described_and_other_layouts_refused() {
        let error: TaskError = codec::decode(&portable(VERSION, 200)).unwrap();
        for part in ["attempt 2", "kind 200", "a text"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        codec::decode::<TaskError>(&portable(2, 0)).unwrap_err();
    }

    #[test]
    fn the_layout_does_not_change() {
        let error = TaskError::of(
            TaskErrorKind::WorkerDied { pid: 7, exit: Exit::Signal(9), stderr_tail: "x".into() },
            Some("l"),
            3,
            Some(Duration::from_millis(5)),
        );
        let expected =
            [1, 1, 1, 1, b'x', 3, 14, 2, 18, 3, 1, 1, b'l', 1, 0, 192, 150, 177, 2, 0, 2, 0, 0];
        assert_eq!(encoded(&error), expected);
    }
}
