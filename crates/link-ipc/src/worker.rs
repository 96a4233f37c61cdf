//! The worker's end: one thread, which may block because the host always reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brigade_wire::fragments::Assembly;
use brigade_wire::link::connect::WorkerEnd;
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender};
use ipc_channel::ipc::{IpcBytesReceiver, IpcBytesSender};

use crate::packet::{self, Content};
use crate::window::{Window, cost, window};
use crate::{Channels, receive_packet, send_packet};

/// Sends outcomes; see [`LinkSender`].
#[derive(Debug)]
struct IpcWorkerSender {
    channel: IpcBytesSender,
    consumed: Arc<AtomicU64>,
    window: Window,
    limit: usize,
    packet: Vec<u8>,
}

/// Receives tasks and reports its consumption; see [`LinkReceiver`].
#[derive(Debug)]
struct IpcWorkerReceiver {
    channel: IpcBytesReceiver,
    back: IpcBytesSender,
    /// Cost of the consumed packets; the outcomes also carry it.
    consumed: Arc<AtomicU64>,
    /// The value of `consumed` in the last packet of credit.
    reported: u64,
    window: Window,
    assembly: Assembly,
}

/// Creates the worker's end from the channels that came through the server.
pub fn worker_end(channels: Channels, limit: usize) -> WorkerEnd {
    let Channels { receiver, sender, .. } = channels;
    let consumed = Arc::new(AtomicU64::new(0));
    let window = window();
    WorkerEnd {
        sender: Box::new(IpcWorkerSender {
            channel: sender.clone(),
            consumed: Arc::clone(&consumed),
            window,
            limit,
            packet: Vec::new(),
        }),
        receiver: Box::new(IpcWorkerReceiver {
            channel: receiver,
            back: sender,
            consumed,
            reported: 0,
            window,
            assembly: Assembly::new(limit),
        }),
    }
}

impl LinkSender for IpcWorkerSender {
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = LinkError::size_within(self.limit, head, payload)?;
        let mut offset = 0;
        loop {
            let consumed = self.consumed.load(Ordering::Relaxed);
            let most = self.window.fragment;
            offset +=
                packet::write_fragment(&mut self.packet, consumed, head, payload, offset, most);
            send_packet(&self.channel, &self.packet)?;
            if offset == size {
                return Ok(());
            }
        }
    }
}

impl LinkReceiver for IpcWorkerReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        self.assembly.release();
        loop {
            let bytes = receive_packet(&self.channel)?;
            let consumed = self.consumed.load(Ordering::Relaxed) + cost(bytes.len());
            self.consumed.store(consumed, Ordering::Relaxed);
            if consumed - self.reported >= self.window.size / 2 {
                let mut packet = Vec::new();
                packet::write_credit(&mut packet, consumed);
                send_packet(&self.back, &packet)?;
                self.reported = consumed;
            }
            match packet::read(&bytes)?.content {
                Content::Fragment { total, last, bytes } => {
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
