//! Tests of a real worker process, with a fake host that does one step at a time, not always the
//! right one.
//!
//! This same program is the worker: [`init`] runs before `main`.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::time::Duration;

use brigade_link_ipc::{self as ipc, HostEnd, Ipc};
use brigade_sys::arena::Terms;
use brigade_sys::before_main;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::crash;
use brigade_sys::descriptors::output_pipe;
use brigade_sys::executable::{EntryPoint, FunctionOffset, build_identity};
use brigade_sys::process::{Exit, Process, self_command};
use brigade_sys::segment::Segment;
use brigade_sys::wait::wait_readable;
use brigade_wire::handshake::{
    Answer, FromWorkerControl, Given, Hello, LinkKind, ToWorkerControl, Token,
};
use brigade_wire::link::{LinkReceiver, LinkSender, message_limit};
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::version::{MARKER, PROTOCOL_VERSION};
use brigade_wire::{
    Attempt, FromWorker, Function, Outcome, Run, TaskId, ToWorker, WorkerId, codec,
};
use brigade_worker::{context, exit_code, function_of, init_with};
use serde::Serialize;
use serde::de::DeserializeOwned;

before_main!(init);

/// Makes a worker of this program know no link but rings.
const WITHOUT_LINKS: &str = "BRIGADE_TEST_WITHOUT_LINKS";

fn init() {
    match env::var_os(WITHOUT_LINKS) {
        None => init_with(&[&Ipc]),
        Some(_) => brigade_worker::init(),
    }
}

const SLOTS: u16 = 4;
const LIMIT: usize = 1 << 20;

/// Returns the deadline of a step. It is longer than any step takes on any machine.
fn soon() -> Monotonic {
    now().saturating_add(Duration::from_secs(20))
}

/// A host that has started a process and sent nothing yet.
struct Host {
    process: Process,
    control: ControlSocket,
    stderr: OwnedFd,
    token: Token,
    folder: PathBuf,
}

impl Host {
    fn start() -> Self {
        Self::start_with(&format!("{PROTOCOL_VERSION}:{}", process::id()))
    }

    fn start_with(marker: &str) -> Self {
        let mut command = self_command();
        command.env(MARKER, marker);
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Self {
        let (control, worker_end) = ControlSocket::pair().expect("a socket");
        let (stderr, worker_stderr) = output_pipe().expect("a pipe");
        command.stdin(Stdio::from(worker_end)).stderr(Stdio::from(worker_stderr));
        let process = Process::spawn(&mut command).expect("a process");
        let token = Token::random();
        let folder = env::temp_dir().join(format!("brigade-test-{}", token.short()));
        Self { process, control, stderr, token, folder }
    }

    fn hello(&self) -> Hello {
        Hello {
            arenas: (0, 0),
            terms: Terms::default(),
            token: self.token,
            asks: true,
            given: Given::default(),
            worker: WorkerId { slot: 3, generation: 2 },
            message_limit: LIMIT as u64,
            slots: SLOTS,
            folder: self.folder.clone(),
            events: None,
            link: LinkKind::Ipc,
            pinned: false,
            copies: None,
            max_rss: 0,
            max_growth: 0,
            depth: 1,
            identity: *build_identity().as_bytes(),
            preload: None,
            initializer: None,
            finalizer: None,
            sandbox: None,
        }
    }

    fn greet(&self, mut hello: Hello) -> SlotTable {
        let segment =
            Segment::create("test", SlotTable::words(SLOTS) + crash::WORDS).expect("memory");
        hello.given = Given { segment: Some(()), ..Given::default() };
        let packet = ToWorkerControl::Hello(hello).encode().expect("encodes");
        self.control.send(&packet, &[segment.as_fd()]).expect("a worker");
        SlotTable::new(segment, SLOTS)
    }

    fn receive(&self) -> FromWorkerControl {
        match self.control.receive(Some(soon()), Some(self.process.pidfd())) {
            Ok(Received::Packet { bytes, .. }) => {
                FromWorkerControl::decode(&bytes).expect("a message")
            }
            other => panic!("{other:?} instead of a message"),
        }
    }

    fn answer(&self) -> Answer {
        match self.receive() {
            FromWorkerControl::Answer(answer) => answer,
            other => panic!("{other:?} instead of an answer"),
        }
    }

    fn go(&self) {
        self.control.send(&ToWorkerControl::Go.encode().expect("encodes"), &[]).expect("a worker");
    }

    /// Completes the handshake correctly.
    fn complete(self) -> Ready {
        let slots = self.greet(self.hello());
        let (server, limit) = (self.answer().server, message_limit(LIMIT));
        let link = ipc::connect(&self.folder, &server, &self.token, limit).expect("a link");
        self.go();
        assert_eq!(self.receive(), FromWorkerControl::Ready);
        assert!(!self.folder.exists(), "the folder outlives the handshake");
        Ready { host: self, slots, link }
    }

    /// Waits for the worker's end, and returns its exit and its output on stderr.
    fn end(&self) -> (Exit, String) {
        let ended = wait_readable(&[self.process.pidfd()], Some(soon())).expect("a wait");
        assert!(ended[0], "the worker does not end");
        let mut stderr = Vec::new();
        let read =
            File::from(self.stderr.try_clone().expect("a descriptor")).read_to_end(&mut stderr);
        let exit = self.process.reap().expect("an exit");
        // The pipe has ended or is empty.
        drop(read);
        assert!(!self.folder.exists(), "the folder outlives the worker");
        (exit, String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Closes the control socket, as the end of a host does.
    fn leave(mut self) {
        self.control = ControlSocket::pair().expect("a socket").0;
        self.assert_ends(exit_code::HOST_GONE, "control socket");
    }

    #[track_caller]
    fn assert_ends(&self, code: i32, words: &str) {
        let (exit, stderr) = self.end();
        assert_eq!(exit, Exit::Code(code), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

struct Ready {
    host: Host,
    slots: SlotTable,
    link: HostEnd,
}

impl Ready {
    fn send<A: Serialize + 'static>(&mut self, entry: EntryPoint, argument: &A) {
        let (task, attempt, ring_index) = (TaskId::new(77), Attempt::first(), 1);
        let mut argument_bytes = Vec::new();
        codec::encode(argument, &mut argument_bytes, LIMIT).expect("encodes");
        let function = Function::Offset(FunctionOffset::of(entry).expect("ours").raw());
        self.slots.arm(ring_index, slot_tag(task, attempt));
        self.post(&ToWorker::Run(Run {
            task,
            attempt,
            ring_index,
            function,
            chunk: None,
            limits: brigade_wire::RunLimits::NONE,
            location: None,
            has_segments: false,
            trace_context: None,
            granted: None,
            argument: &argument_bytes,
        }));
    }

    fn post(&mut self, message: &ToWorker<'_>) {
        let mut head = Vec::new();
        message.encode_head(&mut head);
        self.link.sender.send(&head, message.payload()).expect("a worker");
    }

    fn call<A, R>(&mut self, entry: EntryPoint, argument: &A) -> R
    where
        A: Serialize + 'static,
        R: DeserializeOwned + 'static,
    {
        self.send(entry, argument);
        let message = self.link.receiver.receive().expect("an answer");
        match FromWorker::decode(message).expect("a message") {
            FromWorker::Finished(finished) => match finished.outcome {
                Outcome::Value(bytes) => codec::decode(bytes).expect("a value"),
                other => panic!("{other:?} instead of a value"),
            },
            other => panic!("{other:?} instead of the end of the task"),
        }
    }
}

type Place = (Option<WorkerId>, Option<u32>, Option<TaskId>, Option<Attempt>);

fn place((): ()) -> Place {
    (context::id(), context::depth(), context::task(), context::attempt())
}

#[test]
fn a_worker_knows_its_id_runs_tasks_and_stops() {
    let mut ready = Host::start().complete();
    let id = WorkerId { slot: 3, generation: 2 };
    let expected: Place = (Some(id), Some(1), Some(TaskId::new(77)), Some(Attempt::first()));
    assert_eq!(ready.call::<_, Place>(function_of(place), &()), expected);
    assert_eq!(
        ready.call::<_, usize>(function_of(|bytes: Vec<u8>| bytes.len()), &vec![1_u8; 300_000]),
        300_000
    );
    ready.post(&ToWorker::Stop);
    assert_eq!(ready.host.end(), (Exit::Code(exit_code::STOPPED), String::new()));
}

#[test]
fn a_result_as_large_as_the_limit_passes_the_link() {
    let mut ready = Host::start().complete();
    let length = LIMIT - 3;
    let bytes: Vec<u8> = ready.call(function_of(|length: usize| vec![7_u8; length]), &length);
    assert_eq!(bytes.len(), length);
}

/// Returns the descriptors that a program started by the task would inherit, other than the
/// standard streams.
fn inheritable((): ()) -> Vec<String> {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo").expect("a folder").flatten() {
        let number = entry.file_name().into_string().expect("a number");
        // The descriptor of this listing itself may be closed.
        let Ok(info) = fs::read_to_string(entry.path()) else {
            continue;
        };
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).expect("flags");
        let flags = u32::from_str_radix(flags.trim(), 8).expect("octal");
        if number.parse::<u32>().expect("a number") > 2 && flags & CLOSE_ON_EXEC == 0 {
            let target = fs::read_link(format!("/proc/self/fd/{number}"));
            found.push(format!("{number} -> {target:?}"));
        }
    }
    found
}

#[test]
fn children_of_a_task_inherit_neither_marker_nor_link() {
    let mut ready = Host::start().complete();
    let marker: Option<String> = ready.call(function_of(|()| env::var(MARKER).ok()), &());
    assert_eq!(marker, None);
    assert_eq!(ready.call::<_, Vec<String>>(function_of(inheritable), &()), Vec::<String>::new());
    let stdin: PathBuf =
        ready.call(function_of(|()| fs::read_link("/proc/self/fd/0").expect("stdin")), &());
    assert_eq!(stdin, PathBuf::from("/dev/null"));
}

#[test]
fn the_answer_identifies_the_worker() {
    let host = Host::start();
    host.greet(host.hello());
    let answer = host.answer();
    assert_eq!((answer.version, answer.pid), (PROTOCOL_VERSION, host.process.pid()));
    assert_eq!(answer.token, host.token);
    assert_eq!(answer.program.identity, *build_identity().as_bytes());
    host.leave();
}

#[test]
fn a_malformed_marker_is_refused() {
    Host::start_with("yes").assert_ends(exit_code::MARKER, "\"yes\"");
}

#[test]
fn a_worker_whose_parent_is_not_its_host_ends() {
    let not_us = format!("{PROTOCOL_VERSION}:1");
    Host::start_with(&not_us).assert_ends(exit_code::HOST_GONE, "the host (process 1) is gone");
}

#[test]
fn another_version_of_the_protocol_is_refused_with_a_reason() {
    let host = Host::start_with(&format!("{}:{}", PROTOCOL_VERSION + 1, process::id()));
    let FromWorkerControl::Refused { reason } = host.receive() else { panic!("not refused") };
    assert!(reason.contains("version"), "{reason}");
    host.assert_ends(exit_code::VERSION, "version");
}

#[test]
fn a_malformed_greeting_ends_the_worker() {
    let host = Host::start();
    host.control.send(&[0xff; 10], &[]).expect("a worker");
    host.assert_ends(exit_code::CONTROL, "control");

    let host = Host::start();
    host.control
        .send(&ToWorkerControl::Hello(host.hello()).encode().expect("encodes"), &[])
        .expect("a worker");
    host.assert_ends(exit_code::CONTROL, "without the table");

    let host = Host::start();
    host.greet(Hello { slots: SLOTS + 1, ..host.hello() });
    host.assert_ends(exit_code::SLOTS, "task states");
}

#[test]
fn a_link_that_was_not_built_in_is_refused_with_a_reason() {
    let mut command = self_command();
    command.env(MARKER, format!("{PROTOCOL_VERSION}:{}", process::id())).env(WITHOUT_LINKS, "1");
    let host = Host::start_command(command);
    host.greet(host.hello());
    let FromWorkerControl::Refused { reason } = host.receive() else { panic!("not refused") };
    assert!(reason.contains("Link::Ipc") && reason.contains("feature `ipc`"), "{reason}");
    assert!(!host.folder.exists());
    host.assert_ends(exit_code::LINK_REFUSED, "Link::Ipc");
}

#[test]
fn a_folder_that_cannot_be_created_is_refused_with_a_reason() {
    let host = Host::start();
    host.greet(Hello { folder: PathBuf::from("/proc/brigade"), ..host.hello() });
    let FromWorkerControl::Refused { reason } = host.receive() else { panic!("not refused") };
    assert!(reason.contains("/proc/brigade"), "{reason}");
    host.assert_ends(exit_code::SERVER, "/proc/brigade");
}

#[test]
fn a_host_that_ends_at_any_step_leaves_nothing_behind() {
    Host::start().leave();

    let host = Host::start();
    host.greet(host.hello());
    let server = host.answer().server;
    assert!(PathBuf::from(server).starts_with(&host.folder) && host.folder.exists());
    host.leave();
}

#[test]
fn a_connection_without_the_token_is_refused() {
    let host = Host::start();
    host.greet(host.hello());
    let link = ipc::connect(&host.folder, &host.answer().server, &Token::random(), LIMIT);
    host.go();
    host.assert_ends(exit_code::LINK_REFUSED, "token");
    drop(link);
}

#[test]
fn a_closed_link_ends_the_worker() {
    let Ready { host, link, .. } = Host::start().complete();
    drop(link);
    host.assert_ends(exit_code::LINK_CLOSED, "closed the link");
}

fn panic_elsewhere((): ()) -> bool {
    std::thread::spawn(|| panic!("in a thread of the task")).join().is_err()
}

#[test]
fn a_panic_of_another_thread_is_printed_as_usual() {
    let mut ready = Host::start().complete();
    assert!(ready.call::<_, bool>(function_of(panic_elsewhere), &()));
    ready.post(&ToWorker::Stop);
    let (exit, stderr) = ready.host.end();
    assert_eq!(exit, Exit::Code(exit_code::STOPPED));
    assert!(stderr.contains("in a thread of the task"), "{stderr}");
}

extern "C" fn called_by_foreign_code() {
    panic!("under foreign code");
}

#[test]
fn a_panic_that_aborts_is_not_silenced() {
    let mut ready = Host::start().complete();
    ready.send(function_of(|()| called_by_foreign_code()), &());
    let (exit, stderr) = ready.host.end();
    assert_eq!(exit, Exit::Signal(6), "{stderr}");
    assert!(
        stderr.contains("the task panicked at") && stderr.contains("under foreign code"),
        "{stderr}"
    );
    assert!(stderr.contains("cannot unwind"), "{stderr}");
}
