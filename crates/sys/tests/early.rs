//! Tests the first microseconds of a worker, in separate processes: each test starts this very
//! program again, and the scenario named by the variable `SCENARIO` runs there before `main`, when
//! there is only one thread.

#![forbid(unsafe_code)]

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::control::{ControlSocket, Received};
use brigade_sys::environment::{EnvironmentError, take, with_var};
use brigade_sys::executable::{
    Adapter, EntryError, FunctionOffset, Invocation, build_identity, entry_point,
};
use brigade_sys::guardian::Guardian;
use brigade_sys::lifeline::{self, Lifeline};
use brigade_sys::process::{Exit, Process, Signal, command, parent_pid, self_command};
use brigade_sys::segment::Segment;
use brigade_sys::wait::wait_readable;
use brigade_sys::{before_main, descriptors, futex, parent_death, signals};
use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd, read, write};
use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, WaitId, WaitIdOptions, getpgid, pidfd_open, setpgid,
    setrlimit, waitid,
};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, fs, process, thread};

before_main!(child);
before_main!(counted::note);

/// In the child: runs the scenario and ends the process. A failed assertion aborts it. In the
/// parent: does nothing.
fn child() {
    let Some(scenario) = env::var_os("SCENARIO") else {
        return;
    };
    match scenario.to_str().unwrap() {
        "environment" => environment(),
        "standard input" => standard_input(),
        "close" => close(),
        "close with threads" => close_with_threads(),
        "broken pipe" => broken_pipe(),
        "signals" => signals(),
        "guardian" => unguarded(),
        "lifeline" => hold_on(),
        "offset" => offset(),
        "middle" => middle(),
        "bound" => bound(),
        "unbound" => unbound(),
        "moved" => moved(),
        "segment" => segment(),
        other => panic!("no scenario {other}"),
    }
    process::exit(0);
}

mod counted {
    use super::{AtomicU32, Relaxed};

    pub(crate) static RUNS: AtomicU32 = AtomicU32::new(0);

    pub(crate) fn note() {
        RUNS.fetch_add(1, Relaxed);
    }
}

#[test]
fn functions_at_item_and_statement_position_run_before_main() {
    before_main!(counted::note);
    assert_eq!(counted::RUNS.load(Relaxed), 2);
}

#[test]
fn a_worker_with_one_thread_can_change_its_environment() {
    assert_succeeds(self_command().env("SCENARIO", "environment").env("MARKER", "here"));
}

fn environment() {
    assert_eq!(take("MARKER").unwrap().unwrap(), "here");
    assert_eq!(env::var_os("MARKER"), None);
    assert_eq!(take("MARKER").unwrap(), None);

    assert_eq!(with_var("MARKER", "inside", || env::var("MARKER").unwrap()).unwrap(), "inside");
    assert_eq!(env::var_os("MARKER"), None);

    let left_behind = with_var("MARKER", "kept", || drop(thread::spawn(thread::park)));
    assert!(matches!(left_behind, Err(EnvironmentError::ThreadsRunning { threads: 2 })));
    assert_eq!(env::var("MARKER").unwrap(), "kept");
}

#[test]
fn a_control_socket_on_standard_input_is_moved_and_works() {
    let (host, theirs) = ControlSocket::pair().unwrap();
    let worker =
        Process::spawn(self_command().env("SCENARIO", "standard input").stdin(theirs)).unwrap();
    let Received::Packet { bytes, .. } =
        host.receive(Some(deadline()), Some(worker.pidfd())).unwrap()
    else {
        panic!("no answer");
    };
    assert_eq!(bytes, worker.pid().to_string().as_bytes());
    assert_eq!(worker.reap().unwrap(), Exit::Code(0));
    assert!(matches!(host.receive(Some(deadline()), None).unwrap(), Received::Closed));
}

fn standard_input() {
    let taken = descriptors::take_stdin().unwrap();
    assert!(taken.as_raw_fd() >= 3);
    assert_eq!(fcntl_getfd(&taken).unwrap(), FdFlags::CLOEXEC);
    assert_eq!(fcntl_getfd(rustix::stdio::stdin()).unwrap(), FdFlags::empty());
    assert_eq!(read(rustix::stdio::stdin(), &mut [0_u8; 8]).unwrap(), 0);
    ControlSocket::from_fd(taken).send(process::id().to_string().as_bytes(), &[]).unwrap();
}

#[test]
fn inherited_descriptors_are_closed_and_our_own_are_not() {
    let inherited = fs::File::open("/proc/self/environ").unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    assert_succeeds(self_command().env("SCENARIO", "close"));
}

fn close() {
    let ours = fs::File::open("/dev/null").unwrap();
    assert!(open_descriptors() >= 5);
    descriptors::shed_inherited();
    assert_eq!(open_descriptors(), 4);
    assert!(fcntl_getfd(&ours).is_ok());
    // Only once: from now on there may be files that C code has opened.
    fcntl_setfd(&ours, FdFlags::empty()).unwrap();
    descriptors::shed_inherited();
    assert_eq!(fcntl_getfd(&ours).unwrap(), FdFlags::CLOEXEC);
}

#[test]
fn inherited_descriptors_go_no_further_while_threads_run() {
    let inherited = fs::File::open("/proc/self/environ").unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    assert_succeeds(self_command().env("SCENARIO", "close with threads"));
}

fn close_with_threads() {
    thread::spawn(thread::park);
    let before = open_descriptors();
    descriptors::shed_inherited();
    assert_eq!(open_descriptors(), before);
    let after = command("ls").arg("/proc/self/fd").output().unwrap();
    // Three streams, and the descriptor of the listing itself.
    assert_eq!(String::from_utf8(after.stdout).unwrap().lines().count(), 4);
}

/// Returns the number of open descriptors, except that of the listing itself.
fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

#[test]
fn a_write_to_a_closed_pipe_becomes_an_error() {
    assert_succeeds(self_command().env("SCENARIO", "broken pipe"));
}

fn broken_pipe() {
    signals::reset();
    let (reader, writer) = descriptors::output_pipe().unwrap();
    drop(reader);
    assert_eq!(write(&writer, b"x"), Err(Errno::PIPE));
}

#[test]
fn a_worker_starts_with_default_signals_whatever_its_host_set() {
    let mut env = command("env");
    env.args(["--block-signal", "--ignore-signal=TERM,CHLD,TSTP,PIPE,TTOU"]);
    env.arg(env::current_exe().unwrap()).env("SCENARIO", "signals");
    assert_succeeds(&mut env);
}

fn signals() {
    assert_ne!(signal_set("SigBlk"), 0, "`env` has blocked signals");
    signals::reset();
    assert_eq!(signal_set("SigBlk"), 0);
    // SIGPIPE, SIGTTIN, SIGTTOU; the C library ignores two of its own (32 and 33) in processes that
    // it spawns.
    let ignored = signal_set("SigIgn") & !(0b11 << 31);
    assert_eq!(ignored, 1 << 12 | 1 << 20 | 1 << 21);
}

#[test]
fn a_worker_without_parent_death_signal_ends_by_its_lifeline() {
    let (host, theirs) = ControlSocket::pair().unwrap();
    let worker = Process::spawn(self_command().env("SCENARIO", "lifeline").stdin(theirs)).unwrap();
    let (lifeline, end) = Lifeline::new().unwrap();
    host.send(b"lifeline", &[end.as_fd()]).unwrap();
    let answer = host.receive(Some(deadline()), Some(worker.pidfd())).unwrap();
    assert!(matches!(answer, Received::Packet { .. }), "{answer:?}");
    assert_eq!(worker.try_reap().unwrap(), None);
    drop(lifeline);
    assert_eq!(worker.reap().unwrap(), Exit::Signal(9));
}

fn hold_on() {
    let control = ControlSocket::from_fd(descriptors::take_stdin().unwrap());
    let Received::Packet { mut descriptors, .. } = control.receive(None, None).unwrap() else {
        panic!("no lifeline")
    };
    assert!(lifeline::arm(descriptors.pop().unwrap()).unwrap());
    parent_death::unbind();
    control.send(b"armed", &[]).unwrap();
    futex::wait(&AtomicU64::new(0), 0);
    panic!("the wait ended");
}

#[test]
fn a_guardian_without_a_free_descriptor_does_not_stay() {
    assert_succeeds(self_command().env("SCENARIO", "guardian"));
}

fn unguarded() {
    descriptors::shed_inherited();
    // One for the guardian's view of this process, and none for this process's view of the
    // guardian.
    setrlimit(Resource::Nofile, Rlimit { current: Some(4), maximum: Some(4) }).unwrap();
    let error = Guardian::start(1, "MARK=x").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
    let children = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    assert_eq!(children.unwrap_err(), Errno::CHILD);
}

/// Returns a line of `/proc/self/status` as a mask: bit 0 is signal 1.
fn signal_set(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":"));
    u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
}

struct Bytes;

impl<F: Fn(&[u8]) -> Vec<u8>> Adapter<F> for Bytes {
    fn call(function: F, invocation: &mut Invocation<'_>) -> Result<(), EntryError> {
        invocation.result.extend(function(invocation.argument));
        Ok(())
    }
}

#[test]
fn a_function_is_found_in_another_process_of_the_program() {
    let entry = entry_point::<_, Bytes>(|bytes: &[u8]| bytes.repeat(3));
    let offset = FunctionOffset::of(entry).unwrap();
    let mut command = self_command();
    command.env("SCENARIO", "offset").env("OFFSET", offset.raw().to_string());
    command.env("IDENTITY", build_identity().to_string());
    assert_succeeds(&mut command);
}

fn offset() {
    assert_eq!(build_identity().to_string(), env::var("IDENTITY").unwrap());
    let offset = FunctionOffset::from_raw(env::var("OFFSET").unwrap().parse().unwrap());
    let mut result = Vec::new();
    offset.resolve(build_identity().same_build().unwrap()).unwrap()(&mut Invocation::new(
        b"ab",
        &mut result,
        100,
    ))
    .unwrap();
    assert_eq!(result, b"ababab");
    assert_eq!(env::args().next().unwrap(), "brigade-worker");
}

#[test]
fn a_segment_crosses_into_another_process() {
    let (host, theirs) = ControlSocket::pair().unwrap();
    let segment = Segment::create("brigade-test", 16).unwrap();
    let worker = Process::spawn(self_command().env("SCENARIO", "segment").stdin(theirs)).unwrap();
    host.send(b"table", &[segment.as_fd()]).unwrap();
    assert_eq!(worker.reap().unwrap(), Exit::Code(0));
    assert_eq!(segment.words()[15].load(Relaxed), 99);
}

fn segment() {
    let control = ControlSocket::from_fd(descriptors::take_stdin().unwrap());
    let Received::Packet { mut descriptors, .. } = control.receive(Some(deadline()), None).unwrap()
    else {
        panic!("no packet");
    };
    Segment::open(descriptors.pop().unwrap(), 16).unwrap().words()[15].store(99, Relaxed);
}

#[test]
fn a_bound_worker_dies_with_its_parent() {
    let (middle, output) = start_middle("bound");
    assert_eq!(next_bytes(&output), b"bound");
    middle.signal(Signal::Kill).unwrap();
    assert_eq!(next_bytes(&output), b"", "the pipe hangs up when the worker is gone");
}

#[test]
fn an_unbound_worker_outlives_its_parent_and_stays_unbound() {
    let (middle, output) = start_middle("unbound");
    assert_eq!(next_bytes(&output), b"unbound");
    middle.signal(Signal::Kill).unwrap();
    assert_eq!(next_bytes(&output), b"alone");
    assert_eq!(next_bytes(&output), b"");
}

/// Starts a process that starts another one with the scenario; returns it and the output of the
/// other.
fn start_middle(scenario: &str) -> (Process, OwnedFd) {
    let (reader, writer) = descriptors::output_pipe().unwrap();
    let mut command = self_command();
    command.env("SCENARIO", "middle").env("NEXT", scenario).stdout(writer);
    (Process::spawn(&mut command).unwrap(), reader)
}

fn middle() {
    let _worker =
        Process::spawn(self_command().env("SCENARIO", env::var_os("NEXT").unwrap())).unwrap();
    rest();
}

fn bound() {
    parent_death::bind(parent_pid()).unwrap();
    write(rustix::stdio::stdout(), b"bound").unwrap();
    rest();
}

fn unbound() {
    let host = parent_pid();
    let pid = Pid::from_raw(i32::try_from(host).unwrap()).unwrap();
    let death = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    parent_death::bind(host).unwrap();
    parent_death::unbind();
    write(rustix::stdio::stdout(), b"unbound").unwrap();
    assert_eq!(wait_readable(&[death.as_fd()], Some(deadline())).unwrap(), [true]);
    let gone = parent_death::bind(host).unwrap_err();
    assert_eq!(gone.host, host);
    assert_ne!(gone.parent, host);
    write(rustix::stdio::stdout(), b"alone").unwrap();
}

#[test]
fn a_worker_that_has_left_its_group_cannot_escape_a_kill() {
    let (reader, writer) = descriptors::output_pipe().unwrap();
    let worker = Process::spawn(self_command().env("SCENARIO", "moved").stdout(writer)).unwrap();
    assert_eq!(next_bytes(&reader), b"moved");
    worker.signal_group(Signal::Kill).unwrap();
    assert_eq!(worker.reap().unwrap(), Exit::Signal(9));
}

fn moved() {
    let parent = Pid::from_raw(i32::try_from(parent_pid()).unwrap());
    setpgid(None, Some(getpgid(parent).unwrap())).unwrap();
    write(rustix::stdio::stdout(), b"moved").unwrap();
    rest();
}

fn assert_succeeds(command: &mut process::Command) {
    assert_eq!(Process::spawn(command).unwrap().reap().unwrap(), Exit::Code(0));
}

fn deadline() -> Monotonic {
    now().saturating_add(Duration::from_secs(10))
}

/// Stays until it is killed, or fails the test if nobody kills it.
fn rest() {
    wait_readable(&[], Some(deadline())).unwrap();
    panic!("nobody has ended this process");
}

/// Returns the next bytes of the pipe; empty after all possible writers are gone.
fn next_bytes(reader: &OwnedFd) -> Vec<u8> {
    assert_eq!(
        wait_readable(&[reader.as_fd()], Some(deadline())).unwrap(),
        [true],
        "the pipe is silent until the deadline"
    );
    let mut buffer = vec![0; 64];
    let count = read(reader, &mut buffer).unwrap();
    buffer.truncate(count);
    buffer
}
