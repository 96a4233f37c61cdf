//! Tests what only the ipc link has: packets, credit and the end mark. `tests/link_conformance.rs`
//! tests what every link promises.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ipc_channel::ipc;

use super::*;
use crate::packet::{write_credit, write_fragment};
use crate::window::{cost, window};
use brigade_wire::link::connect::WorkerEnd;
use brigade_wire::link::{LinkReceiver, LinkSender};

const LIMIT: usize = 1 << 20;

fn a_path() -> PathBuf {
    std::env::temp_dir().join(format!("brigade-link-{}", Token::random().short()))
}

fn link() -> (HostEnd, WorkerEnd) {
    let (host, channels) = host_end(Token::random(), LIMIT, &a_path()).expect("descriptors");
    (host, worker_end(channels, LIMIT))
}

/// Returns a host, and the channels of a worker that writes arbitrary packets.
fn raw_worker() -> (HostEnd, Channels) {
    host_end(Token::random(), LIMIT, &a_path()).expect("descriptors")
}

/// Packets that neither end writes.
fn garbage() -> Vec<Vec<u8>> {
    let with_total = |flags: u8, total: u64, bytes: &[u8]| {
        [&[flags], &[0; 8][..], &total.to_le_bytes(), bytes].concat()
    };
    vec![
        vec![],
        vec![0],
        vec![3; 8],
        vec![255; 9],
        [&[1], &[0; 8][..], &[1; 7]].concat(),
        [&[2], &[0; 8][..], &[1; 7]].concat(),
        with_total(1, u64::MAX, &[]),
        with_total(3, LIMIT as u64 + 1, &[1]),
        with_total(3, 2, &[1]),
        with_total(3, 1, &[1, 2]),
        with_total(1, 1, &[1]),
        vec![7; 60_000],
    ]
}

#[test]
fn sizes_around_a_fragment_arrive_whole_in_both_directions() {
    let (mut host, mut worker) = link();
    let fragment = window().fragment;
    for size in [0, 1, 2]
        .into_iter()
        .chain((fragment - 2)..(fragment + 3))
        .chain(2 * fragment - 2..2 * fragment + 3)
    {
        let message: Vec<u8> = brigade_testkit_core::payload(0, size);
        for head in [0, size / 2, size] {
            let (head, payload) = message.split_at(head);
            host.sender.send(head, payload).expect("never blocks");
            assert!(
                worker.receiver.receive().expect("a message") == message,
                "{size} to the worker"
            );
            worker.sender.send(head, payload).expect("room");
            assert!(host.receiver.receive().expect("a message") == message, "{size} to the host");
        }
    }
}

#[test]
fn the_host_reports_garbage_and_receives_the_next_message() {
    let (mut host, raw) = raw_worker();
    for packet in garbage() {
        raw.sender.send(&packet).expect("room");
        let received = host.receiver.receive();
        assert!(matches!(received, Err(LinkError::Protocol(_))), "{packet:?}: {received:?}");
        let mut whole = Vec::new();
        write_fragment(&mut whole, 0, b"sane", &[], 0, 10);
        raw.sender.send(&whole).expect("room");
        assert_eq!(host.receiver.receive().expect("the link is usable"), b"sane");
    }
}

#[test]
fn the_worker_reports_garbage_and_receives_the_next_message() {
    let (host, tasks) = ipc::bytes_channel().expect("descriptors");
    let (answers, _host) = ipc::bytes_channel().expect("descriptors");
    let mut worker =
        worker_end(Channels { token: Token::random(), receiver: tasks, sender: answers }, LIMIT);
    for packet in garbage() {
        host.send(&packet).expect("room");
        let received = worker.receiver.receive();
        assert!(matches!(received, Err(LinkError::Protocol(_))), "{packet:?}: {received:?}");
        let mut whole = Vec::new();
        write_fragment(&mut whole, 0, b"sane", &[], 0, 10);
        host.send(&whole).expect("room");
        assert_eq!(worker.receiver.receive().expect("the link is usable"), b"sane");
    }
}

#[test]
fn credit_for_more_than_was_sent_is_an_error() {
    let (mut host, raw) = raw_worker();
    let mut packet = Vec::new();
    write_credit(&mut packet, u64::MAX);
    raw.sender.send(&packet).expect("room");
    assert!(matches!(host.receiver.receive(), Err(LinkError::Protocol(_))));
}

/// The two halves of a worker's end may be used by two threads: the count that one has read may
/// arrive after the count that the other has raised.
#[test]
fn credit_overtaken_by_newer_credit_is_not_an_error() {
    let (mut host, raw) = raw_worker();
    host.sender.send(b"one", &[]).expect("never blocks");
    let mut packet = Vec::new();
    write_credit(&mut packet, cost(1));
    raw.sender.send(&packet).expect("room");
    write_fragment(&mut packet, 0, b"older", &[], 0, 10);
    raw.sender.send(&packet).expect("room");
    assert_eq!(host.receiver.receive().expect("a message"), b"older");
}

#[test]
fn the_end_mark_follows_whole_messages_and_cuts_partial_ones() {
    let (mut host, raw) = raw_worker();
    let mut packet = Vec::new();
    write_fragment(&mut packet, 0, b"whole", &[], 0, 10);
    raw.sender.send(&packet).expect("room");
    write_fragment(&mut packet, 0, b"cut off", &[], 0, 3);
    raw.sender.send(&packet).expect("room");
    host.end_mark.send();
    assert_eq!(host.receiver.receive().expect("a message"), b"whole");
    assert!(matches!(host.receiver.receive(), Err(LinkError::Closed)));
}

/// The worker's end and the end mark's duplicate of it are still open, so without the shutdown the
/// second call would wait forever.
#[test]
fn a_link_that_has_ended_stays_ended() {
    let (mut host, _raw) = raw_worker();
    host.end_mark.send();
    for _ in 0..3 {
        assert!(matches!(host.receiver.receive(), Err(LinkError::Closed)));
    }
}

#[test]
fn an_end_mark_that_nobody_reads_does_no_harm() {
    let (host, raw) = raw_worker();
    let HostEnd { end_mark, receiver, .. } = host;
    drop((receiver, raw));
    end_mark.send();
}

#[test]
fn a_host_does_not_wait_for_a_dead_worker_with_a_full_window() {
    let (mut host, worker) = link();
    let large = vec![1; window().fragment];
    for _ in 0..20 {
        host.sender.send(&[], &large).expect("never blocks");
    }
    drop(worker);
    // The message waits in the host's memory until the death is reported: either result is fine,
    // but the call must not block.
    for _ in 0..20 {
        assert!(matches!(host.sender.send(&[], &large), Ok(()) | Err(LinkError::Closed)));
    }
}

/// A worker must not lead its host to the socket of somebody else, and a connection that fails in
/// ipc-channel leaves a descriptor.
#[test]
fn a_name_that_is_no_socket_in_the_folder_is_refused() {
    let all = a_path();
    let path = |name: &str| all.join(name).to_str().expect("UTF-8").to_owned();
    let folder = all.join("own");
    fs::create_dir_all(folder.join("within")).expect("folders");
    fs::create_dir(path("other")).expect("a folder");
    std::os::unix::fs::symlink(path("other"), path("own/link")).expect("a link");
    let listen = |name| std::os::unix::net::UnixListener::bind(path(name)).expect("a socket");
    let _sockets = [listen("other/socket"), listen("own/within/socket")];
    std::os::unix::fs::symlink(path("other/socket"), path("own/to")).expect("a link");
    fs::write(path("own/file"), "").expect("a file");
    for name in [
        "",
        "/",
        "nul\0inside",
        &"x".repeat(5000),
        &path("other/socket"),
        &path("own/link/socket"),
        &path("own/within/../../other/socket"),
        &path("own/to"),
        &path("own/file"),
        &path("own/none"),
    ] {
        let connected = connect(&folder, name, &Token::random(), LIMIT);
        let error = connected.expect_err(name);
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}: {error}");
    }
    fs::remove_dir_all(all).expect("the folder");
}

#[test]
fn a_folder_with_a_long_path_is_refused_with_advice() {
    let folder = std::env::temp_dir().join("x".repeat(100));
    let error = Server::create(&folder).expect_err("too long");
    assert!(error.to_string().contains("set TMPDIR to a shorter one"), "{error}");
    assert!(!folder.exists());
}

#[test]
fn a_server_that_could_not_be_made_leaves_no_folder() {
    let folder = std::env::temp_dir().join(format!("brigade-{}", Token::random().short()));
    // The test harness has threads, so the environment must not be changed.
    let error = Server::create(&folder).expect_err("threads are running");
    assert!(matches!(error, ServerError::Environment(_)), "{error}");
    assert!(!folder.exists());
}

/// The folder of the servers, set in the copy of this test program that runs the body of
/// [`a_server_is_private_and_leaves_nothing_behind`].
const FOLDER: &str = "BRIGADE_TEST_FOLDER";

/// Creating a server sets `TMPDIR`, which is refused while the threads of a test harness run. So
/// this test starts its own program again, with the variable set.
#[test]
fn a_server_is_private_and_leaves_nothing_behind() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return make_and_use_servers(Path::new(&folder));
    }
    let folder = std::env::temp_dir().join(format!("brigade-{}", Token::random().short()));
    let name = "tests::a_server_is_private_and_leaves_nothing_behind";
    let output = Command::new(std::env::current_exe().expect("a program"))
        .args([name, "--exact"])
        .env(FOLDER, &folder)
        .env("TMPDIR", &folder)
        .output()
        .expect("a process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

fn make_and_use_servers(folder: &Path) {
    let create = || Server::create_by(folder, || Ok(ipc::IpcOneShotServer::new()));

    let (server, name) = create().expect("a server");
    assert!(Path::new(&name).starts_with(folder));
    let mode = fs::metadata(folder).expect("the folder").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(server);
    assert!(!folder.exists(), "dropped");

    let (server, name) = create().expect("another server");
    let again = create().expect_err("the folder is taken");
    assert!(matches!(again, ServerError::Folder(..)), "{again}");
    let token = Token::random();
    let mut host = connect(folder, &name, &token, LIMIT).expect("the server");
    let channels = server.accept().expect("the host's channels");
    assert!(!folder.exists(), "accepted");
    assert_eq!(channels.token, token);
    let mut worker = worker_end(channels, LIMIT);
    host.sender.send(b"to the ", b"worker").expect("room");
    assert_eq!(worker.receiver.receive().expect("a message"), b"to the worker");
    worker.sender.send(b"to the ", b"host").expect("room");
    assert_eq!(host.receiver.receive().expect("a message"), b"to the host");
    assert!(connect(folder, &name, &token, LIMIT).is_err(), "the server is gone");
}

#[test]
fn a_worker_with_false_credit_blocks_nobody() {
    let (mut host, raw) = raw_worker();
    let large = vec![1; window().fragment];
    for _ in 0..30 {
        host.sender.send(&[], &large).expect("never blocks");
    }
    let (mut packet, mut problem) = (Vec::new(), None);
    for packets in 1..30 {
        write_credit(&mut packet, packets * cost(large.len() + 17));
        raw.sender.send(&packet).expect("room");
    }
    host.end_mark.send();
    while problem.is_none() {
        if let Err(error) = host.receiver.receive() {
            problem = Some(error);
        }
    }
    assert!(matches!(problem, Some(LinkError::Protocol(_))), "{problem:?}");
}
