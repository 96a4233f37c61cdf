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

/// Answer of a consumer that is asked for its state.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Consumers {
    /// It has delivered messages up to this sequence, and has nothing to deliver or to wait for.
    Done { delivered: u64 },
    /// It waits for the acknowledgment of a message before all others.
    Waiting,
    /// It has no leader.
    Away,
}

/// The answer to a request that needs a leader if there is none.
const UNAVAILABLE: &str = r#"{"type": "io.nats.jetstream.api.v1.consumer_info_response",
    "error": {"code": 503, "err_code": 10008,
              "description": "JetStream system temporarily unavailable"}}"#;

/// Passes requests on to a real server, except that no message is found by direct requests, and
/// that consumers have answers of their own.
pub(crate) struct StaleServer {
    client: Client,
    consumers: Consumers,
}

impl StaleServer {
    /// Starts to answer, as long as the runtime lives. Returns the context of its clients.
    pub(crate) async fn start(url: &str, consumers: Consumers) -> Context {
        let client = async_nats::connect(url).await.unwrap();
        let mut requests = client.subscribe(format!("{STALE}.>")).await.unwrap();
        client.flush().await.unwrap();
        let server = Self { client: client.clone(), consumers };
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
            let (delivered, waits) = match self.consumers {
                Consumers::Done { delivered } => (delivered, 0),
                Consumers::Waiting => (2, 1),
                Consumers::Away => {
                    return self.client.publish(reply, UNAVAILABLE.into()).await.unwrap();
                }
            };
            let answer = self.client.request(real, payload).await.unwrap();
            let mut answer: Value = serde_json::from_slice(&answer.payload).unwrap();
            answer["delivered"]["stream_seq"] = delivered.into();
            (answer["num_pending"], answer["num_ack_pending"]) = (0.into(), waits.into());
            self.client.publish(reply, answer.to_string().into()).await.unwrap();
        } else {
            self.client.publish_with_reply(real, reply, payload).await.unwrap();
        }
    }
}
