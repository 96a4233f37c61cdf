//! The client processes and their connections.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::poller::Poller;
use brigade_sys::private_folder::user_id;
use brigade_sys::process::{ForeignProcess, is_shortage};
use brigade_sys::request_socket::{Listener, Peer, Request as Packet, RequestSocket};

use crate::machine::ClientId;
use crate::request::{Answer, PACKET_LIMIT, TimerRequest, VERSION, packet};

/// Maximum number of connections of a process; one is enough.
const CONNECTIONS_PER_PROCESS: usize = 16;

/// Maximum number of packets read from one connection per turn. It is more than a socket of the
/// usual size holds (about 280), so that everything sent before the turn is read in it, and small
/// enough to be fair to other clients.
const PACKETS_PER_TURN: usize = 512;

/// Tokens below this belong to the event loop.
pub(super) const FIRST_TOKEN: u64 = 16;

/// All client processes and their connections.
#[derive(Debug)]
pub(super) struct Connections {
    listener: Listener,
    any_user: bool,
    poller: Arc<Poller>,
    /// Events for the event loop to take.
    pub(super) events: Vec<ConnectionEvent>,
    /// By token. A client's token is also its id, and its pidfd is watched under it.
    clients: HashMap<u64, ConnectedClient>,
    sockets: HashMap<u64, Connection>,
    /// Tokens of the living clients, by pid.
    by_pid: HashMap<u32, u64>,
    next_token: u64,
    /// Descriptors in reserve, to be closed when there are no others: for refusing a client, and
    /// for finding a process's descendants.
    reserve: Vec<OwnedFd>,
    /// The last report of a refused process that is not served, and the number of such refusals
    /// since.
    last_report: Option<Monotonic>,
    unreported: u64,
}

/// Enough to look for children a few generations deep.
const RESERVE: usize = 8;

/// Processes that are not served may connect as often as they like, but their refusals are
/// reported at most once per interval.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct ConnectedClient {
    process: ForeignProcess,
    connections: usize,
}

#[derive(Debug)]
struct Connection {
    socket: RequestSocket,
    client: u64,
    said_hello: bool,
}

/// An event that was read from the sockets.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    Registered { client: ClientId, pid: u32 },
    Request { client: ClientId, connection: u64, request: TimerRequest },
    Exited { client: ClientId, process: ForeignProcess },
    Refused { pid: u32, reason: String },
}

impl Connections {
    pub(super) fn new(listener: Listener, any_user: bool, poller: Arc<Poller>) -> Self {
        let mut this = Self {
            listener,
            any_user,
            poller,
            events: Vec::new(),
            clients: HashMap::new(),
            sockets: HashMap::new(),
            by_pid: HashMap::new(),
            next_token: FIRST_TOKEN,
            reserve: Vec::new(),
            last_report: None,
            unreported: 0,
        };
        // A server that cannot reserve them starts without.
        this.fill_reserve();
        this
    }

    /// Closes the reserved descriptors, until they are reserved again.
    pub(super) fn release_reserve(&mut self) {
        self.reserve.clear();
    }

    pub(super) fn fill_reserve(&mut self) {
        while self.reserve.len() < RESERVE
            && let Ok(descriptor) = self.listener.as_fd().try_clone_to_owned()
        {
            self.reserve.push(descriptor);
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(super) fn process(&self, client: ClientId) -> Option<&ForeignProcess> {
        self.clients.get(&client.0).map(|client| &client.process)
    }

    /// Accepts one waiting client. Returns `false` if none is waiting.
    pub(super) fn accept(&mut self) -> io::Result<bool> {
        let accepted = match self.listener.accept() {
            Err(error) => {
                // Left in the backlog, the client would wake the server again and again.
                self.release_reserve();
                let accepted = self.listener.accept();
                if let Ok(Some((socket, peer))) = accepted {
                    refuse_for_error(&socket, peer.ok(), &error, &mut self.events);
                }
                self.fill_reserve();
                return Err(error);
            }
            Ok(accepted) => accepted,
        };
        let Some((socket, peer)) = accepted else { return Ok(false) };
        let peer = peer.inspect_err(|error| {
            refuse_for_error(&socket, None, error, &mut self.events);
        })?;
        self.admit(socket, peer).map(|()| true)
    }

    fn admit(&mut self, socket: RequestSocket, peer: Peer) -> io::Result<()> {
        let Peer { process, user } = peer;
        let pid = process.pid();
        let reason = if pid == 0 {
            Some("the process is outside the server's pid namespace")
        } else if !(self.any_user || user == user_id() || user == 0) {
            Some("the process belongs to another user")
        } else {
            None
        };
        if let Some(reason) = reason {
            self.refuse_unserved(&socket, pid, reason);
            return Ok(());
        }
        let known = self.by_pid.get(&pid).copied();
        let known = match known {
            // The pid belongs to a new process now: the old one is removed first.
            Some(client) if self.clients[&client].process.has_ended()? => {
                self.exited(client);
                None
            }
            known => known,
        };
        if known.is_some_and(|id| self.clients[&id].connections >= CONNECTIONS_PER_PROCESS) {
            let reason = format!("the process already has {CONNECTIONS_PER_PROCESS} connections");
            refuse(&socket, pid, reason, &mut self.events);
            return Ok(());
        }
        let id = match known {
            Some(id) => id,
            None => self.register(process).inspect_err(|error| {
                refuse_for_error(&socket, None, error, &mut self.events);
            })?,
        };
        let token = self.token();
        self.poller.add(&socket, token).inspect_err(|error| {
            refuse_for_error(&socket, None, error, &mut self.events);
        })?;
        self.sockets.insert(token, Connection { socket, client: id, said_hello: false });
        if let Some(client) = self.clients.get_mut(&id) {
            client.connections += 1;
        }
        Ok(())
    }

    fn refuse_unserved(&mut self, socket: &RequestSocket, pid: u32, reason: &str) {
        let time = now();
        let is_due =
            self.last_report.is_none_or(|last| time.saturating_since(last) >= REPORT_INTERVAL);
        if !is_due {
            self.unreported += 1;
            send_refusal(socket, reason);
            return;
        }
        self.last_report = Some(time);
        let reason = match std::mem::take(&mut self.unreported) {
            0 => reason.to_owned(),
            more => format!("{reason}; {more} more refused since the previous report"),
        };
        refuse(socket, pid, reason, &mut self.events);
    }

    fn register(&mut self, process: ForeignProcess) -> io::Result<u64> {
        let (id, pid) = (self.token(), process.pid());
        self.poller.add(process.pidfd(), id)?;
        self.by_pid.insert(pid, id);
        self.clients.insert(id, ConnectedClient { process, connections: 0 });
        self.events.push(ConnectionEvent::Registered { client: ClientId(id), pid });
        Ok(id)
    }

    fn token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }

    /// Handles a ready token: reads requests from a connection, or handles the exit of a process.
    pub(super) fn read(&mut self, token: u64) {
        if self.clients.contains_key(&token) {
            self.exited(token);
            return;
        }
        let Some(connection) = self.sockets.get_mut(&token) else { return };
        let Some(client) = self.clients.get(&connection.client) else { return };
        match connection.read(token, client.process.pid(), &mut self.events) {
            Ok(true) => {}
            Ok(false) => self.close(token),
            Err(reason) => {
                refuse(&connection.socket, client.process.pid(), reason, &mut self.events);
                self.close(token);
            }
        }
    }

    fn close(&mut self, token: u64) {
        let Some(connection) = self.sockets.remove(&token) else { return };
        self.poller.remove(&connection.socket);
        if let Some(client) = self.clients.get_mut(&connection.client) {
            client.connections -= 1;
        }
    }

    /// Closes all connections of a process, and sends the reason if there is one.
    pub(super) fn disconnect(&mut self, client: ClientId, reason: Option<&str>) {
        let its = self.sockets.iter().filter(|(_, connection)| connection.client == client.0);
        let tokens: Vec<u64> = its.map(|(token, _)| *token).collect();
        for token in tokens {
            if let (Some(reason), Some(connection)) = (reason, self.sockets.get(&token)) {
                send_refusal(&connection.socket, reason);
            }
            self.close(token);
        }
    }

    /// Answers a request.
    pub(super) fn answer(&self, connection: u64, answer: &Answer) {
        if let Some(connection) = self.sockets.get(&connection) {
            // A client that does not read its answers loses them.
            let _ = connection.socket.send(&packet(answer));
        }
    }

    fn exited(&mut self, id: u64) {
        let client = ClientId(id);
        // A child of the process may hold its connections open; nobody can use them any more.
        self.disconnect(client, None);
        if let Some(gone) = self.clients.remove(&id) {
            self.poller.remove(gone.process.pidfd());
            self.by_pid.remove(&gone.process.pid());
            self.events.push(ConnectionEvent::Exited { client, process: gone.process });
        }
    }
}

impl Connection {
    /// Reads the packets that are there. Returns `false` at the end of the connection, and an error
    /// if the client violates the protocol.
    fn read(
        &mut self,
        token: u64,
        pid: u32,
        events: &mut Vec<ConnectionEvent>,
    ) -> Result<bool, String> {
        let mut buffer = [0; PACKET_LIMIT];
        for _ in 0..PACKETS_PER_TURN {
            let length = match self.socket.receive(&mut buffer) {
                Ok(Packet::Packet { length, sender }) if sender == pid => length,
                Ok(Packet::Packet { sender, .. }) => {
                    return Err(format!("process {sender} must open its own connection"));
                }
                Ok(Packet::TooLarge) => return Err("packet exceeds the limit".into()),
                Ok(Packet::Nothing) => return Ok(true),
                Ok(Packet::Closed) => return Ok(false),
                Err(error) => return Err(error.to_string()),
            };
            let request = TimerRequest::decode(&buffer[..length])?;
            match request {
                TimerRequest::Hello { version: VERSION } if !self.said_hello => {
                    self.said_hello = true;
                    // It is the first packet, so there is room, unless the client is gone; that is
                    // noticed next.
                    let _ = self.socket.send(&packet(&Answer::Welcome));
                }
                TimerRequest::Hello { version: VERSION } => return Err("second `Hello`".into()),
                TimerRequest::Hello { version } => {
                    return Err(format!(
                        "protocol version {version} is not supported, expected {VERSION}"
                    ));
                }
                _ if !self.said_hello => return Err("request before `Hello`".into()),
                request => {
                    let client = ClientId(self.client);
                    events.push(ConnectionEvent::Request { client, connection: token, request });
                }
            }
        }
        Ok(true)
    }
}

fn refuse(socket: &RequestSocket, pid: u32, reason: String, events: &mut Vec<ConnectionEvent>) {
    send_refusal(socket, &reason);
    events.push(ConnectionEvent::Refused { pid, reason });
}

/// Best effort: a client that does not read it sees the connection closed.
fn send_refusal(socket: &RequestSocket, reason: &str) {
    let _ = socket.send(&packet(&Answer::Refused { reason: reason.to_owned() }));
}

/// Refuses a client that the server could not register.
fn refuse_for_error(
    socket: &RequestSocket,
    peer: Option<Peer>,
    error: &io::Error,
    events: &mut Vec<ConnectionEvent>,
) {
    let pid = peer.map_or(0, |peer| peer.process.pid());
    let reason = if is_shortage(error) {
        format!("the server is full (it needs two descriptors per process): {error}")
    } else {
        format!("the server cannot register the process: {error}")
    };
    refuse(socket, pid, reason, events);
}

#[cfg(test)]
mod tests;
