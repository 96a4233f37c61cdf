//! Clients of other users, as far as this process can imitate them.

use std::time::Instant;

use brigade_codec as codec;
use brigade_sys::request_socket::Address;
use brigade_sys::wait::wait_readable;

use super::*;

/// A server's connections, and the address where clients connect.
struct TestServer {
    connections: Connections,
    address: Address,
}

fn test_server(name: &str, any_user: bool) -> TestServer {
    let name = format!("brigade-connections-{name}-{}", std::process::id());
    let address = Address::Abstract(name);
    let listener = Listener::bind(&address).expect("a new name");
    let poller = Arc::new(Poller::new().expect("an epoll"));
    TestServer { connections: Connections::new(listener, any_user, poller), address }
}

impl TestServer {
    /// Connects a client that belongs to another user than the server.
    fn other_user(&mut self) -> (RequestSocket, Vec<ConnectionEvent>) {
        let deadline = now().saturating_add(Duration::from_secs(20));
        let client = RequestSocket::connect(&self.address, deadline).expect("room");
        let (socket, peer) = self.connections.listener.accept().expect("room").expect("a client");
        let mut peer = peer.expect("a pidfd of it");
        peer.user = user_id().wrapping_add(1).max(1);
        self.connections.admit(socket, peer).expect("no shortage");
        (client, std::mem::take(&mut self.connections.events))
    }
}

fn refusal(client: &RequestSocket) -> String {
    let mut buffer = [0; PACKET_LIMIT];
    let deadline = now().saturating_add(Duration::from_secs(20));
    assert_eq!(wait_readable(&[client.as_fd()], Some(deadline)).expect("a wait"), [true]);
    let Ok(Packet::Packet { length, .. }) = client.receive(&mut buffer) else {
        panic!("closed without a reason");
    };
    match codec::decode(&buffer[..length]) {
        Ok(Answer::Refused { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_users_get_a_reason_and_few_refusals_are_reported() {
    let mut test = test_server("refused", false);
    let start = Instant::now();
    let mut reported = 0;
    for _ in 0..50 {
        let (client, events) = test.other_user();
        assert_eq!(refusal(&client), "the process belongs to another user");
        reported += events.len();
        assert!(matches!(&events[..], [] | [ConnectionEvent::Refused { .. }]), "{events:?}");
    }
    let most = start.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&(reported as u64)), "{reported} reports");
    assert!(test.connections.clients.is_empty() && test.connections.sockets.is_empty());
}

#[test]
fn only_a_shortage_is_called_a_full_server() {
    let test = test_server("shortage", false);
    let deadline = now().saturating_add(Duration::from_secs(20));
    let refused_for = |error: io::Error| {
        let client = RequestSocket::connect(&test.address, deadline).expect("room");
        let (socket, _) = test.connections.listener.accept().expect("room").expect("a client");
        refuse_for_error(&socket, None, &error, &mut Vec::new());
        refusal(&client)
    };
    let full = refused_for(io::Error::from_raw_os_error(24));
    assert!(full.contains("full") && full.contains("os error 24"), "{full}");
    let other = refused_for(io::ErrorKind::Unsupported.into());
    assert_eq!(other, "the server cannot register the process: unsupported");
}

#[test]
fn any_user_admits_processes_of_other_users() {
    let mut test = test_server("admitted", true);
    let (_client, events) = test.other_user();
    assert!(matches!(&events[..], [ConnectionEvent::Registered { .. }]), "{events:?}");
}
