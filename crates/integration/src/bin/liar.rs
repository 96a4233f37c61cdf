//! A worker that starts correctly and then lies about its work, in the way given by its argument.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;

use brigade_integration::liar::{Frame, Greeting, Worker};
use brigade_sys::numbers::Unit;
use brigade_wire::buffers::{self, Buffer, File};
use brigade_wire::{Buffered, FromWorker, Item, Location, Offered, Outcome, Wanted};

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
            "argument" => name(&mut worker, &run_frame, Buffer::Argument(ELSEWHERE)),
            "foreign" => {
                let file = File { inode: 1, size: 1 << 30 };
                name(&mut worker, &run_frame, Buffer::Foreign(file, ELSEWHERE));
            }
            "result" => {
                name(&mut worker, &run_frame, Buffer::Result(BEYOND));
            }
            // A value in memory that it does not have, or behind a block outside of its arena.
            "offers" => offer(&mut worker, &run_frame, 4096),
            "offers-beyond" => offer(&mut worker, &run_frame, 1 << 50),
            // Parts of a value that it does not have, that are larger than a message, or no table.
            "offers-parts" => offer_parts(&mut worker, &run_frame, [8, 5 << 20, 4]),
            "offers-large-parts" => offer_parts(&mut worker, &run_frame, [8, 1 << 50, 1]),
            "offers-no-parts" => offer_parts(&mut worker, &run_frame, [8, 5 << 20, 3]),
            // An argument that it has got in the message.
            "wants" => want(&mut worker, &run_frame, 4096, 0),
            // The argument of a task, into memory that it does not have, or again and again.
            "wants-nowhere" => want(&mut worker, &run_frame, 4096, 8),
            "wants-again" => {
                for _ in 0..3 {
                    want(&mut worker, &run_frame, 4096, 0);
                }
            }
            "keeps" => worker.send(&FromWorker::Keeps(&list(&Buffer::Argument(ELSEWHERE)))),
            "releases" => worker.send(&FromWorker::Releases(&list(&Buffer::Argument(ELSEWHERE)))),
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
const BEYOND: Location = Location { length: 1 << 50, ..ELSEWHERE };

fn list(buffer: &Buffer<'_>) -> Vec<u8> {
    let mut list = Vec::new();
    buffers::append(&mut list, &[*buffer], 1 << 10).expect("room");
    list
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

/// Offers a value in the first page of its memory, which is empty.
fn offer(worker: &mut Worker, frame: &Frame, block: u64) {
    let (length, counted) = (5 << 20, Unit::new(4));
    let offered = Offered { block, address: 8, length, counted, in_parts: false };
    worker.finish(frame, Outcome::Offered(offered));
}

/// Offers a value with one part: its address, its length and the size of a number.
fn offer_parts(worker: &mut Worker, frame: &Frame, part: [u64; 3]) {
    let words = part.into_iter().chain([0, 0, 1]);
    let value: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let (address, length) = (value.as_ptr().expose_provenance() as u64, value.len() as u64);
    let offered = Offered { block: 4096, address, length, counted: None, in_parts: true };
    worker.finish(frame, Outcome::Offered(offered));
    // The value stays until the host has killed this process.
    while worker.receiver.receive().is_ok() {}
}

/// Asks for an argument.
fn want(worker: &mut Worker, frame: &Frame, block: u64, address: u64) {
    let ring_index = frame.ring_index;
    worker.send(&FromWorker::Wants(Wanted { ring_index, block, address }));
}

/// Answers with a value that has this buffer.
fn name(worker: &mut Worker, frame: &Frame, buffer: Buffer<'_>) {
    let mut value = vec![0, 0, 0];
    value.extend(list(&buffer));
    let buffered = Buffered { location: None, payload: &value };
    worker.finish(frame, Outcome::Buffered(Box::new(buffered)));
}
