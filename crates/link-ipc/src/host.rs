//! The host's end: sends without ever blocking, and ends the link.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use brigade_sys::handover::{end_sending, never_block};
use brigade_sys::sync::Mutex;
use brigade_wire::fragments::Assembly;
use brigade_wire::handshake::Token;
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender};
use ipc_channel::ipc::{self, IpcBytesReceiver, IpcBytesSender};

use crate::descriptor::Descriptors;
use crate::packet::{self, Content};
use crate::window::{Window, cost, window};
use crate::{Channels, receive_packet, send_packet};

/// The host's end of an ipc link.
#[derive(Debug)]
pub struct HostEnd {
    /// Sends tasks.
    pub sender: HostSender,
    /// Receives outcomes.
    pub receiver: HostReceiver,
    /// Ends the link after the worker's death.
    pub end_mark: EndMark,
}

/// Sends tasks; see [`LinkSender`].
#[derive(Debug)]
pub struct HostSender {
    outgoing: Arc<Mutex<Outgoing>>,
    limit: usize,
}

/// Receives outcomes and sends the messages that had to wait; see [`LinkReceiver`].
#[derive(Debug)]
pub struct HostReceiver {
    channel: IpcBytesReceiver,
    outgoing: Arc<Mutex<Outgoing>>,
    assembly: Assembly,
}

/// Ends the worker's channel; for the thread that notices the worker's death.
#[derive(Debug, Clone)]
pub struct EndMark {
    /// The host's duplicate of the worker's sending end.
    socket: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Outgoing {
    channel: IpcBytesSender,
    /// Messages that wait for room; the first one was sent up to an offset.
    waiting: VecDeque<Waiting>,
    window: Window,
    /// Cost of all packets sent.
    sent: u64,
    /// The part of `sent` that the worker has consumed.
    consumed: u64,
    packet: Vec<u8>,
}

#[derive(Debug)]
struct Waiting {
    message: Vec<u8>,
    offset: usize,
}

/// Creates a link: the host's end, and the channels for the worker's end. Briefly uses a socket at
/// `path`, in a private folder.
///
/// # Errors
/// If descriptors run out, or the socket cannot be created at `path`.
pub fn host_end(token: Token, limit: usize, path: &Path) -> io::Result<(HostEnd, Channels)> {
    let (to_worker, from_host) = ipc::bytes_channel()?;
    let (to_host, from_worker) = ipc::bytes_channel()?;
    let descriptors = Descriptors::by_way_of(path)?;
    // Otherwise a worker that claims to have read more than it has could block the host.
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
        end_mark: EndMark { socket },
    };
    Ok((end, Channels { token, receiver: from_host, sender: to_host }))
}

impl LinkSender for HostSender {
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        LinkError::size_within(self.limit, head, payload)?;
        let mut outgoing = self.outgoing.lock();
        let mut offset = 0;
        if outgoing.waiting.is_empty() {
            match outgoing.send_fragments(head, payload, 0)? {
                Some(sent) => offset = sent,
                None => return Ok(()),
            }
        }
        outgoing.waiting.push_back(Waiting { message: [head, payload].concat(), offset });
        Ok(())
    }
}

impl Outgoing {
    /// Sends as much as the window allows. Returns `None` if that is the whole message, else the
    /// offset of the rest.
    fn send_fragments(
        &mut self,
        head: &[u8],
        payload: &[u8],
        mut offset: usize,
    ) -> Result<Option<usize>, LinkError> {
        let total = head.len() + payload.len();
        let mut packet = std::mem::take(&mut self.packet);
        let result = loop {
            let length =
                packet::write_fragment(&mut packet, 0, head, payload, offset, self.window.fragment);
            let cost = cost(packet.len());
            if self.sent - self.consumed + cost > self.window.size {
                break Ok(Some(offset));
            }
            match send_packet(&self.channel, &packet) {
                Ok(()) => {}
                Err(LinkError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    break Err(LinkError::Protocol("credit for data that was not read"));
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

    /// Handles a report that the worker has consumed more: waiting messages may be sent.
    fn consumed(&mut self, consumed: u64) -> Result<(), LinkError> {
        if consumed > self.sent {
            return Err(LinkError::Protocol("credit for data that was never sent"));
        }
        // The worker's two halves may run in two threads, so newer credit may overtake older.
        self.consumed = self.consumed.max(consumed);
        while let Some(mut first) = self.waiting.pop_front() {
            match self.send_fragments(&[], &first.message, first.offset) {
                Ok(None) => {}
                Ok(Some(offset)) => {
                    first.offset = offset;
                    self.waiting.push_front(first);
                    break;
                }
                // The worker is gone: its pidfd reports the death, and its messages are still to be
                // read.
                Err(LinkError::Closed) => self.waiting.clear(),
                Err(error) => {
                    self.waiting.clear();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl LinkReceiver for HostReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        self.assembly.release();
        loop {
            let bytes = receive_packet(&self.channel)?;
            let packet = packet::read(&bytes)?;
            match packet.content {
                Content::Credit => self.outgoing.lock().consumed(packet.consumed)?,
                Content::Fragment { total, last, bytes } => {
                    self.outgoing.lock().consumed(packet.consumed)?;
                    if self.assembly.add(total, last, bytes)? {
                        break;
                    }
                }
            }
        }
        Ok(self.assembly.message())
    }
}

impl EndMark {
    /// Makes the receiver return [`LinkError::Closed`] after it has received everything that was
    /// sent before, no matter who still holds the worker's end.
    pub fn send(&self) {
        // It fails if nobody receives any more.
        let _ = end_sending(&*self.socket);
    }
}
