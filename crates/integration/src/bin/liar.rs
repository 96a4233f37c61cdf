//! A worker that starts correctly and then lies about its work, in the way given by its argument.
//!
//! It claims to be of its host's build, so the host sends functions by their offset in the host's
//! program. It calls none of them: where it is honest it returns the encoded argument.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "the test that runs this program notices its panic")]

use std::fs::OpenOptions;
use std::io::Write;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_sys::{crash, descriptors};
use brigade_wire::buffers::{self, Buffer, File};
use brigade_wire::handshake::{Answer, FromWorkerControl, Hello, ToWorkerControl};
use brigade_wire::link::{LinkReceiver, LinkSender, message_limit, ring};
use brigade_wire::ring::RemoteDoorbell;
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::version::PROTOCOL_VERSION;
use brigade_wire::{Buffered, Finished, FromWorker, Item, Location, Outcome, Run, ToWorker, items};

fn main() {
    let mode = std::env::args().nth(1).expect("how to lie");
    let run = note_run();
    let mut worker = Worker::start();
    if mode == "secretive" {
        // It takes the task and computes, but never says that it has begun.
        worker.receiver.receive().expect("a task");
        loop {
            std::hint::black_box(0);
        }
    }
    while let Some(run_frame) = worker.next() {
        match mode.as_str() {
            // It reports its chunk as finished without having looked at it.
            "hollow" => worker.finish(&run_frame, Outcome::Value(&[])),
            // Bytes that are not a message, followed by a correct outcome.
            "garbled" => {
                worker.sender.send(&[0xff; 9], &[]).expect("the host listens");
                worker.answer(&run_frame);
            }
            // Items that nobody has granted.
            "eager" => worker.emit(&run_frame, 0..100, &Outcome::Value(&[7])),
            // Items that skip one.
            "hasty" => worker.emit(&run_frame, 1..3, &Outcome::Value(&[7])),
            // An item that is not a value.
            "barren" => {
                worker.emit(&run_frame, 0..1, &Outcome::ResultCodec("no value".to_owned()));
            }
            // Buffers that are not its own: one that was not lent to it, one of a file that it does
            // not have, and one outside of its arena.
            "argument" => worker.name(&run_frame, Buffer::Argument(ELSEWHERE)),
            "foreign" => {
                let file = File { inode: 1, size: 1 << 30 };
                worker.name(&run_frame, Buffer::Foreign(file, ELSEWHERE));
            }
            "result" => {
                worker.name(&run_frame, Buffer::Result(BEYOND));
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

/// A task as it arrived, copied out of the link.
struct Frame {
    task: brigade_wire::TaskId,
    attempt: brigade_wire::Attempt,
    ring_index: u16,
    items: Option<u32>,
    argument: Vec<u8>,
}

struct Worker {
    slots: SlotTable,
    sender: ring::WorkerSender,
    receiver: ring::WorkerReceiver,
    /// Kept open, because the host takes their closing for the end of the worker.
    _kept: (ControlSocket, Option<OwnedFd>),
}

impl Worker {
    /// Does the worker's half of the handshake.
    fn start() -> Self {
        let control = descriptors::take_stdin().expect("the control socket");
        let control = ControlSocket::from_fd(control);
        let packet = control.receive(None, None).expect("the host's hello");
        let Received::Packet { bytes, descriptors } = packet else { panic!("no hello") };
        let Ok(ToWorkerControl::Hello(hello)) = ToWorkerControl::decode(&bytes) else {
            panic!("the host's first packet should be a hello")
        };
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().expect("the descriptors of a link of rings");
        let segment =
            Segment::open(next(), ring::words(hello.slots) + crash::WORDS).expect("the segment");
        let segment = Arc::new(segment);
        let lifeline = hello.lifeline.then(&mut next);
        let page = next();
        let (thread, caller) = (RemoteWaker::from_fd(next()), RemoteWaker::from_fd(next()));
        let doorbell = RemoteDoorbell::new(page, thread, caller).expect("the doorbell");
        let limit = message_limit(usize::try_from(hello.message_limit).expect("a size"));
        let end = ring::WorkerEnd::new(&segment, hello.slots, doorbell, limit);
        let answer = FromWorkerControl::Answer(answer(&hello)).encode().expect("an answer");
        control.send(&answer, &[]).expect("the host listens");
        let slots = SlotTable::new(segment, hello.slots);
        Self { slots, sender: end.sender, receiver: end.receiver, _kept: (control, lifeline) }
    }

    /// Begins the next task. Returns `None` if the host says stop.
    fn next(&mut self) -> Option<Frame> {
        let message = self.receiver.receive().expect("a message");
        let ToWorker::Run(run) = ToWorker::decode(message).expect("a task") else { return None };
        let Run { task, attempt, ring_index, chunk, argument, .. } = run;
        let items = chunk.map(|chunk| chunk.items);
        let frame = Frame { task, attempt, ring_index, items, argument: argument.to_vec() };
        assert!(
            self.slots.begin(ring_index, slot_tag(task, attempt), now()),
            "nothing is taken back"
        );
        Some(frame)
    }

    /// Answers as a worker does whose functions return their argument.
    fn answer(&mut self, frame: &Frame) {
        let Some(count) = frame.items else {
            return self.finish(frame, Outcome::Value(&frame.argument));
        };
        let mut rest = frame.argument.as_slice();
        for index in 0..count {
            self.slots.item_count(frame.ring_index).set(u64::from(index) + 1);
            let item = items::take(&mut rest).expect("an item").expect("a whole item");
            let outcome = Outcome::Value(item);
            self.send(&FromWorker::Item(Item { ring_index: frame.ring_index, index, outcome }));
        }
        self.finish(frame, Outcome::Value(&[]));
    }

    /// Emits the same item with each of these indices, then waits to be killed.
    fn emit(&mut self, frame: &Frame, indices: Range<u32>, outcome: &Outcome<'_>) {
        for index in indices {
            let outcome = outcome.clone();
            self.send(&FromWorker::Item(Item { ring_index: frame.ring_index, index, outcome }));
        }
        while self.receiver.receive().is_ok() {}
    }

    fn finish(&mut self, frame: &Frame, outcome: Outcome<'_>) {
        let Frame { task, attempt, ring_index, .. } = *frame;
        let (run_time, worn) = (Duration::from_micros(1), false);
        let began = now();
        let finished = Finished { task, attempt, ring_index, run_time, began, worn, outcome };
        self.send(&FromWorker::Finished(finished));
    }

    /// Answers with a value that has this buffer.
    fn name(&mut self, frame: &Frame, buffer: Buffer<'_>) {
        let mut value = vec![0, 0, 0];
        value.extend(list(&buffer));
        let buffered = Buffered { location: None, payload: &value };
        self.finish(frame, Outcome::Buffered(Box::new(buffered)));
    }

    fn send(&mut self, message: &FromWorker<'_>) {
        let mut head = Vec::new();
        message.encode_head(&mut head);
        self.sender.send(&head, message.payload()).expect("the host listens");
    }
}

fn answer(hello: &Hello) -> Answer {
    Answer {
        version: PROTOCOL_VERSION,
        token: hello.token,
        pid: std::process::id(),
        identity: hello.identity,
        server: String::new(),
        arenas: true,
        program: None,
    }
}
