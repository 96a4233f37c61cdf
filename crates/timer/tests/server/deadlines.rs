//! Deadlines of real processes: late ones are killed, others are not.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brigade_sys::process::Exit;
use brigade_testkit::{BOUND, PATIENCE, processes, wait_until};
use brigade_timer::{Escalation, Expiry, LogReaper, Reap, Signal, TimerEvent};

use crate::{LONG, cookie, idle_server, server, start_child, wait_past};

const KILLED: Exit = Exit::Signal(9);

/// Milliseconds in which a family starts.
const TO_GROW: u64 = 500 * PATIENCE;

#[test]
fn late_processes_are_killed_and_others_are_not() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    let late = [(); 4].map(|()| start_child(&client, "late", 50));
    let in_time = [(); 4].map(|()| start_child(&client, "in time", 0));
    for process in in_time {
        assert_eq!(process.exit(), Exit::Code(0));
    }
    for process in late {
        assert_eq!(process.exit(), KILLED);
    }
}

#[test]
fn a_kill_is_never_early_and_its_lateness_is_reported() {
    let (server, seen) = server(|settings| settings);
    let process = start_child(&server.client(), "late", 20);
    let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { pid, timers, lateness } = expired else { unreachable!() };
    assert_eq!(pid, process.pid());
    assert_eq!(timers.len(), 1);
    assert_eq!(timers[0].scope.to_string(), "work");
    assert!(brigade_sys::clock::now() >= timers[0].deadline);
    let killed = seen.until(|event| matches!(event, TimerEvent::Killed { .. }));
    let TimerEvent::Killed { pid, lateness: killed, .. } = killed else { unreachable!() };
    assert!(pid == process.pid() && killed >= lateness);
    seen.until_exited(&process);
}

#[test]
fn a_process_that_exits_with_a_timer_armed_loses_it() {
    let (server, seen) = server(|settings| settings);
    let process = start_child(&server.client(), "exits", 3_600_000);
    assert_eq!(seen.until_exited(&process), 1);
    assert_eq!(process.exit(), Exit::Code(3));
}

#[test]
fn a_nested_guard_does_not_disarm_the_outer_one() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    assert_eq!(start_child(&client, "nested", 50).exit(), KILLED);
    assert_eq!(start_child(&client, "inner", 50).exit(), KILLED);
}

#[test]
fn the_server_sleeps_until_a_deadline_without_polling() {
    let (server, seen) = server(|settings| settings);
    let process = start_child(&server.client(), "late", 300);
    seen.until_registered(&process);
    seen.until_exited(&process);
    // A few wake-ups: for the client, its deadline, its exit. Polling every 10 ms would add thirty.
    let name = |thread: &std::path::Path| std::fs::read_to_string(thread.join("comm"));
    let threads = std::fs::read_dir("/proc/self/task").expect("proc").flatten();
    let switches: Vec<u64> = threads
        .map(|thread| thread.path())
        .filter(|thread| name(thread).is_ok_and(|name| name.trim() == "brigade-timer"))
        .filter_map(|thread| {
            let status = std::fs::read_to_string(thread.join("status")).ok()?;
            let line = status.lines().find(|line| line.starts_with("voluntary_ctxt"))?;
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .collect();
    // Servers of other tests are among the threads.
    let fewest = switches.iter().min().expect("the server's thread");
    assert!(*fewest < 20, "{fewest} wake-ups");
}

#[test]
fn descendants_of_a_process_that_exits_early_are_killed_too() {
    let escalation = Escalation::kill().after(Signal::Terminate, Duration::from_millis(100));
    let (server, seen) = server(|settings| settings.escalation(escalation));
    let process = start_child(&server.client(), "family", TO_GROW);
    seen.until_registered(&process);
    // The shell, two of the three `sleep`s, and the shell in its own session with two more.
    let family = || processes::with_variable(crate::COOKIE, &cookie("family", TO_GROW));
    wait_until("the family", BOUND, || family().len() >= 6);
    let killed = seen.until(|event| matches!(event, TimerEvent::Killed { .. }));
    let TimerEvent::Killed { swept, .. } = killed else { unreachable!() };
    // SIGTERM ended the process and none of those that ignore it. They were recorded before it and
    // are killed now.
    assert!(swept.killed.len() >= 5 && swept.escaped.is_empty(), "{swept:?}");
    wait_until("an end of the family", BOUND, || family().is_empty());
    assert_eq!(process.exit(), Exit::Signal(15));
}

#[test]
fn descendants_that_left_the_group_are_killed_and_reported() {
    let (server, seen) = server(|settings| settings);
    let process = start_child(&server.client(), "family", TO_GROW + 1);
    let family = || processes::with_variable(crate::COOKIE, &cookie("family", TO_GROW + 1));
    wait_until("the family", BOUND, || family().len() >= 6);
    let killed = seen.until(|event| matches!(event, TimerEvent::Killed { .. }));
    let TimerEvent::Killed { swept, .. } = killed else { unreachable!() };
    assert!(swept.killed.len() >= 5, "{swept:?}");
    wait_until("an end of the family", BOUND, || family().is_empty());
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_stopped_process_is_killed() {
    let (server, _seen) = server(|settings| settings);
    let process = start_child(&server.client(), "late", 500);
    process.wait_until_hanging();
    process.signal(Signal::Stop);
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_request_overrides_the_escalation_of_the_server() {
    let (server, seen) = server(|settings| settings);
    let process = start_child(&server.client(), "logged", 100);
    let first = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { timers, .. } = first else { unreachable!() };
    assert_eq!(timers[0].scope.to_string(), "logged");
    assert!(timers[0].escalation.as_ref().is_some_and(Escalation::is_log_only));
    // The other timer was not disarmed.
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_reaper_that_only_logs_kills_nobody() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let process = start_child(&server.client(), "late", 10);
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    assert!(process.is_running());
    process.signal(Signal::Kill);
    seen.until_exited(&process);
    assert!(!seen.rest().iter().any(|event| matches!(event, TimerEvent::Killed { .. })));
}

#[test]
fn a_reaper_is_retried_unless_it_panics() {
    let calls = Arc::new(AtomicU32::new(0));
    let reaper = {
        let calls = Arc::clone(&calls);
        move |expiry: &Expiry<'_>| match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Reap::Kept),
            1 => Err(io::Error::other("not yet")),
            2 => expiry.process.kill_tree(&mut Vec::new()).map(Reap::Gone),
            _ => panic!("the second process"),
        }
    };
    let (server, seen) = server(|settings| settings.reaper(reaper));
    let process = start_child(&server.client(), "late", 10);
    let retries = [100, 200].map(|pause| Some(Duration::from_millis(pause)));
    for (reason, expected) in ["the reaper kept the process", "not yet"].into_iter().zip(retries) {
        let failed = seen.until(|event| matches!(event, TimerEvent::Failed { .. }));
        let pid = process.pid();
        assert_eq!(failed, TimerEvent::Failed { pid, reason: reason.into(), retry_in: expected });
    }
    assert_eq!(process.exit(), KILLED);
    assert_eq!(calls.load(Ordering::Relaxed), 3);

    let spared = start_child(&server.client(), "late", 10);
    let failed = seen.until(|event| matches!(event, TimerEvent::Failed { .. }));
    let (pid, reason) = (spared.pid(), "the second process".into());
    assert_eq!(failed, TimerEvent::Failed { pid, reason, retry_in: None });
    assert!(spared.is_running());
    assert!(server.is_running(), "the server goes on");
}

#[test]
fn a_hook_that_panics_still_runs_before_the_kill() {
    let seen_by_hook: Arc<Mutex<Vec<(u32, String, bool)>>> = Arc::default();
    let hook = {
        let seen_by_hook = Arc::clone(&seen_by_hook);
        move |expiry: &Expiry<'_>| {
            let alive = !expiry.process.has_ended().expect("a look");
            let (pid, scope) = (expiry.process.pid(), expiry.timers[0].scope.to_string());
            seen_by_hook.lock().expect("not poisoned").push((pid, scope, alive));
            panic!("the hook fails");
        }
    };
    let (server, _seen) = server(|settings| settings.before_reap(hook));
    let process = start_child(&server.client(), "late", 10);
    assert_eq!(process.exit(), KILLED);
    let expected = [(process.pid(), "work".to_owned(), true)];
    assert_eq!(*seen_by_hook.lock().expect("not poisoned"), expected);
}

#[test]
fn a_section_that_panics_releases_its_deadline() {
    let (server, seen) = server(|settings| settings);
    let process = start_child(&server.client(), "panic", 1_000);
    assert_eq!(process.exit(), KILLED);
    let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { timers, .. } = expired else { unreachable!() };
    // The section's own deadline would have been the earlier one.
    assert_eq!(timers[0].scope.to_string(), "the end");
}

#[test]
fn a_server_starts_once_stops_promptly_and_starts_again() {
    let (mut server, seen) = server(|settings| settings);
    assert!(server.start().is_err());
    assert!(server.run_once().is_err());
    server.stop();
    assert_eq!(seen.next(), TimerEvent::Stopped);
    server.stop();
    assert!(!server.is_running());
    server.run_once().expect("a turn on this thread");
    server.start().expect("a thread");
    assert_eq!(seen.next(), TimerEvent::Started);
    let process = start_child(&server.client(), "late", 10);
    assert_eq!(process.exit(), KILLED);
    assert!(server.last_progress().is_some_and(|ago| ago < LONG));
}

#[test]
fn timers_that_were_due_during_a_stop_expire_at_the_start() {
    let (mut server, seen) = idle_server(|settings| settings);
    let process = start_child(&server.client(), "late", 500);
    seen.turn_until_registered(&mut server, &process);
    wait_past(Duration::from_millis(500));
    server.start().expect("a thread");
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_release_sent_before_the_deadline_counts() {
    let (mut server, seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    client.connect().expect("a server");
    server.stop();
    client.acquire("released", Instant::now() + Duration::from_millis(50)).expect("room");
    client.release("released").expect("room");
    client.acquire("late", Instant::now() + Duration::from_millis(50)).expect("room");
    wait_past(Duration::from_millis(50));
    server.run_once().expect("a turn");
    let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { timers, .. } = expired else { unreachable!() };
    let scopes: Vec<String> = timers.iter().map(|timer| timer.scope.to_string()).collect();
    assert_eq!(scopes, ["late"]);
}
