//! A server that runs out of descriptors.

use brigade_sys::process::{ForeignProcess, Process, command};
use brigade_testkit::{BOUND, Side, copy_process, processes, wait_for, wait_until};
use brigade_timer::{ClientError, TimerClient, TimerServer};

/// Starts three children that leave their process group.
const FAMILY: &str = "for child in 1 2 3; do setsid sleep 60 & done; wait";

/// Kills a family with `descriptors` to spare. `wanted`: descendants killed, and processes whose
/// children could not be listed.
fn kill_with(descriptors: u64, wanted: (usize, usize)) {
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        // The limit applies to all threads of a process.
        Side::Copy(copy) => copy.end_after(|| {
            let parent = Process::spawn(command("sh").args(["-c", FAMILY])).expect("a process");
            let foreign = ForeignProcess::open(parent.pid()).expect("it is there");
            let has_left = |pid: &u32| processes::group_of(*pid) == Some(*pid);
            let mut children = Vec::new();
            wait_until("the children", BOUND, || {
                children = processes::children_of(parent.pid());
                children.iter().filter(|pid| has_left(pid)).count() == 3
            });
            processes::limit_descriptors(descriptors);
            let swept = foreign.kill_tree(&mut Vec::new()).expect("our own child");
            for child in children {
                processes::hit(child, processes::Signal::KILL);
            }
            assert_eq!((swept.killed.len(), swept.unseen.len()), wanted, "{swept:?}");
        }),
    };
    copy.assert_success();
}

#[test]
fn a_kill_with_few_descriptors_reports_what_it_cannot_reach() {
    kill_with(4, (3, 0));
    kill_with(0, (0, 1));
}

/// Connects to a server with `descriptors` to spare and returns the client's result.
fn connect_to_server_with(descriptors: u64) -> Result<(), ClientError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server");
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| {
            let mut server = TimerServer::builder().path(&path).build().expect("a server");
            processes::limit_descriptors(descriptors);
            server.start().expect("a thread");
            loop {
                std::thread::park();
            }
        }),
    };
    let client: TimerClient = path.display().to_string().parse().expect("an address");
    let answered = wait_for("a server", BOUND, || match client.connect() {
        // The server does not listen yet.
        Err(ClientError::Connect { .. }) => None,
        answered => Some(answered),
    });
    // Kills the copy.
    drop(copy);
    answered
}

#[test]
fn a_client_without_descriptors_is_refused_with_a_reason() {
    for descriptors in [0, 1] {
        let error = connect_to_server_with(descriptors).expect_err("it has no room");
        assert!(matches!(error, ClientError::Refused(_)), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("the server is full (it needs two descriptors per process)"),
            "{text}"
        );
        assert!(text.contains("os error 24"), "{text}");
    }
    connect_to_server_with(2).expect("room for one");
}
