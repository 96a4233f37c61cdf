//! Clients of other users, as far as this process can play them.

use std::time::Instant;

use brigade_sys::request_socket::Address;
use brigade_sys::wait::wait_readable;
use brigade_wire::codec;

use super::*;

/// A server's connections, and where clients connect.
struct Place {
    connections: Connections,
    poller: Poller,
    address: Address,
}

fn place(name: &str, any_user: bool) -> Place {
    let name = format!("brigade-connections-{name}-{}", std::process::id());
    let address = Address::Abstract(name);
    let listener = Listener::bind(&address).expect("a new name");
    let connections = Connections::new(listener, any_user);
    Place { connections, poller: Poller::new().expect("an epoll"), address }
}

impl Place {
    /// A client of another user than the server's.
    fn stranger(&mut self) -> (RequestSocket, Vec<News>) {
        let deadline = now().saturating_add(Duration::from_secs(20));
        let client = RequestSocket::connect(&self.address, deadline).expect("room");
        let (socket, peer) = self.connections.listener.accept().expect("room").expect("a client");
        let mut peer = peer.expect("a pidfd of it");
        peer.user = own_user().wrapping_add(1).max(1);
        let mut news = Vec::new();
        self.connections.admit(socket, peer, &mut self.poller, &mut news).expect("no shortage");
        (client, news)
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
fn each_process_of_another_user_is_told_why_it_is_refused_and_few_are_reported() {
    let mut place = place("refused", false);
    let start = Instant::now();
    let mut reported = 0;
    for _ in 0..50 {
        let (client, news) = place.stranger();
        assert_eq!(refusal(&client), "it is another user's");
        reported += news.len();
        assert!(matches!(&news[..], [] | [News::Refused { .. }]), "{news:?}");
    }
    let most = start.elapsed().as_secs() + 1;
    assert!((1..=most).contains(&(reported as u64)), "{reported} reports");
    assert!(place.connections.workers.is_empty() && place.connections.sockets.is_empty());
}

#[test]
fn processes_of_all_users_are_admitted_if_the_server_says_so() {
    let mut place = place("admitted", true);
    let (_client, news) = place.stranger();
    assert!(matches!(&news[..], [News::Registered { .. }]), "{news:?}");
}
