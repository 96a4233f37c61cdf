//! Servers for tests that do not know the last messages, as it happens to two of three for moments,
//! and after crashes.

use async_nats::jetstream::{self, Context};
use async_nats::{Client, Message};
use futures_util::StreamExt;
use serde_json::Value;

/// The beginning of the subjects of requests to a real server, and to one of these.
const REAL: &str = "$JS.API";
const STALE: &str = "stale";

/// Requests that any server answers by the messages that it has.
const DIRECT: &str = "DIRECT.GET.";
const CONSUMER: &str = "CONSUMER.INFO.";

/// Passes requests on to a real server, except that no message is found by direct requests, and
/// that consumers have nothing to deliver and nothing to wait for.
pub(crate) struct StaleServer {
    client: Client,
    /// The last sequence of the stream that consumers have delivered, as they say.
    delivered: u64,
}

impl StaleServer {
    /// Starts to answer, as long as the runtime lives. Returns the context of its clients.
    pub(crate) async fn start(url: &str, delivered: u64) -> Context {
        let client = async_nats::connect(url).await.unwrap();
        let mut requests = client.subscribe(format!("{STALE}.>")).await.unwrap();
        client.flush().await.unwrap();
        let server = Self { client: client.clone(), delivered };
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                server.answer(request).await;
            }
        });
        jetstream::with_prefix(client, STALE)
    }

    async fn answer(&self, request: Message) {
        let Message { subject, reply: Some(reply), payload, .. } = request else { return };
        let operation =
            subject.strip_prefix(STALE).and_then(|rest| rest.strip_prefix('.')).unwrap();
        let real = format!("{REAL}.{operation}");
        if let Some(arguments) = operation.strip_prefix(DIRECT) {
            let stream = arguments.split('.').next().unwrap();
            let (real, nothing) =
                (format!("{REAL}.{DIRECT}{stream}"), r#"{"last_by_subj":"none"}"#);
            self.client.publish_with_reply(real, reply, nothing.into()).await.unwrap();
        } else if operation.starts_with(CONSUMER) {
            let answer = self.client.request(real, payload).await.unwrap();
            let mut answer: Value = serde_json::from_slice(&answer.payload).unwrap();
            answer["delivered"]["stream_seq"] = self.delivered.into();
            (answer["num_pending"], answer["num_ack_pending"]) = (0.into(), 0.into());
            self.client.publish(reply, answer.to_string().into()).await.unwrap();
        } else {
            self.client.publish_with_reply(real, reply, payload).await.unwrap();
        }
    }
}
