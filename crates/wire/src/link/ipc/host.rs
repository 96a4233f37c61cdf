//! The host's end: sends without ever blocking, and ends the link.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brigade_sys::handover::{end_sending, never_block};
use ipc_channel::ipc::{self, IpcBytesReceiver, IpcBytesSender};

use super::descriptor::Descriptors;
use super::packet::{self, Assembly, Content};
use super::window::{Window, cost, window};
use super::{Channels, receive_packet, send_packet};
use crate::handshake::Token;
use crate::link::{LinkError, LinkReceiver, LinkSender};

/// The host's end of an ipc link.
#[derive(Debug)]
pub struct HostEnd {
    /// Sends tasks.
    pub sender: HostSender,
    /// Receives answers.
    pub receiver: HostReceiver,
    /// Ends it.
    pub poison: Poison,
}

/// Sends tasks; see [`LinkSender`].
#[derive(Debug)]
pub struct HostSender {
    outgoing: Arc<Mutex<Outgoing>>,
    limit: usize,
}

/// Receives answers, and sends on what had to wait; see [`LinkReceiver`].
#[derive(Debug)]
pub struct HostReceiver {
    channel: IpcBytesReceiver,
    outgoing: Arc<Mutex<Outgoing>>,
    assembly: Assembly,
}

/// Ends what the worker sends; for whoever learns of its death.
#[derive(Debug, Clone)]
pub struct Poison {
    /// The host's duplicate of the worker's sending end.
    socket: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Outgoing {
    channel: IpcBytesSender,
    /// Messages that wait for room, the first one sent up to an offset.
    waiting: VecDeque<Waiting>,
    window: Window,
    /// Cost of everything sent so far.
    sent: u64,
    /// Of that, what the worker has consumed.
    consumed: u64,
    packet: Vec<u8>,
}

#[derive(Debug)]
struct Waiting {
    message: Vec<u8>,
    offset: usize,
}

/// A new link: the host's end, and what the worker needs for its own. A socket is at `path`, in a private folder, meanwhile.
///
/// # Errors
/// When descriptors run out, or there can be no socket at the path.
pub fn host_end(token: Token, limit: usize, path: &Path) -> io::Result<(HostEnd, Channels)> {
    let (to_worker, from_host) = ipc::bytes_channel()?;
    let (to_host, from_worker) = ipc::bytes_channel()?;
    let descriptors = Descriptors::by_way_of(path)?;
    // A worker that says it has read what it has not would make it wait.
    never_block(descriptors.of(&to_worker)?)?;
    let socket = Arc::new(descriptors.of(&to_host)?);
    let outgoing = Arc::new(Mutex::new(Outgoing {
        channel: to_worker,
        waiting: VecDeque::new(),
        window: window(),
        sent: 0,
        consumed: 0,
        packet: Vec::new(),
    }));
    let end = HostEnd {
        sender: HostSender { outgoing: Arc::clone(&outgoing), limit },
        receiver: HostReceiver { channel: from_worker, outgoing, assembly: Assembly::new(limit) },
        poison: Poison { socket },
    };
    Ok((end, Channels { token, receiver: from_host, sender: to_host }))
}

impl LinkSender for HostSender {
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = head.len() + payload.len();
        if size > self.limit {
            return Err(LinkError::TooLarge { size, limit: self.limit });
        }
        let mut outgoing = lock(&self.outgoing);
        let mut offset = 0;
        if outgoing.waiting.is_empty() {
            match outgoing.send_pieces(head, payload, 0)? {
                Some(sent) => offset = sent,
                None => return Ok(()),
            }
        }
        outgoing.waiting.push_back(Waiting { message: [head, payload].concat(), offset });
        Ok(())
    }
}

impl Outgoing {
    /// Sends as much as the window allows; `None` when that is all, else the offset of the rest.
    fn send_pieces(
        &mut self,
        head: &[u8],
        payload: &[u8],
        mut offset: usize,
    ) -> Result<Option<usize>, LinkError> {
        let total = head.len() + payload.len();
        let mut packet = std::mem::take(&mut self.packet);
        let result = loop {
            let length =
                packet::write_piece(&mut packet, 0, head, payload, offset, self.window.piece);
            let cost = cost(packet.len());
            if self.sent - self.consumed + cost > self.window.size {
                break Ok(Some(offset));
            }
            match send_packet(&self.channel, &packet) {
                Ok(()) => {}
                Err(LinkError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    break Err(LinkError::Protocol("credit for what was not read"));
                }
                Err(error) => break Err(error),
            }
            self.sent += cost;
            offset += length;
            if offset == total {
                break Ok(None);
            }
        };
        self.packet = packet;
        result
    }

    /// The worker has consumed more: what waits may go.
    fn consumed(&mut self, consumed: u64) -> Result<(), LinkError> {
        if consumed > self.sent {
            return Err(LinkError::Protocol("credit for what was never sent"));
        }
        // The worker's two halves may run in two threads, so newer credit may overtake older.
        self.consumed = self.consumed.max(consumed);
        while let Some(mut first) = self.waiting.pop_front() {
            match self.send_pieces(&[], &first.message, first.offset) {
                Ok(None) => {}
                Ok(Some(offset)) => {
                    first.offset = offset;
                    self.waiting.push_front(first);
                    break;
                }
                Err(error @ LinkError::Protocol(_)) => {
                    self.waiting.clear();
                    return Err(error);
                }
                // The worker is gone; its death is told by its pidfd, and what it has sent is still to be read.
                Err(_) => self.waiting.clear(),
            }
        }
        Ok(())
    }
}

impl LinkReceiver for HostReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        loop {
            let bytes = receive_packet(&self.channel)?;
            let packet = packet::read(&bytes)?;
            match packet.content {
                Content::Credit => lock(&self.outgoing).consumed(packet.consumed)?,
                Content::Piece { total, last, bytes } => {
                    lock(&self.outgoing).consumed(packet.consumed)?;
                    if self.assembly.add(total, last, bytes)? {
                        break;
                    }
                }
            }
        }
        Ok(self.assembly.message())
    }
}

impl Poison {
    /// Has the receiver answer [`LinkError::Closed`] once it has received everything that was sent before, whoever
    /// still holds the worker's end.
    pub fn poison(&self) {
        // It fails if nobody receives any more.
        let _ = end_sending(&*self.socket);
    }
}

fn lock(outgoing: &Mutex<Outgoing>) -> MutexGuard<'_, Outgoing> {
    outgoing.lock().unwrap_or_else(PoisonError::into_inner)
}
