//! Tests the promises of a control socket if the other side misbehaves or dies.

#![forbid(unsafe_code)]

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::control::{ControlSocket, PACKET_LIMIT, Received};
use brigade_sys::process::{Process, Signal};
use brigade_sys::segment::Segment;
use rustix::cmsg_space;
use rustix::io::{FdFlags, fcntl_getfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

fn ends() -> (ControlSocket, ControlSocket) {
    let (ours, theirs) = ControlSocket::pair().unwrap();
    (ours, ControlSocket::from_fd(theirs))
}

fn soon() -> Monotonic {
    now().saturating_add(Duration::from_secs(10))
}

fn packet(received: Received) -> (Vec<u8>, Vec<OwnedFd>) {
    match received {
        Received::Packet { bytes, descriptors } => (bytes, descriptors),
        other => panic!("{other:?} instead of a packet"),
    }
}

#[test]
fn packets_keep_their_boundaries_up_to_the_limit() {
    let (host, worker) = ends();
    let large = vec![7; PACKET_LIMIT];
    host.send(b"first", &[]).unwrap();
    host.send(&large, &[]).unwrap();
    assert_eq!(packet(worker.receive(Some(soon()), None).unwrap()).0, b"first");
    assert_eq!(packet(worker.receive(Some(soon()), None).unwrap()).0, large);
}

#[test]
fn both_ends_and_what_they_deliver_are_close_on_exec() {
    let (host, worker) = ends();
    let segment = Segment::create("brigade-test", 1).unwrap();
    host.send(b"x", &[segment.as_fd(), host.as_fd()]).unwrap();
    let (_, descriptors) = packet(worker.receive(Some(soon()), None).unwrap());
    assert_eq!(descriptors.len(), 2);
    for descriptor in descriptors.iter().map(AsFd::as_fd).chain([host.as_fd(), worker.as_fd()]) {
        assert_eq!(fcntl_getfd(descriptor).unwrap(), FdFlags::CLOEXEC);
    }
}

#[test]
fn a_segment_that_travels_with_a_packet_is_the_same_memory() {
    let (host, worker) = ends();
    let here = Segment::create("brigade-test", 4).unwrap();
    host.send(b"table", &[here.as_fd()]).unwrap();
    let (_, mut descriptors) = packet(worker.receive(Some(soon()), None).unwrap());
    let there = Segment::open(descriptors.pop().unwrap(), 4).unwrap();
    there.words()[3].store(42, Relaxed);
    assert_eq!(here.words()[3].load(Relaxed), 42);
}

#[test]
fn empty_and_oversized_packets_are_not_sent() {
    let (host, worker) = ends();
    let too_many = vec![host.as_fd(); 21];
    for (bytes, descriptors) in [(0, &[][..]), (PACKET_LIMIT + 1, &[]), (1, &too_many)] {
        let error = host.send(&vec![0; bytes], descriptors).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
    assert!(matches!(worker.receive(Some(now()), None).unwrap(), Received::TimedOut));
}

#[test]
fn an_oversized_packet_from_a_hostile_peer_is_an_error() {
    let (host, worker) = ends();
    send(&worker, &vec![0; PACKET_LIMIT + 1], SendFlags::NOSIGNAL).unwrap();
    assert_eq!(host.receive(Some(soon()), None).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn too_many_descriptors_from_a_hostile_peer_are_an_error() {
    let (host, worker) = ends();
    let many = vec![worker.as_fd(); 40];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(40))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(ancillary.push(SendAncillaryMessage::ScmRights(&many)));
    sendmsg(&worker, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::NOSIGNAL).unwrap();
    assert_eq!(host.receive(Some(soon()), None).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn packets_sent_before_a_hang_up_arrive_before_it() {
    let (host, worker) = ends();
    // Unread data on the other side makes the kernel report a reset in front of the packets.
    host.send(b"unread", &[]).unwrap();
    worker.send(b"one", &[]).unwrap();
    worker.send(b"two", &[]).unwrap();
    drop(worker);
    assert_eq!(packet(host.receive(Some(soon()), None).unwrap()).0, b"one");
    assert_eq!(packet(host.receive(Some(soon()), None).unwrap()).0, b"two");
    assert!(matches!(host.receive(Some(soon()), None).unwrap(), Received::Closed));
    assert_eq!(host.send(b"x", &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn a_hang_up_ends_a_waiting_receive() {
    let (host, worker) = ends();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| host.receive(Some(soon()), None).unwrap());
        drop(worker);
        assert!(matches!(waiting.join().unwrap(), Received::Closed));
    });
}

#[test]
fn a_death_is_noticed_while_somebody_else_holds_the_socket() {
    let (host, worker) = ends();
    let process = Process::spawn(Command::new("sleep").arg("60")).unwrap();
    process.signal_group(Signal::Kill).unwrap();
    assert!(matches!(
        host.receive(Some(soon()), Some(process.pidfd())).unwrap(),
        Received::PeerDied
    ));
    worker.send(b"last words", &[]).unwrap();
    assert_eq!(packet(host.receive(Some(soon()), Some(process.pidfd())).unwrap()).0, b"last words");
}
