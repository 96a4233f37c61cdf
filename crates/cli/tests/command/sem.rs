//! Tests of commands that take turns.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::PathBuf;

use brigade_sys::file_lock;
use brigade_sys::private_folder::user_id;

use crate::common::{TestDir, is_alive, pids, until, until_at_rest};

#[test]
fn commands_take_turns() {
    let dir = TestDir::new();
    let sem = |arguments: &[&str]| {
        let arguments = [&["sem", "--id", "turns"], arguments].concat();
        dir.command(&arguments).status().expect("brigade").code()
    };
    let go = dir.fifo("go");
    assert_eq!(sem(&["echo 1 >> log; read line < go; echo 2 >> log"]), Some(0));
    until("the first command", || dir.read("log") == "1\n");
    let mut second = dir.spawn(&["sem", "--id", "turns", "echo 3 >> log"]);
    until_at_rest(second.id());
    assert!(second.try_wait().expect("own child").is_none());
    fs::write(go, "").expect("a reader");
    assert!(second.wait().expect("own child").success());
    assert_eq!(sem(&["--wait"]), Some(0));
    assert_eq!(dir.read("log"), "1\n2\n3\n");
    assert_eq!(sem(&["-j2", "--fg", "exit", "7"]), Some(7));
    assert_eq!(sem(&["--fg", "test", "-e", "log"]), Some(0));
}

#[test]
fn a_killed_holder_does_not_block_others() {
    let dir = TestDir::new();
    let held = ["sem", "--fg", "echo $$ >> pids; exec sleep 600"];
    let mut holder = dir.spawn(&held);
    let job = pids(&dir.path("pids"), 1).remove(0);
    // It waits, but not for ever.
    let status =
        |limit| dir.command(&["sem", "--fg", "--st", limit, "true"]).status().expect("brigade");
    assert_eq!(status("-0.1").code(), Some(1));
    assert_eq!(status("0.1").code(), Some(0));
    let mut next = dir.spawn(&["sem", "--fg", "true"]);
    holder.kill().expect("own child");
    holder.wait().expect("own child");
    assert!(next.wait().expect("own child").success());
    until("the end of the job", || !is_alive(&job));
}

#[test]
fn a_folder_of_another_user_is_not_used() {
    let (dir, other) = (TestDir::new(), TestDir::new());
    let runtime = if user_id() == 0 {
        chown(other.path(""), Some(65534), None).expect("root may");
        other.path("")
    } else {
        PathBuf::from("/usr")
    };
    let id = format!("other-{}", std::process::id());
    let mut command = dir.command(&["sem", "--id", &id, "--fg", "true"]);
    assert!(command.env("XDG_RUNTIME_DIR", &runtime).status().expect("brigade").success());
    assert!(!runtime.join("brigade").exists());
}

#[test]
fn threads_that_cannot_be_started_are_an_error() {
    // The system has no room for a stack of this size.
    const STACK: u64 = 1 << 47;
    let dir = TestDir::new();
    let sem = ["sem", "--id", "many", "--fg", "true"];
    assert!(dir.command(&sem).status().expect("brigade").success());
    let held = [1, 2].map(|place| {
        let file = File::create(dir.path(&format!("brigade/sem-many-{place}"))).expect("disk");
        assert!(file_lock::try_lock(&file).expect("possible"));
        file
    });
    let mut command = dir.command(&["sem", "--id", "many", "-j2", "--fg", "true"]);
    let output = command.env("RUST_MIN_STACK", STACK.to_string()).output().expect("brigade");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot lock the semaphore"), "{text}");
    drop(held);
}
