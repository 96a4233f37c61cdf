//! The end of the subscription for tasks.
//!
//! Tasks that the server sends while a node unsubscribes would be lost until their lease is over:
//! the client library forgets a subscription as soon as it has asked for its end. So the node asks
//! for an end after a number of messages that is larger than what can be on its way, and sends the
//! rest itself. The server counts them in their order, so both sides stop behind the same message.

use async_nats::connection::State;
use bytes::Bytes;

use super::NodeDriver;
use crate::node::machine::Event;

/// Number of messages that may arrive besides the tasks that were asked for: heartbeats, ends of
/// requests, and tasks of requests that were abandoned.
const OTHERS: u64 = 1024;

impl NodeDriver {
    pub(super) async fn drain(&mut self) {
        tracing::info!(node = self.shared.name, "draining");
        self.events.push_back(Event::Drain);
        let is_connected = self.client.connection_state() == State::Connected;
        if !is_connected || self.end_deliveries().await.is_err() {
            self.is_closed = true;
        }
    }

    async fn end_deliveries(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let count = OTHERS + self.machine.requested();
        self.deliveries.unsubscribe_after(self.received + count).await?;
        for _ in 0..count {
            self.client.publish(format!("{}end", self.inbox), Bytes::new()).await?;
        }
        Ok(())
    }
}
