//! Reused pids: the second process with a pid is never signalled.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use brigade_sys::process::{ForeignProcess, Process, command};
use brigade_testkit::{BOUND, wait_until};
use brigade_timer::{Expiry, Reap, Signal, TimerEvent};

use crate::{idle_server, start_child, wait_past};

/// The kernel assigns the pid after this one next, if it may be written.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// Starts a process with a child, under a pid that is free. Where the next pid cannot be chosen,
/// starts processes until this one comes up.
fn process_with_number(pid: u32) -> Process {
    let started = Instant::now();
    loop {
        // Other tests start processes too, so it may take more than one try.
        let _ = fs::write(LAST_PID, (pid - 1).to_string());
        let process = Process::spawn(command("sh").args(["-c", "sleep 3600 & wait"]));
        let process = process.expect("a process");
        if process.pid() == pid {
            return process;
        }
        assert!(started.elapsed() < 30 * BOUND, "the pid {pid} does not come up");
    }
}

fn is_untouched(process: &Process) -> bool {
    process.try_reap().expect("our child").is_none() && !process.is_stopped()
}

fn children(pid: u32) -> Vec<u32> {
    brigade_testkit::processes::children_of(pid)
}

#[test]
fn a_process_that_reuses_a_pid_is_never_signalled() {
    let (mut server, seen) = idle_server(|settings| settings);
    let victim = start_child(&server.client(), "late", 500);
    seen.turn_until_registered(&mut server, &victim);
    // Its deadline passes while the server is idle; it dies, and another process gets its pid.
    wait_past(Duration::from_millis(500));
    victim.signal(Signal::Kill);
    let pid = victim.pid();
    victim.exit();
    let other = process_with_number(pid);
    server.run_once().expect("a turn");
    server.run_once().expect("a turn");
    let events = seen.rest();
    assert!(events.contains(&TimerEvent::Exited { pid, timers: 1 }), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, TimerEvent::Killed { .. })), "{events:?}");
    assert!(is_untouched(&other));
}

#[test]
fn a_pid_reused_between_decision_and_kill_harms_nobody() {
    // The same at the worst moment: the reaper has already been called.
    let (victim, handle) = {
        let process = Process::spawn(command("sleep").arg("3600")).expect("a process");
        let handle = ForeignProcess::open(process.pid()).expect("it is there");
        (process, handle)
    };
    let pid = victim.pid();
    victim.signal(Signal::Kill).expect("our child");
    victim.reap().expect("our child");
    let other = process_with_number(pid);
    wait_until("a child of the other process", BOUND, || !children(pid).is_empty());
    let grandchild = children(pid);
    let swept = handle.kill_tree(&mut Vec::new()).expect("gone is fine");
    handle.signal_group(Signal::Kill).expect("gone is fine");
    handle.signal(Signal::Kill).expect("gone is fine");
    assert!(swept.killed.is_empty(), "the other process's children are spared: {swept:?}");
    assert!(is_untouched(&other));
    assert_eq!(children(pid), grandchild);
}

#[test]
fn a_process_that_dies_during_its_reap_is_gone() {
    let dies_first = |expiry: &Expiry<'_>| -> io::Result<Reap> {
        expiry.process.signal(Signal::Kill)?;
        while !expiry.process.has_ended()? {
            std::thread::yield_now();
        }
        expiry.process.kill_tree(&mut Vec::new()).map(Reap::Gone)
    };
    let (mut server, seen) = idle_server(|settings| settings.reaper(dies_first));
    let process = start_child(&server.client(), "late", 500);
    seen.turn_until_registered(&mut server, &process);
    server.start().expect("a thread");
    seen.until(|event| matches!(event, TimerEvent::Killed { .. }));
    seen.until_exited(&process);
}
