//! Code of the server's owner on the server's thread: whatever it does, the server goes on.

use std::panic::panic_any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use brigade_testkit::{BOUND, Side, copy_process, wait_until};
use brigade_timer::{LogReaper, ServerError, TimerEvent, TimerServer};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::{LONG, idle_server, server};

/// A panic payload that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any("the drop of the payload");
    }
}

#[test]
fn a_panic_payload_of_user_code_may_panic_when_dropped() {
    let (mut server, seen) = idle_server(|settings| {
        let settings = settings.before_reap(|_| panic_any(Bomb)).on_event(|_| panic_any(Bomb));
        settings.reaper(|_: &brigade_timer::Expiry<'_>| panic_any(Bomb))
    });
    server.start().expect("a thread");
    let client = server.client();
    for _ in 0..2 {
        client.acquire("now", Instant::now()).expect("a server");
        seen.until(|event| matches!(event, TimerEvent::Failed { retry_in: None, .. }));
    }
    assert!(server.is_running());
}

/// A subscriber that panics.
struct Broken;

impl Subscriber for Broken {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        panic_any("the log is full");
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_that_panics_does_not_end_the_server() {
    let copy = match copy_process() {
        Side::Original(copy) => copy,
        // The subscriber is set for a whole process.
        Side::Copy(copy) => copy.end_after(|| {
            tracing::subscriber::set_global_default(Broken).expect("the first one");
            let (server, seen) = server(|settings| settings.reaper(LogReaper));
            let client = server.client();
            for _ in 0..2 {
                client.acquire("now", Instant::now()).expect("a server");
                seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
            }
            assert!(server.is_running());
        }),
    };
    copy.assert_success();
}

#[test]
fn an_observer_may_stop_the_server_and_drop_it() {
    let holder: Arc<Mutex<Option<TimerServer>>> = Arc::default();
    let stopped = Arc::new(Mutex::new(None));
    let (same, result) = (Arc::clone(&holder), Arc::clone(&stopped));
    let observer = move |event: &TimerEvent| {
        if matches!(event, TimerEvent::Expired { .. }) {
            let mut server = same.lock().expect("not poisoned").take().expect("it is here");
            server.stop();
            let turn = server.run_once();
            drop(server);
            *result.lock().expect("not poisoned") = Some(turn);
        }
    };
    let (server, _seen) = idle_server(|settings| settings.reaper(LogReaper).on_event(observer));
    let client = server.client();
    let mut held = holder.lock().expect("not poisoned");
    held.insert(server).start().expect("a thread");
    drop(held);
    client.acquire("now", Instant::now()).expect("a server");
    wait_until("the stop", BOUND, || stopped.lock().expect("not poisoned").is_some());
    let turn = stopped.lock().expect("not poisoned").take();
    assert!(matches!(turn, Some(Err(ServerError::AlreadyRunning))), "{turn:?}");
    wait_until("the end of the server", BOUND, || {
        client.acquire("late", Instant::now() + LONG).is_err()
    });
}
