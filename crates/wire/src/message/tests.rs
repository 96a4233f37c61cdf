//! Every message survives the way; nothing else is taken for one.

use proptest::prelude::*;

use super::*;
use crate::outcome::PanicReport;

fn finished(kind: u8, task: u64, nanos: u64, bytes: &[u8], text: String) -> FromWorker<'_> {
    let (task, attempt, slot) = (TaskId::new(task), Attempt::first(), 7);
    let outcome = match kind {
        0 => Outcome::Value(bytes),
        1 => Outcome::ArgumentCodec(text),
        2 => Outcome::ResultCodec(text),
        3 => Outcome::UnknownFunction(text),
        4 => Outcome::Panicked(PanicReport {
            message: text.clone(),
            location: Some(text),
            backtrace: String::new(),
        }),
        _ => {
            return FromWorker::Skipped { task, attempt, slot };
        }
    };
    FromWorker::Finished(Finished {
        task,
        attempt,
        slot,
        run_time: Duration::from_nanos(nanos),
        outcome,
    })
}

proptest! {
    #[test]
    fn tasks_survive_the_way_and_cut_heads_do_not(
        task: u64, attempt: u32, slot: u16, offset: u64, name in proptest::option::of("[a-zäß]{0,40}"),
        argument: Vec<u8>, cut in any::<prop::sample::Index>(),
    ) {
        let function = name.as_deref().map_or(Function::Offset(offset), Function::Name);
        let run = Run { task: TaskId::new(task), attempt: Attempt::new(attempt), slot, function, argument: &argument };
        let message = ToWorker::Run(run);
        let mut bytes = Vec::new();
        message.encode_head(&mut bytes);
        let head = bytes.len();
        bytes.extend(message.payload());
        prop_assert_eq!(ToWorker::decode(&bytes).expect("decodes"), message);
        prop_assert!(ToWorker::decode(&bytes[..cut.index(head)]).is_err());
    }

    #[test]
    fn answers_survive_the_way_and_cut_ones_do_not_become_others(
        kind in 0..6_u8, task: u64, nanos: u64, value: Vec<u8>, text: String, cut in any::<prop::sample::Index>(),
    ) {
        let message = finished(kind, task, nanos, &value, text);
        let mut bytes = Vec::new();
        message.encode_head(&mut bytes);
        let head = bytes.len();
        bytes.extend(message.payload());
        prop_assert_eq!(FromWorker::decode(&bytes).expect("decodes"), message);
        prop_assert!(FromWorker::decode(&bytes[..cut.index(head)]).is_err());
    }

    #[test]
    fn random_bytes_are_an_error_or_a_message_and_never_a_panic(bytes: Vec<u8>, kind in 0..32_u8) {
        let _ = ToWorker::decode(&bytes);
        let _ = FromWorker::decode(&bytes);
        let mut bytes = bytes;
        bytes.insert(0, kind);
        let _ = ToWorker::decode(&bytes);
        let _ = FromWorker::decode(&bytes);
    }
}

#[test]
fn stop_is_one_byte_and_nothing_else() {
    let mut bytes = Vec::new();
    ToWorker::Stop.encode_head(&mut bytes);
    assert_eq!(ToWorker::decode(&bytes), Ok(ToWorker::Stop));
    bytes.push(0);
    assert!(ToWorker::decode(&bytes).is_err());
}
