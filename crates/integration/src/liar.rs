//! The worker's half of the protocol, for programs that lie with it.
//!
//! They claim to be of their host's build, so the host sends functions by their offset in the
//! host's program. They call none of them: an honest answer is the encoded argument.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use brigade_link_ipc::Ipc;
use brigade_sys::clock::now;
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::segment::Segment;
use brigade_sys::wake_set::RemoteWaker;
use brigade_sys::{crash, descriptors};
use brigade_wire::handshake::{
    Answer, FromWorkerControl, Hello, LinkKind, ToWorkerControl, WorkerProgram,
};
use brigade_wire::link::connect::WorkerConnector;
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender, message_limit, ring};
use brigade_wire::ring::RemoteDoorbell;
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::version::PROTOCOL_VERSION;
use brigade_wire::{Finished, FromWorker, Item, Outcome, Run, ToWorker, items};

/// The host's greeting.
#[derive(Debug)]
pub struct Greeting {
    /// The socket over which it came.
    pub control: ControlSocket,
    /// The message.
    pub hello: Hello,
    descriptors: Vec<OwnedFd>,
}

/// A worker that is connected with its host.
#[expect(missing_debug_implementations, reason = "links have no text")]
pub struct Worker {
    /// The table of task states.
    pub slots: SlotTable,
    /// The memory in which that lies and, over rings, the rings.
    pub segment: Arc<Segment>,
    /// The end of the link to the host.
    pub sender: Box<dyn LinkSender>,
    /// The end of the link from the host.
    pub receiver: Box<dyn LinkReceiver>,
    /// The host takes its closing for the end of the worker.
    pub control: ControlSocket,
    /// The pipe of events and the arenas, as far as there are some.
    pub others: Vec<OwnedFd>,
    _lifeline: Option<OwnedFd>,
}

/// A task as it arrived, copied out of the link.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The task's number.
    pub task: brigade_wire::TaskId,
    /// The attempt's number.
    pub attempt: brigade_wire::Attempt,
    /// The position of its state.
    pub ring_index: u16,
    /// The number of items of a chunk.
    pub items: Option<u32>,
    /// The encoded argument, or items.
    pub argument: Vec<u8>,
}

impl Greeting {
    /// Waits for it.
    ///
    /// # Panics
    /// If this process was not started by a pool.
    pub fn receive() -> Self {
        let control = descriptors::take_stdin().expect("the control socket");
        let control = ControlSocket::from_fd(control);
        let packet = control.receive(None, None).expect("the host's hello");
        let Received::Packet { bytes, descriptors } = packet else { panic!("no hello") };
        let Ok(ToWorkerControl::Hello(hello)) = ToWorkerControl::decode(&bytes) else {
            panic!("the host's first packet should be a hello")
        };
        Self { control, hello, descriptors }
    }

    /// Returns an honest answer.
    pub fn answer(&self) -> Answer {
        let identity = self.hello.identity;
        Answer {
            version: PROTOCOL_VERSION,
            token: self.hello.token,
            pid: std::process::id(),
            program: WorkerProgram { identity, has_names: false, version: None },
            server: String::new(),
            arenas: true,
        }
    }

    /// Sends a packet. The host may have ended this process for an earlier one.
    ///
    /// # Panics
    /// If it is too long.
    pub fn send(&self, message: FromWorkerControl) {
        let packet = message.encode().expect("a packet");
        let _ = self.control.send(&packet, &[]);
    }

    /// Does the rest of the handshake.
    ///
    /// # Panics
    /// If the host does not do its part.
    pub fn accept(mut self) -> Worker {
        let given = self.hello.take(std::mem::take(&mut self.descriptors));
        let given = given.expect("the descriptors of a greeting");
        let segment = given.segment.expect("the segment");
        let segment = Segment::open(segment, self.hello.words() + crash::WORDS);
        let segment = Arc::new(segment.expect("the segment"));
        let others = [given.events, given.arguments, given.results, given.files];
        let others = others.into_iter().flatten().collect();
        let limit = message_limit(usize::try_from(self.hello.message_limit).expect("a size"));
        let (sender, receiver): (Box<dyn LinkSender>, Box<dyn LinkReceiver>) = match self.hello.link
        {
            LinkKind::Ring => {
                let [page, thread, caller] = [given.page, given.thread, given.caller]
                    .map(|it| it.expect("a part of the doorbell"));
                let [thread, caller] = [thread, caller].map(RemoteWaker::from_fd);
                let doorbell = RemoteDoorbell::new(page, thread, caller).expect("the doorbell");
                let end = ring::WorkerEnd::new(&segment, self.hello.slots, doorbell, limit);
                self.send(FromWorkerControl::Answer(self.answer()));
                (Box::new(end.sender), Box::new(end.receiver))
            }
            LinkKind::Ipc => {
                let server = Ipc.listen(&self.hello.folder).expect("a server");
                let server_name = server.name().to_owned();
                let answer = Answer { server: server_name, arenas: false, ..self.answer() };
                self.send(FromWorkerControl::Answer(answer));
                self.control.receive(None, None).expect("go");
                let end = server.accept(&self.hello.token, limit).expect("a link");
                self.send(FromWorkerControl::Ready);
                (end.sender, end.receiver)
            }
        };
        if self.hello.sandbox.is_some() {
            // It has not entered it.
            self.send(FromWorkerControl::Initialized { takes_descriptors: true });
        }
        let slots = SlotTable::new(Arc::clone(&segment), self.hello.slots);
        let Self { control, .. } = self;
        Worker { slots, segment, sender, receiver, control, others, _lifeline: given.lifeline }
    }
}

impl Worker {
    /// Begins the next task. Returns `None` if the host says stop, or is gone.
    ///
    /// # Panics
    /// If the host sends something else.
    pub fn receive(&mut self) -> Option<Frame> {
        let message = match self.receiver.receive() {
            Err(LinkError::Closed) => return None,
            message => message.expect("a message"),
        };
        let ToWorker::Run(run) = ToWorker::decode(message).expect("a task") else { return None };
        let Run { task, attempt, ring_index, chunk, argument, .. } = run;
        let items = chunk.map(|chunk| chunk.items);
        Some(Frame { task, attempt, ring_index, items, argument: argument.to_vec() })
    }

    /// Marks a task as begun. Returns `false` if the host has taken it back.
    pub fn begin(&self, frame: &Frame) -> bool {
        self.slots.begin(frame.ring_index, slot_tag(frame.task, frame.attempt), now())
    }

    /// Answers as a worker does whose functions return their argument.
    pub fn answer(&mut self, frame: &Frame) {
        let Some(count) = frame.items else {
            return self.finish(frame, Outcome::Value(&frame.argument));
        };
        let mut rest = frame.argument.as_slice();
        for index in 0..count {
            self.slots.item_count(frame.ring_index).set(u64::from(index) + 1);
            let Some(Ok(item)) = items::take(&mut rest) else { break };
            let outcome = Outcome::Value(item);
            self.send(&FromWorker::Item(Item { ring_index: frame.ring_index, index, outcome }));
        }
        self.finish(frame, Outcome::Value(&[]));
    }

    /// Finishes a task with an outcome.
    pub fn finish(&mut self, frame: &Frame, outcome: Outcome<'_>) {
        let Frame { task, attempt, ring_index, .. } = *frame;
        let (run_time, worn) = (Duration::from_micros(1), false);
        let began = now();
        let finished = Finished { task, attempt, ring_index, run_time, began, worn, outcome };
        self.send(&FromWorker::Finished(finished));
    }

    /// Sends a message.
    pub fn send(&mut self, message: &FromWorker<'_>) {
        let mut head = Vec::new();
        message.encode_head(&mut head);
        self.send_bytes(&head, message.payload());
    }

    /// Sends bytes as a message. If the host is gone, the next receive says so.
    pub fn send_bytes(&mut self, head: &[u8], payload: &[u8]) {
        let _ = self.sender.send(head, payload);
    }
}
