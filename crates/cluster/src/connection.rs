//! A connection to one of the servers, and what happens to it.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerError};
use tokio::sync::mpsc;

use crate::error::ClusterError;

/// The longest pause between two attempts to reconnect. The client library waits up to 4 s, which
/// is longer than most outages.
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(250);
/// Time between two questions whether the server is there. The client library gives up a link after
/// three without an answer: before the default lease of 10 s is over, so that a node that was cut
/// off knows. The library's own minute would leave it unaware for minutes.
const PING_INTERVAL: Duration = Duration::from_secs(3);

/// Commands that wait for the connection. More than what publishers and pulls have outstanding, so
/// that a driver does not block while the server is away.
const COMMAND_CAPACITY: usize = 16 * 1024;

/// A change of the link to the server, or its refusal of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkEvent {
    /// The link is there. Nothing that was outstanding before has an answer.
    Up,
    /// The link was lost. The library tries to connect again until the connection is dropped.
    Down,
    /// This login may not use a subject. A message to it has no answer.
    Denied(Denied),
}

/// A subject that this login may not use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) is_publish: bool,
    pub(crate) subject: String,
}

/// A connection to one of the servers.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    events: mpsc::UnboundedReceiver<LinkEvent>,
    /// Events that arrived during [`permitted`](Self::permitted).
    earlier: VecDeque<LinkEvent>,
}

/// Returns the options of every connection, and its events.
pub(crate) fn options(name: &str) -> (ConnectOptions, mpsc::UnboundedReceiver<LinkEvent>) {
    let (sender, events) = mpsc::unbounded_channel();
    let options = ConnectOptions::new()
        .name(name)
        .client_capacity(COMMAND_CAPACITY)
        .max_reconnects(None)
        .ping_interval(PING_INTERVAL)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            if let Some(event) = LinkEvent::of(&event) {
                // Nobody listens once the connection is dropped.
                let _ = sender.send(event);
            }
            async {}
        });
    (options, events)
}

impl Connection {
    pub(crate) fn new(client: Client, events: mpsc::UnboundedReceiver<LinkEvent>) -> Self {
        Self { client, events, earlier: VecDeque::new() }
    }

    /// Returns the next change of the link. The first is [`LinkEvent::Up`], of the connection
    /// itself.
    ///
    /// May be dropped before it is ready without losing an event.
    pub(crate) async fn next_event(&mut self) -> LinkEvent {
        if let Some(event) = self.earlier.pop_front() {
            return event;
        }
        match self.events.recv().await {
            Some(event) => event,
            // The library ends its tasks only with the last client, and this is one.
            None => std::future::pending().await,
        }
    }

    /// Waits for the result of requests. Without permission for one of them the server does not
    /// answer, so this ends with an error as soon as the server says so.
    pub(crate) async fn permitted<T>(
        &mut self,
        requests: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        // Large, as it has all requests of a start.
        let mut requests = Box::pin(requests);
        loop {
            tokio::select! {
                result = &mut requests => return result,
                event = self.events.recv() => match event {
                    Some(LinkEvent::Denied(denied)) => return Err(denied.into()),
                    event => self.earlier.extend(event),
                },
            }
        }
    }
}

impl LinkEvent {
    fn of(event: &Event) -> Option<Self> {
        match event {
            Event::Connected => Some(Self::Up),
            Event::Disconnected => Some(Self::Down),
            Event::ServerError(ServerError::Other(text)) => Denied::of(text).map(Self::Denied),
            _ => None,
        }
    }
}

impl Denied {
    /// Reads `Permissions Violation for Publish to "SUBJECT"`, or `… Subscription to …`.
    fn of(text: &str) -> Option<Self> {
        let text = text.trim_matches('\'').strip_prefix("Permissions Violation for ")?;
        let (kind, rest) = text.split_once('"')?;
        let subject = rest.split('"').next()?.to_owned();
        Some(Self { is_publish: kind.starts_with("Publish"), subject })
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.is_publish { "publish to" } else { "subscribe to" };
        write!(out, "this login may not {verb} {}", self.subject)
    }
}

impl From<Denied> for ClusterError {
    fn from(denied: Denied) -> Self {
        Self::Permission { subject: denied.subject.clone(), reason: denied.to_string() }
    }
}

/// Emits the event of a link that was lost or is back.
pub(crate) fn log_link(is_up: bool) {
    if is_up {
        tracing::warn!("the link to the server is back");
    } else {
        tracing::warn!("the link to the server is lost; connecting again");
    }
}

/// Returns the pause before the given attempt to reconnect: none before the first, then 2 ms, 4 ms
/// and so on.
fn reconnect_delay(attempt: usize) -> Duration {
    if attempt < 2 {
        return Duration::ZERO;
    }
    let millis = 2_u64.saturating_pow(u32::try_from(attempt).unwrap_or(u32::MAX));
    Duration::from_millis(millis).min(MAX_RECONNECT_DELAY)
}

#[cfg(test)]
mod tests {
    use brigade_testkit::{BOUND, NatsServer, processes};

    use super::*;
    use crate::endpoint::Endpoint;

    #[tokio::test]
    async fn a_server_that_falls_silent_is_a_lost_link() {
        if !NatsServer::installed() {
            return;
        }
        let server = NatsServer::start();
        let mut connection = Endpoint::at(server.url()).connect("test").await.unwrap();
        processes::hit(server.pid(), processes::Signal::STOP);
        while tokio::time::timeout(BOUND, connection.next_event()).await.unwrap() != LinkEvent::Down
        {
        }
    }

    #[test]
    fn pauses_grow_and_are_capped() {
        assert_eq!(reconnect_delay(1), Duration::ZERO);
        assert_eq!(reconnect_delay(3), Duration::from_millis(8));
        assert_eq!(reconnect_delay(8), MAX_RECONNECT_DELAY);
        assert_eq!(reconnect_delay(usize::MAX), MAX_RECONNECT_DELAY);
    }

    #[test]
    fn refusals_of_all_versions_are_read() {
        for (text, is_publish, subject) in [
            (r#"Permissions Violation for Publish to "$JS.API.INFO""#, true, "$JS.API.INFO"),
            (r#"'Permissions Violation for Publish to "a.b"'"#, true, "a.b"),
            (r#"Permissions Violation for Subscription to "_I.x" (sid "3")"#, false, "_I.x"),
            (r#"Permissions Violation for Subscription to "a" using queue "q""#, false, "a"),
        ] {
            let subject = subject.to_owned();
            assert_eq!(Denied::of(text), Some(Denied { is_publish, subject }), "{text}");
        }
        assert_eq!(Denied::of("Stale Connection"), None);
    }
}
