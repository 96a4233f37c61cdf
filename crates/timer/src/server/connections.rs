//! Who is connected, and which process that is.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

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
    /// A descriptor to be given up when there are no others, so that a client can be turned away.
    spare: Option<OwnedFd>,
}

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
    Request { worker: WorkerId, request: Request },
    Exited { worker: WorkerId, process: ForeignProcess },
    Refused { pid: u32, reason: String },
}

impl Connections {
    pub(super) fn new(listener: Listener, any_user: bool) -> io::Result<Self> {
        let spare = Some(listener.as_fd().try_clone_to_owned()?);
        Ok(Self {
            listener,
            any_user,
            workers: HashMap::new(),
            sockets: HashMap::new(),
            by_pid: HashMap::new(),
            next_token: FIRST_TOKEN,
            spare,
        })
    }

    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(super) fn process(&self, worker: WorkerId) -> Option<&ForeignProcess> {
        self.workers.get(&worker.0).map(|worker| &worker.process)
    }

    /// Takes one client that waits, if there is one; false if not.
    pub(super) fn accept(&mut self, poller: &mut Poller, news: &mut Vec<News>) -> io::Result<bool> {
        match self.listener.accept() {
            Ok(None) => Ok(false),
            Ok(Some((socket, peer))) => {
                peer.and_then(|peer| self.admit(socket, peer, poller, news)).map(|()| true)
            }
            Err(error) => {
                // The client that waits would have us woken again and again: what it gets is closed at once.
                self.spare = None;
                drop(self.listener.accept());
                self.spare = self.listener.as_fd().try_clone_to_owned().ok();
                Err(error)
            }
        }
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
            refuse(&socket, pid, reason.into(), news);
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
            None => self.register(process, poller, news)?,
        };
        let token = self.token();
        poller.add(&socket, token)?;
        self.sockets.insert(token, Connection { socket, worker: id, greeted: false });
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.connections += 1;
        }
        Ok(())
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
        match connection.read(worker.process.pid(), news) {
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

    /// Closes all connections of a worker that wants too much.
    pub(super) fn disconnect(&mut self, worker: WorkerId, poller: &mut Poller) {
        let its = self.sockets.iter().filter(|(_, connection)| connection.worker == worker.0);
        let tokens: Vec<u64> = its.map(|(token, _)| *token).collect();
        for token in tokens {
            self.close(token, poller);
        }
    }

    fn exited(&mut self, id: u64, poller: &mut Poller, news: &mut Vec<News>) {
        let worker = WorkerId(id);
        // A child of the worker may hold its connections open; they are of no use to anybody.
        self.disconnect(worker, poller);
        if let Some(gone) = self.workers.remove(&id) {
            poller.remove(gone.process.pidfd());
            self.by_pid.remove(&gone.process.pid());
            news.push(News::Exited { worker, process: gone.process });
        }
    }
}

impl Connection {
    /// Reads what is there; false at the end, and an error for a client that does not keep to the protocol.
    fn read(&mut self, pid: u32, news: &mut Vec<News>) -> Result<bool, String> {
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
                request => news.push(News::Request { worker: WorkerId(self.worker), request }),
            }
        }
        Ok(true)
    }
}

fn refuse(socket: &RequestSocket, pid: u32, reason: String, news: &mut Vec<News>) {
    // A courtesy: who does not read it sees the connection closed.
    let _ = socket.send(&packet(&Answer::Refused { reason: reason.clone() }));
    news.push(News::Refused { pid, reason });
}
