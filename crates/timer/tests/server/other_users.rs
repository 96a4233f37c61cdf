//! Processes of another user that flood a server: it refuses them and serves its own in time.

use std::time::{Duration, Instant};

use brigade_sys::clock::now;
use brigade_sys::private_folder::user_id;
use brigade_sys::request_socket::{Address, RequestSocket};
use brigade_testkit::{BOUND, Copied, Side, copy_process};
use brigade_testkit_sys::misdeeds::drop_privileges;
use brigade_timer::{LogReaper, TimerClient, TimerEvent};

use crate::server;

/// Starts a process that connects and closes in a loop until it is dropped. It belongs to another
/// user if this one is root.
fn flood(address: &str) -> Copied {
    let address = Address::parse(address).expect("an address");
    match copy_process() {
        Side::Original(copy) => copy,
        Side::Copy(copy) => copy.end_after(|| {
            drop_privileges();
            loop {
                drop(RequestSocket::connect(&address, now().saturating_add(BOUND)));
            }
        }),
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "reports a weaker test")]
fn a_flood_by_another_user_delays_no_client_and_no_deadline() {
    let (server, seen) = server(|settings| settings.reaper(LogReaper));
    let address = server.client().to_string();
    let floods: Vec<_> = (0..3).map(|_| flood(&address)).collect();
    if user_id() == 0 {
        let refused = seen.until(|event| matches!(event, TimerEvent::Refused { .. }));
        let TimerEvent::Refused { reason, .. } = refused else { unreachable!() };
        assert!(reason.starts_with("the process belongs to another user"), "{reason}");
    } else {
        eprintln!("only root can start processes of another user: the flood is of this user's own");
        seen.until(|event| matches!(event, TimerEvent::Registered { .. }));
    }
    // At most 16, the maximum number of connections of a process.
    for number in 0..10 {
        let client: TimerClient = address.parse().expect("an address");
        let scope = format!("ours {number}");
        let in_a_moment = Instant::now() + Duration::from_millis(20);
        client.acquire(scope.as_str(), in_a_moment).expect("a client of the server's user");
        let expired = seen.until(|event| matches!(event, TimerEvent::Expired { .. }));
        let TimerEvent::Expired { timers, lateness, .. } = expired else { unreachable!() };
        assert_eq!(timers[0].scope.to_string(), scope);
        assert!(lateness < Duration::from_secs(5), "{lateness:?} late");
    }
    // Kills them.
    drop(floods);
}
