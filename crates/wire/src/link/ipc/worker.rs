//! The worker's end: one thread, which may block on a host that always reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ipc_channel::ipc::{IpcBytesReceiver, IpcBytesSender};

use super::packet::{self, Assembly, Content};
use super::window::{Window, cost, window};
use super::{Channels, receive_packet, send_packet};
use crate::link::{LinkError, LinkReceiver, LinkSender};

/// The worker's end of an ipc link.
#[derive(Debug)]
pub struct WorkerEnd {
    /// Sends answers.
    pub sender: WorkerSender,
    /// Receives tasks.
    pub receiver: WorkerReceiver,
}

/// Sends answers; see [`LinkSender`].
#[derive(Debug)]
pub struct WorkerSender {
    channel: IpcBytesSender,
    consumed: Arc<AtomicU64>,
    window: Window,
    limit: usize,
    packet: Vec<u8>,
}

/// Receives tasks and says how much it has consumed; see [`LinkReceiver`].
#[derive(Debug)]
pub struct WorkerReceiver {
    channel: IpcBytesReceiver,
    back: IpcBytesSender,
    /// What was consumed, which also answers carry.
    consumed: Arc<AtomicU64>,
    /// What was last said in a packet of credit.
    said: u64,
    window: Window,
    assembly: Assembly,
}

/// The worker's end, from what came through the server.
pub fn worker_end(channels: Channels, limit: usize) -> WorkerEnd {
    let Channels { receiver, sender, .. } = channels;
    let consumed = Arc::new(AtomicU64::new(0));
    let window = window();
    WorkerEnd {
        sender: WorkerSender {
            channel: sender.clone(),
            consumed: Arc::clone(&consumed),
            window,
            limit,
            packet: Vec::new(),
        },
        receiver: WorkerReceiver {
            channel: receiver,
            back: sender,
            consumed,
            said: 0,
            window,
            assembly: Assembly::new(limit),
        },
    }
}

impl LinkSender for WorkerSender {
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = head.len() + payload.len();
        if size > self.limit {
            return Err(LinkError::TooLarge { size, limit: self.limit });
        }
        let mut offset = 0;
        loop {
            let consumed = self.consumed.load(Ordering::Relaxed);
            let piece = self.window.piece;
            offset += packet::write_piece(&mut self.packet, consumed, head, payload, offset, piece);
            send_packet(&self.channel, &self.packet)?;
            if offset == size {
                return Ok(());
            }
        }
    }
}

impl LinkReceiver for WorkerReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        loop {
            let bytes = receive_packet(&self.channel)?;
            let consumed = self.consumed.load(Ordering::Relaxed) + cost(bytes.len());
            self.consumed.store(consumed, Ordering::Relaxed);
            if consumed - self.said >= self.window.size / 2 {
                let mut packet = Vec::new();
                packet::write_credit(&mut packet, consumed);
                send_packet(&self.back, &packet)?;
                self.said = consumed;
            }
            match packet::read(&bytes)?.content {
                Content::Piece { total, last, bytes } => {
                    if self.assembly.add(total, last, bytes)? {
                        break;
                    }
                }
                Content::Credit => {}
            }
        }
        Ok(self.assembly.message())
    }
}
