//! A worker that starts correctly and then lies about its work, in the way given by its argument.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;

use brigade_integration::liar::{Frame, Greeting, Worker};
use brigade_sys::numbers::Unit;
use brigade_wire::codec::parts::MARK_OF_END;
use brigade_wire::segments::{self, Apart, Segment};
use brigade_wire::shared::ArenaRef;
use brigade_wire::{FromWorker, Item, Location, Outcome, Segmented, Wanted};

fn main() {
    let mode = std::env::args().nth(1).expect("how to lie");
    let run = note_run();
    let mut worker = Greeting::receive().accept();
    if mode == "secretive" {
        // It takes the task and computes, but never says that it has begun.
        worker.receiver.receive().expect("a task");
        loop {
            std::hint::black_box(0);
        }
    }
    while let Some(run_frame) = worker.receive() {
        assert!(worker.begin(&run_frame), "nothing is taken back");
        match mode.as_str() {
            // It reports its chunk as finished without having looked at it.
            "hollow" => worker.finish(&run_frame, Outcome::Value(&[])),
            // Bytes that are not a message, followed by a correct outcome.
            "garbled" => {
                worker.send_bytes(&[0xff; 9], &[]);
                worker.answer(&run_frame);
            }
            // Items that nobody has granted.
            "eager" => emit(&mut worker, &run_frame, 0..100, &Outcome::Value(&[7])),
            // Items that skip one.
            "hasty" => emit(&mut worker, &run_frame, 1..3, &Outcome::Value(&[7])),
            // An item that is not a value.
            "barren" => {
                emit(&mut worker, &run_frame, 0..1, &Outcome::ResultCodec("no value".to_owned()));
            }
            // Buffers that are not its own: one that was not lent to it, one of a file that it does
            // not have, and one outside of its arena.
            "argument" => name(&mut worker, &run_frame, Segment::Argument(ELSEWHERE)),
            "foreign" => name(&mut worker, &run_frame, Segment::Foreign(NO_ARENA, ELSEWHERE)),
            "result" => name(&mut worker, &run_frame, Segment::Result(BEYOND)),
            // A value in memory that it does not have, or behind a block outside of its arena.
            "offers" => answer(&mut worker, &run_frame, Some(4096), &[apart(5 << 20)]),
            "offers-beyond" => answer(&mut worker, &run_frame, Some(1 << 50), &[apart(5 << 20)]),
            // Parts of a value that it does not have, that are larger than a message, too many, or
            // none.
            "offers-parts" => {
                answer(&mut worker, &run_frame, Some(4096), &[apart(0), apart(5 << 20)]);
            }
            "offers-large-parts" => answer(&mut worker, &run_frame, Some(4096), &[apart(1 << 50)]),
            "offers-many-parts" => answer(&mut worker, &run_frame, Some(4096), &[apart(0); 65]),
            "offers-no-parts" => answer(&mut worker, &run_frame, Some(4096), &[]),
            // An argument that it has got in the message.
            "wants" => want(&mut worker, &run_frame, 4096, 0),
            // The argument of a task, into memory that it does not have, or again and again.
            "wants-nowhere" => want(&mut worker, &run_frame, 4096, 8),
            "wants-again" => {
                for _ in 0..3 {
                    want(&mut worker, &run_frame, 4096, 0);
                }
            }
            // It skips a task that was not taken back, and answers it, or goes on for ever. Or its
            // lists of buffers are empty.
            "skips" => {
                skip(&mut worker, &run_frame);
                worker.answer(&run_frame);
            }
            "skips-forever" => loop {
                skip(&mut worker, &run_frame);
            },
            "releases-nothing" => loop {
                worker.send(&FromWorker::Releases(&list(&[])));
            },
            "keeps" => worker.send(&FromWorker::Keeps(&list(&[Segment::Argument(ELSEWHERE)]))),
            "releases" => {
                worker.send(&FromWorker::Releases(&list(&[Segment::Argument(ELSEWHERE)])));
            }
            // The first processes die after they began the chunk, before they begin an item.
            mode => {
                let deaths: usize = mode.parse().expect("a way to lie, or a number of deaths");
                if run <= deaths {
                    std::process::exit(3);
                }
                worker.answer(&run_frame);
            }
        }
    }
}

const ELSEWHERE: Location = Location { offset: 1 << 20, length: 4096 };
const NO_ARENA: ArenaRef = ArenaRef { inode: 1, length: 1 << 30 };
const BEYOND: Location = Location { length: 1 << 50, ..ELSEWHERE };

fn list(segments: &[Segment<'_>]) -> Vec<u8> {
    let mut list = Vec::new();
    segments::append(&mut list, segments, 1 << 10).expect("room");
    list
}

fn skip(worker: &mut Worker, frame: &Frame) {
    let Frame { task, attempt, ring_index, .. } = *frame;
    worker.send(&FromWorker::Skipped { task, attempt, ring_index });
}

/// Returns the number of this process among those of the pool, from 1 on, counted in the file of
/// runs.
fn note_run() -> usize {
    let Some(path) = std::env::var_os("BAD_WORKER_RUNS") else { return 1 };
    let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("a file");
    writeln!(file, "{}", std::process::id()).expect("a note");
    std::fs::read_to_string(path).expect("the notes").lines().count()
}

/// Emits the same item with each of these indices, then waits to be killed.
fn emit(worker: &mut Worker, frame: &Frame, indices: Range<u32>, outcome: &Outcome<'_>) {
    for index in indices {
        let outcome = outcome.clone();
        worker.send(&FromWorker::Item(Item { ring_index: frame.ring_index, index, outcome }));
    }
    while worker.receiver.receive().is_ok() {}
}

/// Returns numbers in the first page of the memory, which is empty.
const fn apart(length: usize) -> Segment<'static> {
    Segment::Apart(Apart { mark: MARK_OF_END, address: 8, length, unit: Unit::BYTE })
}

/// Asks for an argument.
fn want(worker: &mut Worker, frame: &Frame, block: u64, address: u64) {
    let ring_index = frame.ring_index;
    worker.send(&FromWorker::Wants(Wanted { ring_index, block, address }));
}

/// Answers with a value that has this buffer.
fn name(worker: &mut Worker, frame: &Frame, buffer: Segment<'_>) {
    answer(worker, frame, None, &[buffer]);
}

/// Answers with a value that has these segments, and perhaps offers it.
fn answer(worker: &mut Worker, frame: &Frame, offer: Option<u64>, list: &[Segment<'_>]) {
    let mut payload = vec![0, 0, 0];
    segments::append(&mut payload, list, 1 << 12).expect("room");
    let value = Segmented { location: None, offer, payload: &payload };
    worker.finish(frame, Outcome::Segmented(Box::new(value)));
}
