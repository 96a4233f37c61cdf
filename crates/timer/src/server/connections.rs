//! Who is connected, and which process that is.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::poller::Poller;
use brigade_sys::process::ForeignProcess;
use brigade_sys::request_socket::{Listener, Peer, Request as Packet, RequestSocket, own_user};

use crate::machine::WorkerId;
use crate::request::{Answer, PACKET_LIMIT, Request, VERSION, packet};

/// So many connections a process may have; one is enough.
const CONNECTIONS_PER_WORKER: usize = 16;

/// So many packets of one connection are read in a turn. More than fit into a socket of the usual size (about 280), so
/// that all that was sent before the turn is read in it; and few enough for the others.
const PACKETS_PER_TURN: usize = 512;

/// Tokens below this are not ours.
pub(super) const FIRST_TOKEN: u64 = 16;

/// All workers and their connections.
#[derive(Debug)]
pub(super) struct Connections {
    listener: Listener,
    any_user: bool,
    /// By token. A worker's token is its id, under which its pidfd is watched.
    workers: HashMap<u64, Worker>,
    sockets: HashMap<u64, Connection>,
    /// The living workers by their numbers.
    by_pid: HashMap<u32, u64>,
    next_token: u64,
    /// Descriptors to be given up when there are no others, so that a client can be turned away and a worker's descendants
    /// can be found.
    spare: Vec<OwnedFd>,
    /// When a refusal of a process that is not served was last reported, and how many have followed.
    last_stranger: Option<Monotonic>,
    strangers: u64,
}

/// Enough to look for children a few generations deep.
const SPARE: usize = 8;

/// Processes that are not served may come as often as they like; they are reported so often.
const STRANGERS_PER: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Worker {
    process: ForeignProcess,
    connections: usize,
}

#[derive(Debug)]
struct Connection {
    socket: RequestSocket,
    worker: u64,
    greeted: bool,
}

/// What reading has brought.
#[derive(Debug)]
pub(super) enum News {
    Registered { worker: WorkerId, pid: u32 },
    Request { worker: WorkerId, connection: u64, request: Request },
    Exited { worker: WorkerId, process: ForeignProcess },
    Refused { pid: u32, reason: String },
}

impl Connections {
    pub(super) fn new(listener: Listener, any_user: bool) -> Self {
        let mut this = Self {
            listener,
            any_user,
            workers: HashMap::new(),
            sockets: HashMap::new(),
            by_pid: HashMap::new(),
            next_token: FIRST_TOKEN,
            spare: Vec::new(),
            last_stranger: None,
            strangers: 0,
        };
        // A server that cannot have them begins without.
        this.save_descriptors();
        this
    }

    /// Lets go of the spare descriptors, until they are saved again.
    pub(super) fn spend_descriptors(&mut self) {
        self.spare.clear();
    }

    pub(super) fn save_descriptors(&mut self) {
        while self.spare.len() < SPARE
            && let Ok(descriptor) = self.listener.as_fd().try_clone_to_owned()
        {
            self.spare.push(descriptor);
        }
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(super) fn process(&self, worker: WorkerId) -> Option<&ForeignProcess> {
        self.workers.get(&worker.0).map(|worker| &worker.process)
    }

    /// Takes one client that waits, if there is one; false if not.
    pub(super) fn accept(&mut self, poller: &mut Poller, news: &mut Vec<News>) -> io::Result<bool> {
        let accepted = match self.listener.accept() {
            Err(error) => {
                // The client that waits would have us woken again and again.
                self.spend_descriptors();
                let accepted = self.listener.accept();
                if let Ok(Some((socket, peer))) = accepted {
                    turn_away(&socket, peer.ok(), &error, news);
                }
                self.save_descriptors();
                return Err(error);
            }
            Ok(accepted) => accepted,
        };
        let Some((socket, peer)) = accepted else { return Ok(false) };
        match peer {
            Ok(peer) => self.admit(socket, peer, poller, news)?,
            Err(error) => {
                turn_away(&socket, None, &error, news);
                return Err(error);
            }
        }
        Ok(true)
    }

    fn admit(
        &mut self,
        socket: RequestSocket,
        peer: Peer,
        poller: &mut Poller,
        news: &mut Vec<News>,
    ) -> io::Result<()> {
        let Peer { process, user } = peer;
        let pid = process.pid();
        let reason = if pid == 0 {
            Some("it is outside of the server's pid namespace")
        } else if !(self.any_user || user == own_user() || user == 0) {
            Some("it is another user's")
        } else {
            None
        };
        if let Some(reason) = reason {
            self.refuse_stranger(&socket, pid, reason, news);
            return Ok(());
        }
        let known = self.by_pid.get(&pid).copied();
        let known = match known {
            // The number is another process's now; what is left of the old one goes first.
            Some(worker) if self.workers[&worker].process.has_ended()? => {
                self.exited(worker, poller, news);
                None
            }
            known => known,
        };
        if known.is_some_and(|id| self.workers[&id].connections >= CONNECTIONS_PER_WORKER) {
            let reason = format!("it has {CONNECTIONS_PER_WORKER} connections already");
            refuse(&socket, pid, reason, news);
            return Ok(());
        }
        let id = match known {
            Some(id) => id,
            None => match self.register(process, poller, news) {
                Ok(id) => id,
                Err(error) => {
                    turn_away(&socket, None, &error, news);
                    return Err(error);
                }
            },
        };
        let token = self.token();
        if let Err(error) = poller.add(&socket, token) {
            turn_away(&socket, None, &error, news);
            return Err(error);
        }
        self.sockets.insert(token, Connection { socket, worker: id, greeted: false });
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.connections += 1;
        }
        Ok(())
    }

    fn refuse_stranger(
        &mut self,
        socket: &RequestSocket,
        pid: u32,
        reason: &str,
        news: &mut Vec<News>,
    ) {
        let time = now();
        let is_due =
            self.last_stranger.is_none_or(|last| time.saturating_since(last) >= STRANGERS_PER);
        if !is_due {
            self.strangers += 1;
            tell_refusal(socket, reason);
            return;
        }
        self.last_stranger = Some(time);
        let reason = match std::mem::take(&mut self.strangers) {
            0 => reason.to_owned(),
            others => format!("{reason}; so were {others} others that came after the one before"),
        };
        refuse(socket, pid, reason, news);
    }

    fn register(
        &mut self,
        process: ForeignProcess,
        poller: &mut Poller,
        news: &mut Vec<News>,
    ) -> io::Result<u64> {
        let (id, pid) = (self.token(), process.pid());
        poller.add(process.pidfd(), id)?;
        self.by_pid.insert(pid, id);
        self.workers.insert(id, Worker { process, connections: 0 });
        news.push(News::Registered { worker: WorkerId(id), pid });
        Ok(id)
    }

    fn token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }

    /// Reads from what the token means: requests from a connection, the end from a worker.
    pub(super) fn read(&mut self, token: u64, poller: &mut Poller, news: &mut Vec<News>) {
        if self.workers.contains_key(&token) {
            self.exited(token, poller, news);
            return;
        }
        let Some(connection) = self.sockets.get_mut(&token) else { return };
        let Some(worker) = self.workers.get(&connection.worker) else { return };
        match connection.read(token, worker.process.pid(), news) {
            Ok(true) => {}
            Ok(false) => self.close(token, poller),
            Err(reason) => {
                refuse(&connection.socket, worker.process.pid(), reason, news);
                self.close(token, poller);
            }
        }
    }

    fn close(&mut self, token: u64, poller: &mut Poller) {
        let Some(connection) = self.sockets.remove(&token) else { return };
        poller.remove(&connection.socket);
        if let Some(worker) = self.workers.get_mut(&connection.worker) {
            worker.connections -= 1;
        }
    }

    /// Closes all connections of a worker, with a reason if there is one.
    pub(super) fn disconnect(
        &mut self,
        worker: WorkerId,
        reason: Option<&str>,
        poller: &mut Poller,
    ) {
        let its = self.sockets.iter().filter(|(_, connection)| connection.worker == worker.0);
        let tokens: Vec<u64> = its.map(|(token, _)| *token).collect();
        for token in tokens {
            if let (Some(reason), Some(connection)) = (reason, self.sockets.get(&token)) {
                tell_refusal(&connection.socket, reason);
            }
            self.close(token, poller);
        }
    }

    /// Answers a request.
    pub(super) fn answer(&self, connection: u64, answer: &Answer) {
        if let Some(connection) = self.sockets.get(&connection) {
            // A client that does not read its answers gets no more of them.
            let _ = connection.socket.send(&packet(answer));
        }
    }

    fn exited(&mut self, id: u64, poller: &mut Poller, news: &mut Vec<News>) {
        let worker = WorkerId(id);
        // A child of the worker may hold its connections open; they are of no use to anybody.
        self.disconnect(worker, None, poller);
        if let Some(gone) = self.workers.remove(&id) {
            poller.remove(gone.process.pidfd());
            self.by_pid.remove(&gone.process.pid());
            news.push(News::Exited { worker, process: gone.process });
        }
    }
}

impl Connection {
    /// Reads what is there; false at the end, and an error for a client that does not keep to the protocol.
    fn read(&mut self, token: u64, pid: u32, news: &mut Vec<News>) -> Result<bool, String> {
        let mut buffer = [0; PACKET_LIMIT];
        for _ in 0..PACKETS_PER_TURN {
            let length = match self.socket.receive(&mut buffer) {
                Ok(Packet::Packet { length, sender }) if sender == pid => length,
                Ok(Packet::Packet { sender, .. }) => {
                    return Err(format!("process {sender} uses a connection of its own"));
                }
                Ok(Packet::TooLarge) => return Err("a packet above the limit".into()),
                Ok(Packet::Nothing) => return Ok(true),
                Ok(Packet::Closed) => return Ok(false),
                Err(error) => return Err(error.to_string()),
            };
            let request = Request::decode(&buffer[..length])?;
            match request {
                Request::Hello { version: VERSION } if !self.greeted => {
                    self.greeted = true;
                    // Nothing was sent before, so there is room, unless the client is gone: that is seen next.
                    let _ = self.socket.send(&packet(&Answer::Welcome));
                }
                Request::Hello { version } => {
                    return Err(format!("version {version} of the protocol, not {VERSION}"));
                }
                _ if !self.greeted => return Err("a request before the greeting".into()),
                request => {
                    let worker = WorkerId(self.worker);
                    news.push(News::Request { worker, connection: token, request });
                }
            }
        }
        Ok(true)
    }
}

fn refuse(socket: &RequestSocket, pid: u32, reason: String, news: &mut Vec<News>) {
    tell_refusal(socket, &reason);
    news.push(News::Refused { pid, reason });
}

/// A courtesy: who does not read it sees the connection closed.
fn tell_refusal(socket: &RequestSocket, reason: &str) {
    let _ = socket.send(&packet(&Answer::Refused { reason: reason.to_owned() }));
}

/// Refuses a client for whom the system has no room.
fn turn_away(socket: &RequestSocket, peer: Option<Peer>, error: &io::Error, news: &mut Vec<News>) {
    let pid = peer.map_or(0, |peer| peer.process.pid());
    let reason = format!("the server is full, it needs two descriptors for each process: {error}");
    refuse(socket, pid, reason, news);
}

#[cfg(test)]
mod tests;
