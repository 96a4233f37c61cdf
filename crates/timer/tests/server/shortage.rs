//! A server without descriptors.

use brigade_sys::process::{ForeignProcess, Process, command};
use brigade_testkit::{BOUND, Side, copy_process, processes, wait_for, wait_until};
use brigade_timer::{ClientError, TimerClient, TimerServer};

/// Three children that have left their group.
const FAMILY: &str = "for child in 1 2 3; do setsid sleep 60 & done; wait";

/// Kills a family with so many descriptors to spare; how many were killed, and how many could not be looked below.
fn kill_with(descriptors: u64, wanted: (usize, usize)) {
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        // The limit is for all threads of a process.
        Side::Copy(copy) => copy.end_after(|| {
            let parent = Process::spawn(command("sh").args(["-c", FAMILY])).expect("a process");
            let foreign = ForeignProcess::open(parent.pid()).expect("it is there");
            let has_left = |pid: &u32| processes::group_of(*pid) == Some(*pid);
            let mut children = Vec::new();
            wait_until("the family", BOUND, || {
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
    copy.is_well();
}

#[test]
fn a_kill_reaches_all_descendants_with_few_descriptors_and_says_when_it_cannot_look() {
    kill_with(4, (3, 0));
    kill_with(0, (0, 1));
}

/// What a client of a server with so many descriptors to spare gets.
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
        // It does not listen yet.
        Err(ClientError::Connect { .. }) => None,
        answered => Some(answered),
    });
    // It is killed.
    drop(copy);
    answered
}

#[test]
fn a_client_for_whom_there_are_no_descriptors_is_told_so() {
    for descriptors in [0, 1] {
        let error = connect_to_server_with(descriptors).expect_err("it has no room");
        assert!(matches!(error, ClientError::Refused(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("the server is full, it needs two descriptors"), "{text}");
        assert!(text.contains("Too many open files"), "{text}");
    }
    connect_to_server_with(2).expect("room for one");
}
