//! Who is killed at a deadline, and who is not.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brigade_sys::process::Exit;
use brigade_testkit::{BOUND, processes, wait_until};
use brigade_timer::{Expiry, Ladder, LogReaper, Reap, Signal, TimerEvent};

use crate::{LONG, cookie, idle_server, server, wait_past, worker};

const KILLED: Exit = Exit::Signal(9);

#[test]
fn of_eight_processes_the_late_ones_are_killed_and_the_others_are_not() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    let late = [(); 4].map(|()| worker(&client, "late", 50));
    let in_time = [(); 4].map(|()| worker(&client, "in time", 0));
    for process in in_time {
        assert_eq!(process.exit(), Exit::Code(0));
    }
    for process in late {
        assert_eq!(process.exit(), KILLED);
    }
}

#[test]
fn a_kill_is_never_early_and_the_log_tells_how_late_it_was() {
    let (server, seen) = server(|settings| settings);
    let process = worker(&server.client(), "late", 20);
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
fn a_worker_that_exits_with_a_timer_armed_is_not_killed_and_loses_it() {
    let (server, seen) = server(|settings| settings);
    let process = worker(&server.client(), "exits", 3_600_000);
    assert_eq!(seen.until_exited(&process), 1);
    assert_eq!(process.exit(), Exit::Code(3));
}

#[test]
fn a_guard_inside_of_another_does_not_disarm_it() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    assert_eq!(worker(&client, "nested", 50).exit(), KILLED);
    assert_eq!(worker(&client, "inner", 50).exit(), KILLED);
}

#[test]
fn a_deadline_expires_although_no_request_arrives_and_the_server_sleeps_until_then() {
    let (server, seen) = server(|settings| settings);
    let process = worker(&server.client(), "late", 300);
    seen.until_registered(&process);
    seen.until_exited(&process);
    // A handful of wake-ups: the client's, its deadline's, its end's. An interval of 10 ms would be thirty more.
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
    // Other tests' servers are among the threads.
    let fewest = switches.iter().min().expect("the server's thread");
    assert!(*fewest < 20, "{fewest} wake-ups");
}

#[test]
fn what_a_worker_leaves_behind_that_ends_at_the_first_signal_is_gone_too() {
    let ladder = Ladder::kill().after(Signal::Terminate, Duration::from_millis(100));
    let (server, seen) = server(|settings| settings.ladder(ladder));
    let process = worker(&server.client(), "family", 500);
    seen.until_registered(&process);
    // The shell, two of the three that sleep, and the shell in a session of its own with two more.
    let family = || processes::with_variable(crate::COOKIE, &cookie("family", 500));
    wait_until("the family", BOUND, || family().len() >= 6);
    let killed = seen.until(|event| matches!(event, TimerEvent::Killed { .. }));
    let TimerEvent::Killed { swept, .. } = killed else { unreachable!() };
    // SIGTERM has ended the worker, and none of those that ignore it: they were noted before, and are killed now.
    assert!(swept.killed.len() >= 5 && swept.escaped.is_empty(), "{swept:?}");
    wait_until("an end of the family", BOUND, || family().is_empty());
    assert_eq!(process.exit(), Exit::Signal(15));
}

#[test]
fn descendants_that_left_the_group_are_swept_and_named() {
    let (server, seen) = server(|settings| settings);
    let process = worker(&server.client(), "family", 501);
    let family = || processes::with_variable(crate::COOKIE, &cookie("family", 501));
    wait_until("the family", BOUND, || family().len() >= 6);
    let killed = seen.until(|event| matches!(event, TimerEvent::Killed { .. }));
    let TimerEvent::Killed { swept, .. } = killed else { unreachable!() };
    assert!(swept.killed.len() >= 5, "{swept:?}");
    wait_until("an end of the family", BOUND, || family().is_empty());
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_stopped_worker_is_killed() {
    let (server, _seen) = server(|settings| settings);
    let process = worker(&server.client(), "late", 500);
    process.until_it_hangs();
    process.signal(Signal::Stop);
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_ladder_of_a_request_goes_before_the_servers() {
    let (server, seen) = server(|settings| settings);
    let process = worker(&server.client(), "logged", 100);
    let first = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { timers, .. } = first else { unreachable!() };
    assert_eq!(timers[0].scope.to_string(), "logged");
    assert!(timers[0].ladder.as_ref().is_some_and(Ladder::is_log_only));
    // The other timer was not disarmed.
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_reaper_that_only_logs_kills_nobody() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let process = worker(&server.client(), "late", 10);
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    assert!(process.is_running());
    process.signal(Signal::Kill);
    seen.until_exited(&process);
    assert!(!seen.rest().iter().any(|event| matches!(event, TimerEvent::Killed { .. })));
}

#[test]
fn a_reaper_that_keeps_fails_or_panics_is_called_as_often_as_promised() {
    let calls = Arc::new(AtomicU32::new(0));
    let reaper = {
        let calls = Arc::clone(&calls);
        move |expiry: &Expiry<'_>| match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Reap::Kept),
            1 => Err(io::Error::other("not yet")),
            2 => expiry.process().kill_tree(&mut Vec::new()).map(Reap::Gone),
            _ => panic!("the second worker"),
        }
    };
    let (server, seen) = server(|settings| settings.reaper(reaper));
    let process = worker(&server.client(), "late", 10);
    let retries = [100, 200].map(|pause| Some(Duration::from_millis(pause)));
    for (reason, expected) in ["the reaper has kept it", "not yet"].into_iter().zip(retries) {
        let failed = seen.until(|event| matches!(event, TimerEvent::Failed { .. }));
        let pid = process.pid();
        assert_eq!(failed, TimerEvent::Failed { pid, reason: reason.into(), retry_in: expected });
    }
    assert_eq!(process.exit(), KILLED);
    assert_eq!(calls.load(Ordering::Relaxed), 3);

    let spared = worker(&server.client(), "late", 10);
    let failed = seen.until(|event| matches!(event, TimerEvent::Failed { .. }));
    let (pid, reason) = (spared.pid(), "the second worker".into());
    assert_eq!(failed, TimerEvent::Failed { pid, reason, retry_in: None });
    assert!(spared.is_running());
    assert!(server.is_running(), "the server goes on");
}

#[test]
fn the_hook_sees_the_expired_timers_before_the_kill_even_when_it_panics() {
    let seen_by_hook: Arc<Mutex<Vec<(u32, String, bool)>>> = Arc::default();
    let hook = {
        let seen_by_hook = Arc::clone(&seen_by_hook);
        move |expiry: &Expiry<'_>| {
            let alive = !expiry.process().has_ended().expect("a look");
            let (pid, scope) = (expiry.process().pid(), expiry.timers()[0].scope.to_string());
            seen_by_hook.lock().expect("no panic with it").push((pid, scope, alive));
            panic!("the hook fails");
        }
    };
    let (server, _seen) = server(|settings| settings.before_reap(hook));
    let process = worker(&server.client(), "late", 10);
    assert_eq!(process.exit(), KILLED);
    let expected = [(process.pid(), "work".to_owned(), true)];
    assert_eq!(*seen_by_hook.lock().expect("no panic with it"), expected);
}

#[test]
fn a_section_that_panics_has_its_deadline_released_and_its_panic_passes_through() {
    let (server, seen) = server(|settings| settings);
    let process = worker(&server.client(), "panic", 1_000);
    assert_eq!(process.exit(), KILLED);
    let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { timers, .. } = expired else { unreachable!() };
    // The section's own would have been the earlier one.
    assert_eq!(timers[0].scope.to_string(), "the end");
}

#[test]
fn starting_twice_is_an_error_stopping_is_prompt_and_starting_again_works() {
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
    let process = worker(&server.client(), "late", 10);
    assert_eq!(process.exit(), KILLED);
    assert!(server.last_progress().is_some_and(|ago| ago < LONG));
}

#[test]
fn what_expires_while_the_server_is_stopped_expires_at_its_start() {
    let (mut server, seen) = idle_server(|settings| settings);
    let process = worker(&server.client(), "late", 500);
    seen.turn_until_registered(&mut server, &process);
    wait_past(Duration::from_millis(500));
    server.start().expect("a thread");
    assert_eq!(process.exit(), KILLED);
}

#[test]
fn a_release_that_was_sent_before_the_deadline_counts_however_late_the_server_is() {
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
