//! Tests clients that claim to be others, die, flood or send too much.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;
use crate::clock::now;
use crate::process::{Process, Signal, command};
use crate::wait::wait_readable;

fn address() -> Address {
    let mut random = [0; 8];
    let source = std::fs::File::open("/dev/urandom").expect("a generator");
    io::Read::read_exact(&mut &source, &mut random).expect("random bytes");
    Address::Abstract(format!("brigade-test-{:x}", u64::from_ne_bytes(random)))
}

fn connected() -> (RequestSocket, RequestSocket, Peer) {
    let address = address();
    let listener = Listener::bind(&address).expect("a name that is free");
    let client = RequestSocket::connect(&address, soon()).expect("the listener is there");
    let (server, peer) = listener.accept().expect("descriptors").expect("a client");
    (client, server, peer.expect("a peer"))
}

fn until_readable(descriptor: impl AsFd) {
    let bound = now().saturating_add(Duration::from_secs(10));
    assert_eq!(wait_readable(&[descriptor.as_fd()], Some(bound)).expect("a wait"), [true]);
}

#[test]
fn the_kernel_identifies_the_client_and_each_sender() {
    let (client, server, peer) = connected();
    assert_eq!(peer.process.pid(), std::process::id());
    assert!(!peer.process.has_ended().expect("a look"));
    let mut buffer = [0; 8];
    assert_eq!(server.receive(&mut buffer).expect("a look"), Request::Nothing);
    client.send(b"hello").expect("room");
    let expected = Request::Packet { length: 5, sender: std::process::id() };
    assert_eq!(server.receive(&mut buffer).expect("a packet"), expected);
    assert_eq!(&buffer[..5], b"hello");
}

#[test]
fn a_packet_too_large_is_lost_and_the_next_is_not() {
    let (client, server, _) = connected();
    client.send(&[0; 9]).expect("room");
    client.send(&[1; 8]).expect("room");
    drop(client);
    let mut buffer = [0; 8];
    assert_eq!(server.receive(&mut buffer).expect("a packet"), Request::TooLarge);
    assert!(matches!(server.receive(&mut buffer), Ok(Request::Packet { length: 8, .. })));
    assert_eq!(server.receive(&mut buffer).expect("the end"), Request::Closed);
}

#[test]
fn sending_to_a_server_that_does_not_read_never_blocks() {
    let (client, server, _) = connected();
    let full = (0..100_000).find_map(|_| client.send(&[0; 64]).err()).expect("room is limited");
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
    drop(server);
    let gone = client.send(&[0]).expect_err("nobody reads").kind();
    assert!(matches!(gone, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset));
}

/// A deadline for calls that return at once.
fn soon() -> Monotonic {
    now().saturating_add(Duration::from_secs(20))
}

#[test]
fn a_client_waits_while_too_many_others_wait_to_be_accepted() {
    let address = address();
    let full = unix_socket(SocketFlags::CLOEXEC).expect("a socket");
    bind(&full, &address.encode().expect("a name")).expect("a free name");
    listen(&full, 0).expect("a listener");
    let first = RequestSocket::connect(&address, soon()).expect("room for one");
    let short = now().saturating_add(Duration::from_millis(20));
    let error = RequestSocket::connect(&address, short).expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    let late = std::thread::spawn(move || RequestSocket::connect(&address, soon()));
    drop(accept_with(&full, SocketFlags::CLOEXEC).expect("the first"));
    late.join().expect("no panic").expect("room");
    drop(first);
}

#[test]
fn only_a_socket_left_behind_is_replaced() {
    let folder = std::env::temp_dir().join(format!("brigade-socket-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("socket");
    let address = Address::parse(path.to_str().expect("a name")).expect("an address");
    // Like after SIGKILL: the file exists, and nobody listens.
    let left = unix_socket(SocketFlags::CLOEXEC).expect("a socket");
    bind(&left, &address.encode().expect("a path")).expect("a free path");
    drop(left);
    let first = Listener::bind(&address).expect("nobody is there");
    assert_eq!(Listener::bind(&address).expect_err("in use").kind(), io::ErrorKind::AddrInUse);
    RequestSocket::connect(&address, soon()).expect("the first is there");
    // Somebody else replaces the socket; the first server leaves it alone when it ends.
    std::fs::remove_file(&path).expect("the socket");
    let second = Listener::bind(&address).expect("a free path");
    drop(first);
    RequestSocket::connect(&address, soon()).expect("the second is there");
    drop(second);
    std::fs::write(&path, "a file").expect("a file");
    assert_eq!(Listener::bind(&address).expect_err("a file").kind(), io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read(&path).expect("the file"), b"a file");
    std::fs::remove_file(&path).expect("the file");
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 0, "a lock was left");
    std::fs::remove_dir(&folder).expect("the folder");
}

#[test]
fn a_socket_file_is_removed_with_its_listener() {
    let path = std::env::temp_dir().join(format!("brigade-{}.socket", std::process::id()));
    let address = Address::parse(path.to_str().expect("a name")).expect("an address");
    let listener = Listener::bind(&address).expect("a free path");
    assert_eq!(Listener::bind(&address).expect_err("in use").kind(), io::ErrorKind::AddrInUse);
    RequestSocket::connect(&address, soon()).expect("the listener is there");
    drop(listener);
    assert!(!path.exists());
    assert!(RequestSocket::connect(&address, soon()).is_err());
}

#[test]
fn a_displayed_address_parses_to_itself() {
    for text in ["@name", "/run/timer.socket"] {
        assert_eq!(Address::parse(text).expect("an address").to_string(), text);
    }
    let long = format!("@{}", "x".repeat(MAX + 1));
    for text in ["", "@", "relative", &long] {
        let error = Address::parse(text).expect_err("no address");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{text}");
    }
}

#[test]
fn a_foreign_process_and_its_descendants_are_killed() {
    // The inner shell leaves the group; its children are in a session of its own.
    let script = "setsid sh -c 'sleep 60 & sleep 60' & sleep 60";
    let process = Process::spawn(command("sh").args(["-c", script])).expect("a shell");
    let foreign = ForeignProcess::open(process.pid()).expect("it is there");
    let bound = now().saturating_add(Duration::from_secs(10));
    // The shell, its own sleep, and the two below.
    while descendants(process.pid()).len() < 4 {
        assert!(now() < bound, "the shells have not started their children");
        std::thread::yield_now();
    }
    let below = descendants(process.pid());
    let handles: Vec<_> =
        below.iter().map(|pid| ForeignProcess::open(*pid).expect("it is there")).collect();
    let mut swept = foreign.kill_tree(&mut Vec::new()).expect("our own child");
    swept.killed.sort_unstable();
    assert_eq!(swept.killed, below);
    assert!(swept.escaped.is_empty());
    for handle in &handles {
        until_readable(handle.pidfd());
    }
    until_readable(foreign.pidfd());
    assert!(foreign.has_ended().expect("a look"));
    foreign.signal_group(Signal::Kill).expect("gone is fine");
    assert!(foreign.kill_tree(&mut Vec::new()).expect("gone is fine").killed.is_empty());
}

fn descendants(pid: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let mut found = Vec::new();
    for child in list.unwrap_or_default().split_whitespace() {
        let child = child.parse().expect("a number");
        found.push(child);
        found.extend(descendants(child));
    }
    found.sort_unstable();
    found
}

#[test]
fn a_process_that_leads_no_group_is_signalled_alone() {
    // The second shell is in the group of the first.
    let process = Process::spawn(command("sh").args(["-c", "sleep 60 & wait"])).expect("a shell");
    let bound = now().saturating_add(Duration::from_secs(10));
    while descendants(process.pid()).is_empty() {
        assert!(now() < bound, "the shell has not started its child");
        std::thread::yield_now();
    }
    let child = ForeignProcess::open(descendants(process.pid())[0]).expect("it is there");
    child.signal_group(Signal::Stop).expect("our own");
    assert!(!process.is_stopped(), "the leader is not the child's to stop");
    child.signal_group(Signal::Kill).expect("our own");
    until_readable(child.pidfd());
}

#[test]
fn a_pipe_instead_of_the_lock_does_not_hold_up_a_server() {
    let path = std::env::temp_dir().join(format!("brigade-pipe-{}", std::process::id()));
    let lock = path.with_extension("lock");
    mkfifoat(CWD, &lock, Mode::RWXU).expect("a pipe");
    let address = Address::Path(path);
    let (done, until_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(Listener::bind(&address).map(drop)));
    let bound = until_done.recv_timeout(Duration::from_secs(10));
    // Releases a thread that waits for a reader.
    let _ = std::fs::File::options().read(true).write(true).open(&lock);
    std::fs::remove_file(&lock).expect("the pipe");
    assert!(bound.expect("an answer").is_err());
}
