//! The server's only thread.
//!
//! It sleeps until a socket is ready, a client's deadline passes, or, while somebody follows the
//! events, the next second begins. Without clients it waits for them and for its end, and for no
//! time. Dropping the server wakes it.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::poller::Poller;
use brigade_sys::wait::Waker;

use crate::connection::{Connection, Fate};
use crate::site::Site;

/// The largest number of clients at once.
pub(crate) const CONNECTION_LIMIT: usize = 64;
/// The largest number of clients that follow the events; others always find room.
pub(crate) const FOLLOWER_LIMIT: usize = CONNECTION_LIMIT / 2;
/// The interval of the events.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause after which a client is accepted again when descriptors had run out.
const SHORTAGE_PAUSE: Duration = Duration::from_secs(1);

const END: u64 = 0;
const LISTENER: u64 = 1;
/// The token of the first client. Later ones have higher tokens.
const FIRST_CLIENT: u64 = 2;

pub(crate) struct EventLoop {
    site: Site,
    listener: TcpListener,
    poller: Poller,
    connections: BTreeMap<u64, Connection>,
    next_token: u64,
    next_event: Option<Monotonic>,
    /// The time at which clients are accepted again.
    accepts_from: Option<Monotonic>,
}

impl EventLoop {
    /// Creates a loop that ends when `end` wakes, which must exist as long as the loop.
    pub(crate) fn new(site: Site, listener: TcpListener, end: &Waker) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let poller = Poller::new()?;
        poller.add(end, END)?;
        poller.add(&listener, LISTENER)?;
        let connections = BTreeMap::new();
        Ok(Self {
            site,
            listener,
            poller,
            connections,
            next_token: FIRST_CLIENT,
            next_event: None,
            accepts_from: None,
        })
    }

    /// Serves clients until the end is requested.
    pub(crate) fn run(mut self) {
        let mut ready = Vec::new();
        loop {
            if let Err(error) = self.poller.ready_until(self.next_deadline(), &mut ready) {
                tracing::error!(%error, "the live view ends: it cannot wait for clients");
                return;
            }
            for &token in &ready {
                match token {
                    END => return,
                    LISTENER => self.accept(),
                    token => self.continue_with(token),
                }
            }
            self.tick();
        }
    }

    fn next_deadline(&self) -> Option<Monotonic> {
        let connections = self.connections.values().filter_map(Connection::deadline);
        connections.chain(self.next_event).chain(self.accepts_from).min()
    }

    fn accept(&mut self) {
        match self.listener.accept() {
            Ok((socket, _)) => {
                // A client whose socket cannot be watched is dropped.
                if let Ok(connection) = Connection::new(socket, now()) {
                    self.make_room();
                    let token = self.next_token;
                    if self.poller.add(connection.socket(), token).is_ok() {
                        self.next_token += 1;
                        self.connections.insert(token, connection);
                    }
                }
            }
            // The client has gone already.
            Err(error) if is_about_the_client(&error) => {}
            // The listener stays readable, so it must not be watched for a while.
            Err(error) => {
                tracing::warn!(%error, "the live view cannot accept a client");
                self.poller.remove(&self.listener);
                self.accepts_from = Some(now().saturating_add(SHORTAGE_PAUSE));
            }
        }
    }

    /// Drops the oldest client that has not sent a request yet if there are too many. Followers
    /// take half of the room at most, and responses end in time.
    fn make_room(&mut self) {
        if self.connections.len() < CONNECTION_LIMIT {
            return;
        }
        let expendable = self.connections.iter().find(|(_, client)| client.is_expendable());
        let not_following = || self.connections.iter().find(|(_, client)| !client.follows_events());
        if let Some((&token, _)) = expendable.or_else(not_following) {
            self.close(token);
        }
    }

    fn continue_with(&mut self, token: u64) {
        let accepts_followers = self.followers() < FOLLOWER_LIMIT;
        // A client that was closed in the same turn.
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let fate = connection.ready(&self.site, accepts_followers, now());
        self.settle(token, fate);
        if self.next_event.is_none() && self.followers() > 0 {
            self.next_event = Some(now().saturating_add(INTERVAL));
        }
    }

    fn followers(&self) -> usize {
        self.connections.values().filter(|client| client.follows_events()).count()
    }

    /// Does everything that is due.
    fn tick(&mut self) {
        let now = now();
        let is_due = |deadline: Option<Monotonic>| deadline.is_some_and(|time| time <= now);
        let late = self.connections.iter().filter(|(_, client)| is_due(client.deadline()));
        for token in late.map(|(&token, _)| token).collect::<Vec<_>>() {
            self.close(token);
        }
        if is_due(self.accepts_from) {
            let is_watched = self.poller.add(&self.listener, LISTENER).is_ok();
            self.accepts_from = (!is_watched).then(|| now.saturating_add(SHORTAGE_PAUSE));
        }
        if is_due(self.next_event) {
            self.send_events(now);
        }
    }

    fn send_events(&mut self, now: Monotonic) {
        self.next_event = None;
        if self.followers() == 0 {
            return;
        }
        let event = self.site.event();
        for token in self.connections.keys().copied().collect::<Vec<_>>() {
            if let Some(connection) = self.connections.get_mut(&token) {
                let fate = connection.send_event(&event, now);
                self.settle(token, fate);
            }
        }
        self.next_event = Some(now.saturating_add(INTERVAL));
    }

    fn settle(&mut self, token: u64, fate: Fate) {
        let Some(connection) = self.connections.get(&token) else { return };
        let watched = self.poller.set_interest(connection.socket(), token, connection.interest());
        if fate == Fate::Close || watched.is_err() {
            self.close(token);
        }
    }

    fn close(&mut self, token: u64) {
        if let Some(connection) = self.connections.remove(&token) {
            self.poller.remove(connection.socket());
        }
    }
}

fn is_about_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
    )
}
