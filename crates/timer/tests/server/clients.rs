//! What clients are promised.

use std::time::{Duration, Instant};

use brigade_testkit::LeakCheck;
use brigade_timer::{
    ClientError, Ladder, LogReaper, ServerError, TimerClient, TimerEvent, TimerServer,
};

use crate::{BOUND, CONFIGURED, LONG, server, worker};

#[test]
fn ten_processes_with_ten_scopes_each_acquire_and_release_them_all() {
    let (server, seen) = server(|settings| settings);
    let client = server.client();
    let workers: Vec<_> = (0..10).map(|_| worker(&client, "ten", 0)).collect();
    for worker in &workers {
        worker.until_it_hangs();
    }
    // A request of ours comes after all of theirs.
    let log = client.with_ladder(Ladder::log_only());
    log.acquire("now", Instant::now()).expect("a server");
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    for worker in &workers {
        worker.signal(brigade_timer::Signal::Kill);
    }
    let mut left = 0;
    for _ in &workers {
        let exited = seen.until(|event| matches!(event, TimerEvent::Exited { .. }));
        if let TimerEvent::Exited { timers, .. } = exited {
            left += timers;
        }
    }
    assert_eq!(left, 0, "nothing was armed any more");
}

#[test]
fn a_client_goes_to_others_as_text_and_through_serde() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let bytes = {
        let mut bytes = Vec::new();
        brigade_wire::codec::encode(&client, &mut bytes, 200).expect("a short text");
        bytes
    };
    let by_serde: TimerClient = brigade_wire::codec::decode(&bytes).expect("an address");
    let by_text: TimerClient = client.to_string().parse().expect("an address");
    for (name, client) in [("serde", by_serde), ("text", by_text), ("clone", client.clone())] {
        client.acquire(name, Instant::now()).expect("a server");
        let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
        let TimerEvent::Expired { pid, timers, .. } = expired else { unreachable!() };
        assert_eq!((pid, timers[0].scope.to_string()), (std::process::id(), name.to_owned()));
    }
}

#[test]
fn two_connections_of_a_process_are_one_worker() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let one = server.client();
    let two: TimerClient = one.to_string().parse().expect("an address");
    one.acquire("shared", Instant::now() + LONG).expect("a server");
    one.acquire("last", Instant::now() + LONG).expect("a server");
    two.connect().expect("a server");
    let registered = |event: &TimerEvent| matches!(event, TimerEvent::Registered { .. });
    seen.until(registered);
    two.acquire("shared", Instant::now()).expect("a server");
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    assert!(!seen.rest().iter().any(registered));
}

#[test]
fn without_a_server_a_request_is_an_error() {
    let server = TimerServer::builder().build().expect("a server");
    let client = server.client();
    drop(server);
    let error = client.acquire("work", Instant::now() + LONG).expect_err("nobody is there");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}

#[test]
fn a_server_that_has_ended_is_an_error_of_the_next_request() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    client.connect().expect("a server");
    drop(server);
    assert!(client.release("work").is_err());
    let guard = client.expires(LONG);
    assert!(guard.is_err(), "nothing pretends to be guarded");
}

#[test]
fn a_server_of_the_same_path_takes_over_its_clients() {
    let path = std::env::temp_dir().join(format!("brigade-timer-test-{}", std::process::id()));
    let (first, _seen) = server(|settings| settings.path(&path));
    let client = first.client();
    client.connect().expect("a server");
    let second = TimerServer::builder().path(&path).build();
    assert!(matches!(second, Err(ServerError::Listen { .. })), "the first one is there");
    drop(first);
    let (_second, seen) = server(|settings| settings.path(&path).reaper(LogReaper));
    client.acquire("work", Instant::now()).expect("a server");
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
}

#[test]
fn without_a_configured_client_expires_is_an_error_and_with_one_it_is_used() {
    let _configured = CONFIGURED.lock().expect("no test has failed under it");
    brigade_timer::configure(None);
    let error = brigade_timer::expires(LONG).expect_err("none is configured");
    assert!(matches!(error, ClientError::NotConfigured));
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    brigade_timer::configure(server.client());
    let guard = brigade_timer::expires(Duration::ZERO).expect("a server");
    let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    let TimerEvent::Expired { timers, .. } = expired else { unreachable!() };
    assert_eq!(&timers[0].scope, guard.scope());
    brigade_timer::configure(None);
}

#[test]
fn no_address_and_no_text_that_is_none_is_an_error_that_says_so() {
    assert!(matches!("".parse::<TimerClient>(), Err(ClientError::Address(_))));
    let error = TimerClient::from_environment().expect_err("nobody has handed it over");
    assert!(error.to_string().contains("BRIGADE_TIMER"));
}

#[test]
fn a_server_leaves_no_thread_and_no_descriptor() {
    let check = LeakCheck::new();
    for _ in 0..20 {
        let (server, _seen) = server(|settings| settings);
        let client = server.client();
        client.acquire("work", Instant::now() + LONG).expect("a server");
    }
    check.assert_none(BOUND);
}

#[test]
fn a_timer_beyond_the_limit_is_an_error_and_not_forgotten() {
    const LIMIT: usize = 65_536;
    let (server, _seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let other = client.with_ladder(Ladder::log_only());
    let far = Instant::now() + LONG;
    let mut armed = 0;
    let refused = loop {
        // Clones share the connection.
        let client = if armed % 3 == 0 { &other } else { &client };
        match client.acquire(format!("{armed}"), far) {
            Ok(()) => armed += 1,
            Err(error) => break error,
        }
        assert!(armed <= LIMIT, "more than a process may have");
    };
    assert!(matches!(refused, ClientError::TooManyTimers { limit: LIMIT }), "{refused}");
    assert_eq!(armed, LIMIT);
    client.release("7").expect("a server");
    client.acquire("one more", far).expect("room for one");
    assert!(client.acquire("too many", far).is_err());
}
