//! Clients that die, impersonate others, flood, or break the protocol: the server goes on and
//! serves the others.

use std::collections::VecDeque;
use std::process::Stdio;
use std::time::{Duration, Instant};

use brigade_sys::clock::now;
use brigade_sys::process::{Exit, ForeignProcess, Process, command};
use brigade_sys::request_socket::{Address, Request, RequestSocket};
use brigade_sys::wait::wait_readable;
use brigade_testkit::{BOUND, LeakCheck, repetitions};
use brigade_timer::{ClientError, LogReaper, SCOPE_LIMIT, Signal, TimerClient, TimerEvent};

use crate::{LONG, Seen, server, start_child};

/// `Hello { version: 2 }`.
const HELLO: &[u8] = &[0, 2];

/// Encodes an `Acquire` of this scope, at the first nanosecond of the clock and without an
/// escalation: overdue.
fn acquire(scope: &str) -> Vec<u8> {
    let length = u8::try_from(scope.len()).expect("a short name");
    [&[1, 0, length], scope.as_bytes(), &[1, 0]].concat()
}

/// The role of a client that is killed after it has sent `length` bytes of a request.
pub(crate) fn send_a_part_and_die(client: &TimerClient, length: u64) {
    let socket = connected(client);
    let request = acquire("rendezvous");
    let length = usize::try_from(length).expect("small").min(request.len());
    socket.send(&request[..length]).expect("room");
    let us = ForeignProcess::open(std::process::id()).expect("it is us");
    us.signal(Signal::Kill).expect("us");
}

/// Opens a connection below the level of [`TimerClient`].
fn raw(client: &TimerClient) -> RequestSocket {
    let address = Address::parse(&client.to_string()).expect("an address");
    RequestSocket::connect(&address, now().saturating_add(BOUND)).expect("a server")
}

fn connected(client: &TimerClient) -> RequestSocket {
    let socket = raw(client);
    socket.send(HELLO).expect("room");
    let (length, answer) = answer(&socket);
    assert_eq!(&answer[..length], [0], "welcome");
    socket
}

/// Receives the next packet from the server; empty at the end.
fn answer(socket: &RequestSocket) -> (usize, [u8; 512]) {
    let bound = now().saturating_add(BOUND);
    let ready = wait_readable(&[std::os::fd::AsFd::as_fd(socket)], Some(bound)).expect("a wait");
    assert_eq!(ready, [true], "no answer");
    let mut buffer = [0; 512];
    match socket.receive(&mut buffer).expect("an answer") {
        Request::Packet { length, .. } => (length, buffer),
        other => {
            assert_eq!(other, Request::Closed);
            (0, buffer)
        }
    }
}

fn until_refused(seen: &Seen) -> String {
    let refused = seen.until(|event| matches!(event, TimerEvent::Refused { .. }));
    let TimerEvent::Refused { reason, .. } = refused else { unreachable!() };
    reason
}

#[test]
fn clients_killed_within_a_request_do_not_stop_the_server() {
    // Only logs, because the raw requests here are overdue.
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let check = LeakCheck::new();
    let mut living = VecDeque::new();
    let mut exited = 0;
    let mut count =
        |event: &TimerEvent| exited += u64::from(matches!(event, TimerEvent::Exited { .. }));
    let bytes = acquire("rendezvous").len() as u64 + 1;
    let children = repetitions(1_000_u64);
    for number in 0..children {
        living.push_back(start_child(&client, "cut", number % bytes));
        if living.len() == 4 {
            assert_eq!(living.pop_front().expect("four").exit(), Exit::Signal(9));
        }
        seen.rest().iter().for_each(&mut count);
    }
    for process in living {
        assert_eq!(process.exit(), Exit::Signal(9));
    }
    while exited < children {
        let event = seen.next();
        exited += u64::from(matches!(event, TimerEvent::Exited { .. }));
    }
    check.assert_none(BOUND);
    client.acquire("still there", Instant::now()).expect("a server");
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
}

#[test]
fn clients_killed_while_sending_leave_nothing_behind() {
    let (server, seen) = server(|settings| settings);
    let client = server.client();
    for _ in 0..50 {
        let process = start_child(&client, "requests", 0);
        seen.until_registered(&process);
        process.signal(Signal::Kill);
        seen.until_exited(&process);
    }
    assert!(server.is_running());
}

#[test]
fn garbage_closes_only_its_own_connection() {
    let (server, seen) = server(|settings| settings);
    let client = server.client();
    let bystander = connected(&client);
    let mut random = brigade_testkit::Random::new(7);
    for length in 0..200_usize {
        let socket = connected(&client);
        // No request starts with this byte.
        let garbage: Vec<u8> = std::iter::once(0xff)
            .chain((0..length).map(|_| *random.choose(&[0, 1, 2, 0x7f, 0x80])))
            .collect();
        socket.send(&garbage).expect("room");
        until_refused(&seen);
    }
    let too_large = connected(&client);
    too_large.send(&[1; 4096]).expect("room");
    assert_eq!(until_refused(&seen), "packet exceeds the limit");
    let hasty = raw(&client);
    hasty.send(&acquire("rendezvous")).expect("room");
    assert_eq!(until_refused(&seen), "request before `Hello`");
    let other = raw(&client);
    other.send(&[0, 9]).expect("room");
    assert_eq!(until_refused(&seen), "protocol version 9 is not supported, expected 2");
    let twice = connected(&client);
    twice.send(HELLO).expect("room");
    assert_eq!(until_refused(&seen), "second `Hello`");
    bystander.send(&[2, 1, 1]).expect("a release, by a connection that is open");
    assert!(server.is_running());
}

#[test]
fn a_connection_used_by_another_process_is_closed() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let socket = connected(&client);
    // The child writes an overdue deadline to its parent's connection, as a forked process could.
    let octal: Vec<String> =
        acquire("rendezvous").iter().map(|byte| format!("\\{byte:03o}")).collect();
    let descriptor = std::os::fd::AsFd::as_fd(&socket).try_clone_to_owned().expect("descriptors");
    let child = Process::spawn(
        command("sh")
            .args(["-c", &format!("printf '{}'", octal.concat())])
            .stdout(Stdio::from(descriptor)),
    );
    let child = child.expect("a shell");
    let reason = until_refused(&seen);
    assert_eq!(reason, format!("process {} must open its own connection", child.pid()));
    child.reap().expect("our child");
    client.acquire("ours", Instant::now() + LONG).expect("a server");
    let armed = seen.rest();
    assert!(!armed.iter().any(|event| matches!(event, TimerEvent::Expired { .. })), "{armed:?}");
}

#[test]
fn a_flood_of_requests_does_not_delay_other_deadlines() {
    let (server, seen) = server(|settings| settings);
    let flood = start_child(&server.client(), "requests", 0);
    seen.until_registered(&flood);
    let late = start_child(&server.client(), "late", 50);
    assert_eq!(late.exit(), Exit::Signal(9));
    flood.signal(Signal::Kill);
    seen.until_exited(&flood);
}

#[test]
fn a_process_may_have_sixteen_connections() {
    let (server, seen) = server(|settings| settings);
    let client = server.client();
    let connections: Vec<TimerClient> =
        (0..17).map(|_| client.to_string().parse().expect("an address")).collect();
    for connection in &connections[..16] {
        connection.connect().expect("not too many");
    }
    assert!(matches!(connections[16].connect(), Err(ClientError::Refused(_))));
    until_refused(&seen);
}

#[test]
fn the_client_refuses_a_scope_above_the_limit() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    let long = "x".repeat(SCOPE_LIMIT + 1);
    let error = client.acquire(long, Instant::now() + Duration::from_secs(1));
    assert!(matches!(error, Err(ClientError::ScopeTooLong { length: 129, limit: 128 })));
    let longest = "x".repeat(SCOPE_LIMIT);
    client.acquire(longest.as_str(), Instant::now() + LONG).expect("the limit itself");
    client.release(longest).expect("the limit itself");
}
