//! Messages that are well-formed, or nearly so, and false.

use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::numbers::Unit;
use brigade_testkit::Random;
use brigade_wire::handshake::{Answer, FromWorkerControl, Token, WorkerProgram};
use brigade_wire::segments::{self, Apart, Segment};
use brigade_wire::shared::ArenaRef;
use brigade_wire::{
    Attempt, Finished, FromWorker, Item, Location, Outcome, PanicReport, Segmented, TaskId,
};

use crate::liar::{Frame, Worker};

/// Random bytes.
pub(super) fn noise(random: &mut Random, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.within(0..most / 8 + 1) {
        bytes.extend(word(random).to_le_bytes());
    }
    bytes
}

/// A number that is large, small, or next to a limit.
fn word(random: &mut Random) -> u64 {
    match random.within(0..5) {
        0 => random.number(),
        1 => random.within(0..10),
        2 => u64::MAX - random.within(0..10),
        3 => 1 << random.within(0..64),
        _ => random.within(0..1 << 20),
    }
}

fn text(random: &mut Random) -> String {
    let part = *random.choose(&["a", "\u{1b}[2J", "/", "\0", "\u{202e}", "../"]);
    part.repeat(usize::try_from(*random.choose(&[0, 1, 10, 10_000])).unwrap_or(0))
}

/// A packet of the control socket.
pub(super) fn control(random: &mut Random) -> FromWorkerControl {
    match random.within(0..16) {
        0 => FromWorkerControl::Ready,
        1 | 2 => FromWorkerControl::Crashed,
        3 | 4 => FromWorkerControl::Sampled,
        5 => FromWorkerControl::Initialized { takes_descriptors: random.chance(50) },
        6 => FromWorkerControl::InitializerFailed { reason: text(random) },
        7 => FromWorkerControl::Answer(Answer {
            version: 0,
            token: Token::random(),
            pid: 1,
            program: WorkerProgram { identity: [0; 32], has_names: false, version: None },
            server: text(random),
            arenas: true,
        }),
        _ => FromWorkerControl::Section { due: word(random) },
    }
}

/// Changes a part of an answer. Versions and refusals are not among them, because the host gives
/// up a pool for them.
pub(super) fn distort(answer: &mut Answer, random: &mut Random) {
    match random.within(0..5) {
        0 => answer.token = Token::random(),
        1 => answer.pid = u32::try_from(random.within(0..40_000)).unwrap_or(0),
        2 => answer.server = text(random),
        3 => answer.arenas = !answer.arenas,
        _ => (answer.program.has_names, answer.program.version) = (true, Some(text(random))),
    }
}

fn outcome<'a>(bytes: &'a [u8], random: &mut Random) -> Outcome<'a> {
    match random.within(0..6) {
        0 => Outcome::Value(bytes),
        1 => Outcome::Panicked(Box::new(PanicReport {
            message: text(random),
            location: random.chance(50).then(|| text(random)),
            backtrace: text(random),
        })),
        2 => Outcome::ArgumentCodec(text(random)),
        3 => Outcome::ResultCodec(text(random)),
        4 => Outcome::UnknownFunction(text(random)),
        _ => Outcome::InArena(location(random)),
    }
}

fn location(random: &mut Random) -> Location {
    Location { offset: word(random), length: word(random) }
}

/// The number of a task, its attempt and its position, of which some may be wrong.
fn identity(frame: &Frame, random: &mut Random) -> (TaskId, Attempt, u16) {
    let (mut task, mut attempt, mut ring_index) = (frame.task, frame.attempt, frame.ring_index);
    match random.within(0..5) {
        0 => task = TaskId::new(word(random)),
        1 => attempt = Attempt::new(u32::try_from(word(random) >> 32).unwrap_or(0)),
        2 => ring_index = u16::try_from(word(random) & 0xffff).unwrap_or(0),
        _ => {}
    }
    (task, attempt, ring_index)
}

fn moment(random: &mut Random) -> Monotonic {
    if random.chance(50) { now() } else { Monotonic::from_nanos(word(random)) }
}

/// Reports the end of a task that may not be the right one.
pub(super) fn finish(worker: &mut Worker, frame: &Frame, random: &mut Random) {
    let (task, attempt, ring_index) = identity(frame, random);
    if random.chance(20) {
        return worker.send(&FromWorker::Skipped { task, attempt, ring_index });
    }
    let bytes = noise(random, *random.clone().choose(&[10, 1000, 1 << 20]));
    let finished = Finished {
        task,
        attempt,
        ring_index,
        run_time: Duration::from_nanos(word(random)),
        began: moment(random),
        worn: random.chance(20),
        outcome: outcome(&bytes, random),
    };
    worker.send(&FromWorker::Finished(finished));
}

/// Reports ends of items.
pub(super) fn emit(worker: &mut Worker, frame: &Frame, random: &mut Random) {
    let bytes = noise(random, 100);
    for number in 0..*random.choose(&[1, 5, 1000]) {
        let (_, _, ring_index) = identity(frame, random);
        let index = if random.chance(50) { number } else { random.within(0..1 << 32) };
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let outcome = outcome(&bytes, random);
        worker.slots.item_count(frame.ring_index).set(word(random));
        worker.send(&FromWorker::Item(Item { ring_index, index, outcome }));
    }
}

/// Sends a right message with some wrong bits, or a part of it.
pub(super) fn distorted(worker: &mut Worker, frame: &Frame, random: &mut Random) {
    let Frame { task, attempt, ring_index, ref argument, .. } = *frame;
    let mut bytes = Vec::new();
    let message = FromWorker::Finished(Finished {
        task,
        attempt,
        ring_index,
        run_time: Duration::ZERO,
        began: now(),
        worn: false,
        outcome: Outcome::Value(argument),
    });
    message.encode_head(&mut bytes);
    bytes.extend_from_slice(message.payload());
    for _ in 0..random.within(1..4) {
        let most = (bytes.len() as u64).min(*random.choose(&[8, 32, 1 << 20]));
        let at = usize::try_from(random.within(0..most)).unwrap_or(0);
        bytes[at] ^= 1 << random.within(0..8);
    }
    if random.chance(30) {
        bytes.truncate(usize::try_from(random.within(0..bytes.len() as u64)).unwrap_or(0));
    }
    worker.send_bytes(&bytes, &[]);
}

fn segment<'a>(bytes: &'a [u8], random: &mut Random) -> Segment<'a> {
    match random.within(0..5) {
        0 => Segment::Inline(bytes),
        1 => Segment::Argument(location(random)),
        2 => Segment::Result(location(random)),
        3 => {
            let address = word(random);
            Segment::Apart(Apart { mark: [1; 16], address, length: 50, unit: Unit::BYTE })
        }
        _ => {
            let (inode, length) = (word(random), word(random));
            Segment::Foreign(ArenaRef { inode, length }, location(random))
        }
    }
}

/// Names segments, as those of a value, as kept, and as released.
pub(super) fn segmented(worker: &mut Worker, frame: &Frame, random: &mut Random) {
    let bytes = noise(random, 100);
    let count = *random.choose(&[0, 1, 3, 4000]);
    let all: Vec<_> = (0..count).map(|_| segment(&bytes, random)).collect();
    let mut list = bytes.clone();
    let _ = segments::append(&mut list, &all, 1 << 20);
    match random.within(0..3) {
        0 => worker.send(&FromWorker::Keeps(&list)),
        1 => worker.send(&FromWorker::Releases(&list)),
        _ => {
            let location = random.chance(30).then(|| location(random));
            let offer = random.chance(30).then(|| word(random));
            let value = Segmented { location, offer, payload: &list };
            worker.finish(frame, Outcome::Segmented(Box::new(value)));
        }
    }
}

/// Claims that the value lies in its arena, where it may.
pub(super) fn value_in_an_arena(worker: &mut Worker, frame: &Frame, random: &mut Random) {
    let length = *random.choose(&[0, 64, 1 << 12, 1 << 20, 3 << 20]);
    let offset = *random.choose(&[0, 64, 1 << 20, 1 << 33, 1 << 34]);
    worker.finish(frame, Outcome::InArena(Location { offset, length }));
}
