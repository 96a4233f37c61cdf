//! A link inside one process, over two channels; for tests, and for workers that are threads.

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::connect::EndMark;
use super::{LinkError, LinkReceiver, LinkSender};

/// A message, or the end mark.
type SentMessage = Option<Vec<u8>>;

/// One end of a memory link.
#[derive(Debug)]
pub struct End {
    /// The sending half.
    pub sender: MemorySender,
    /// The receiving half.
    pub receiver: MemoryReceiver,
}

/// The sending half of a memory link.
#[derive(Debug)]
pub struct MemorySender {
    channel: Sender<SentMessage>,
    limit: usize,
}

/// Ends the direction in which a [`MemorySender`] sends, as if that were gone.
#[derive(Debug)]
pub struct MemoryEnd(Sender<SentMessage>);

/// The receiving half of a memory link.
#[derive(Debug)]
pub struct MemoryReceiver {
    channel: Receiver<SentMessage>,
    current: Vec<u8>,
}

/// Creates the host's and the worker's end of a link for messages of at most `limit` bytes.
pub fn pair(limit: usize) -> (End, End) {
    let (to_worker, from_host) = unbounded();
    let (to_host, from_worker) = unbounded();
    (end(to_worker, from_worker, limit), end(to_host, from_host, limit))
}

fn end(send: Sender<SentMessage>, receive: Receiver<SentMessage>, limit: usize) -> End {
    End {
        sender: MemorySender { channel: send, limit },
        receiver: MemoryReceiver { channel: receive, current: Vec::new() },
    }
}

impl MemorySender {
    /// Returns the end mark of this direction.
    pub fn end_mark(&self) -> MemoryEnd {
        MemoryEnd(self.channel.clone())
    }
}

impl EndMark for MemoryEnd {
    fn send(&self) {
        // If the receiver is gone, nothing is left to end.
        let _ = self.0.send(None);
    }
}

impl LinkSender for MemorySender {
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        LinkError::size_within(self.limit, head, payload)?;
        self.channel.send(Some([head, payload].concat())).map_err(|_| LinkError::Closed)
    }
}

impl LinkReceiver for MemoryReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        self.current = self.channel.recv().ok().flatten().ok_or(LinkError::Closed)?;
        Ok(&self.current)
    }
}
