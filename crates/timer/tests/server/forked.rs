//! A process that forks without `exec`: the copy's server does nothing, its clients work, and
//! nothing hangs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use brigade_testkit::{BOUND, Side, copy_process, processes, wait_until};
use brigade_timer::{ClientError, LogReaper, ServerError, TimerEvent};

use crate::{CONFIGURED, LONG, idle_server, server};

#[test]
fn a_forked_server_is_an_error_and_the_original_goes_on() {
    let (mut server, seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let guard = client.expires(LONG).expect("a server");
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(move || {
            assert!(!server.is_running());
            for refused in [server.start(), server.run_once()] {
                let error = refused.expect_err("the thread belongs to the original");
                assert!(matches!(error, ServerError::Forked), "{error}");
                assert!(error.to_string().contains("build a server after the fork"), "{error}");
            }
            server.stop();
            drop(server);
            guard.release().expect("a release in the copy does nothing");
            let mut own = brigade_timer::TimerServer::builder().build().expect("a server");
            own.start().expect("a thread");
            drop(own.client().expires(LONG).expect("our own server"));
        }),
    };
    copy.assert_success();
    assert!(server.is_running());
    client.acquire("now", Instant::now()).expect("a server");
    let first = seen.until(
        |event| !matches!(event, TimerEvent::Registered { pid } if *pid == std::process::id()),
    );
    assert!(matches!(first, TimerEvent::Expired { .. }), "the copy has connected: {first:?}");
    drop(guard);
}

#[test]
fn a_fork_during_a_connect_gets_its_own_connection() {
    let (mut server, seen) = idle_server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let same = client.clone();
    let (sender, thread) = channel();
    let connects = thread::spawn(move || {
        sender.send(processes::this_thread()).expect("the test waits");
        // Holds the client's lock while it waits for the server, which does not run yet.
        same.connect()
    });
    let thread = thread.recv().expect("the thread's number");
    wait_until("a thread that waits for the server", BOUND, || processes::thread_sleeps(thread));
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(move || {
            client.acquire("the copy's", Instant::now()).expect("a server");
            park_for_ever()
        }),
    };
    server.start().expect("a thread");
    connects.join().expect("no panic").expect("a server");
    let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { pid, timers, .. } = expired else { unreachable!() };
    assert_eq!(timers[0].scope.to_string(), "the copy's");
    assert_ne!(pid, std::process::id());
    // Kills the copy.
    drop(copy);
}

#[test]
fn a_fork_inherits_the_configured_client_and_never_blocks() {
    let _configured = CONFIGURED.lock().expect("not poisoned");
    let (server, _seen) = server(|settings| settings);
    brigade_timer::configure(server.client());
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => {
            copy.end_after(|| drop(brigade_timer::expires(LONG).expect("the same client")))
        }
    };
    copy.assert_success();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                brigade_timer::configure(server.client());
            }
        });
        for _ in 0..100 {
            let copy = match copy_process() {
                Side::Original(copy) => copy,
                Side::Copy(copy) => copy.end_after(|| {
                    if let Err(error) = brigade_timer::expires(LONG) {
                        assert!(matches!(error, ClientError::NotConfigured), "{error}");
                    }
                    brigade_timer::configure(server.client());
                    drop(brigade_timer::expires(LONG).expect("configured in here"));
                }),
            };
            copy.assert_success();
        }
        stop.store(true, Ordering::Relaxed);
    });
    brigade_timer::configure(None);
}

#[test]
fn a_living_fork_does_not_hide_the_end_of_the_server() {
    let (server, _seen) = server(|settings| settings);
    let (client, late) = (server.client(), server.client().to_string());
    client.connect().expect("a server");
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| park_for_ever()),
    };
    drop(server);
    client.acquire("work", Instant::now() + LONG).expect_err("the server is gone");
    let late: brigade_timer::TimerClient = late.parse().expect("an address");
    let error = late.connect().expect_err("the server is gone");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
    // Kills the copy.
    drop(copy);
}

fn park_for_ever() -> ! {
    loop {
        thread::park();
    }
}
