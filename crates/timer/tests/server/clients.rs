//! The promises to clients.

use std::time::{Duration, Instant};

use brigade_testkit::LeakCheck;
use brigade_timer::{
    ClientError, Escalation, LogReaper, ServerError, TimerClient, TimerEvent, TimerServer,
};

use crate::{BOUND, CONFIGURED, LONG, server, start_child};

#[test]
fn ten_processes_acquire_and_release_ten_scopes_each() {
    let (server, seen) = server(|settings| settings);
    let client = server.client();
    let children: Vec<_> = (0..10).map(|_| start_child(&client, "ten", 0)).collect();
    for child in &children {
        child.wait_until_hanging();
    }
    // This process's request arrives after all of theirs.
    let log = client.with_escalation(Escalation::log_only());
    log.acquire("now", Instant::now()).expect("a server");
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
    for child in &children {
        child.signal(brigade_timer::Signal::Kill);
    }
    let mut left = 0;
    for _ in &children {
        let exited = seen.until(|event| matches!(event, TimerEvent::Exited { .. }));
        if let TimerEvent::Exited { timers, .. } = exited {
            left += timers;
        }
    }
    assert_eq!(left, 0, "no timer is left armed");
}

#[test]
fn a_client_travels_as_text_and_through_serde() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let bytes = {
        let mut bytes = Vec::new();
        brigade_codec::encode(&client, &mut bytes, 200).expect("a short text");
        bytes
    };
    let by_serde: TimerClient = brigade_codec::decode(&bytes).expect("an address");
    let by_text: TimerClient = client.to_string().parse().expect("an address");
    for (name, client) in [("serde", by_serde), ("text", by_text), ("clone", client.clone())] {
        client.acquire(name, Instant::now()).expect("a server");
        let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
        let TimerEvent::Expired { pid, timers, .. } = expired else { unreachable!() };
        assert_eq!((pid, timers[0].scope.to_string()), (std::process::id(), name.to_owned()));
    }
}

#[test]
fn two_connections_of_a_process_share_its_timers() {
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
    let error = client.acquire("work", Instant::now() + LONG).expect_err("the server is gone");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}

#[test]
fn the_next_request_reports_that_the_server_has_ended() {
    let (server, _seen) = server(|settings| settings);
    let client = server.client();
    client.connect().expect("a server");
    drop(server);
    assert!(client.release("work").is_err());
    let guard = client.expires(LONG);
    assert!(guard.is_err(), "no guard without a server");
}

#[test]
fn a_server_of_the_same_path_takes_over_its_clients() {
    let path = std::env::temp_dir().join(format!("brigade-timer-test-{}", std::process::id()));
    let (first, _seen) = server(|settings| settings.path(&path));
    let client = first.client();
    client.connect().expect("a server");
    let second = TimerServer::builder().path(&path).build();
    assert!(matches!(second, Err(ServerError::Listen { .. })), "the path is in use");
    drop(first);
    let (_second, seen) = server(|settings| settings.path(&path).reaper(LogReaper));
    client.acquire("work", Instant::now()).expect("a server");
    seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
}

#[test]
fn expires_uses_the_configured_client_or_fails() {
    let _configured = CONFIGURED.lock().expect("not poisoned");
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
fn a_missing_or_malformed_address_is_an_error() {
    assert!(matches!("".parse::<TimerClient>(), Err(ClientError::Address(_))));
    let error = TimerClient::from_environment().expect_err("the variable is not set");
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
fn a_timer_beyond_the_limit_is_an_error() {
    const LIMIT: usize = 65_536;
    let (server, _seen) = server(|settings| settings.reaper(LogReaper));
    let client = server.client();
    let other = client.with_escalation(Escalation::log_only());
    let far = Instant::now() + LONG;
    let mut armed = 0;
    let refused = loop {
        // Clones share the connection.
        let client = if armed % 3 == 0 { &other } else { &client };
        match client.acquire(format!("{armed}"), far) {
            Ok(()) => armed += 1,
            Err(error) => break error,
        }
        assert!(armed <= LIMIT, "more timers than allowed");
    };
    assert!(matches!(refused, ClientError::TooManyTimers { limit: LIMIT }), "{refused}");
    assert_eq!(armed, LIMIT);
    client.release("7").expect("a server");
    client.acquire("one more", far).expect("room for one");
    assert!(client.acquire("too many", far).is_err());
}
