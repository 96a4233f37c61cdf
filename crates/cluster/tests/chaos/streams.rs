//! The streams of the queue, read without the client of the crate.

use std::collections::HashSet;
use std::fmt::Write;
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::jetstream::{self, Context};
use brigade_testkit::{BOUND, wait_for};
use futures_util::{StreamExt, TryStreamExt};
use tokio::runtime::{self, Runtime};

/// Maximum time until messages that a crash has brought back are removed: nodes look for them at
/// intervals of up to 64 s.
const SWEPT: Duration = Duration::from_secs(200);

/// Time in which they are removed if the servers have them: two looks.
const SOON_SWEPT: Duration = Duration::from_secs(140);

/// A connection to the servers.
pub(crate) struct Streams {
    runtime: Runtime,
    jetstream: Context,
}

impl Streams {
    pub(crate) fn connect(urls: &str) -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let urls: Vec<&str> = urls.split(',').collect();
        // The servers may be about to start.
        let jetstream = wait_for("a server accepts a connection", BOUND, || {
            runtime.block_on(async {
                Some(jetstream::new(async_nats::connect(&urls[..]).await.ok()?))
            })
        });
        Self { runtime, jetstream }
    }

    /// Waits until no task is in the queue.
    pub(crate) fn wait_until_the_queue_is_empty(&self) {
        let begun = Instant::now();
        let is_empty = || match self.messages("BRIGADE_default_TASKS") {
            Some(0) => Some(()),
            Some(count) if begun.elapsed() >= SOON_SWEPT && self.has_no_message() => {
                println!("the server counts {count} messages, and has none");
                Some(())
            }
            _ => None,
        };
        wait_for("no task is left in the queue", SWEPT, is_empty);
    }

    /// Describes the queue for a test that fails.
    pub(crate) fn describe(&self) -> String {
        let state = async { tokio::time::timeout(BOUND, self.state_of_the_queue()).await };
        let state = self.runtime.block_on(state);
        state.unwrap_or_else(|_| "the servers do not answer".to_owned())
    }

    /// Returns `true` if the leader of the stream of tasks finds no message. After crashes, version
    /// 2.9.10 sometimes counts messages that it does not have, until it is restarted.
    fn has_no_message(&self) -> bool {
        self.runtime.block_on(async {
            let Ok(stream) = self.jetstream.get_stream("BRIGADE_default_TASKS").await else {
                return false;
            };
            let found = stream.get_first_raw_message_by_subject(">", 1).await;
            found.is_err_and(|error| error.kind() == RawMessageErrorKind::NoMessageFound)
        })
    }

    /// Describes the stream of tasks, its consumers, and its first messages.
    async fn state_of_the_queue(&self) -> String {
        let stream = match self.jetstream.get_stream("BRIGADE_default_TASKS").await {
            Ok(stream) => stream,
            Err(error) => return format!("no leader of the stream answers: {error}"),
        };
        let info = stream.cached_info();
        let mut text = format!("{:#?}\n{:#?}\n", info.state, info.cluster);
        writeln!(
            text,
            "outcomes: {:?}",
            self.jetstream
                .get_stream("BRIGADE_default_OUTCOMES")
                .await
                .map(|stream| stream.cached_info().state.messages)
        )
        .unwrap();
        let consumers: Result<Vec<_>, _> = stream.consumers().try_collect().await;
        writeln!(text, "{consumers:#?}").unwrap();
        let mut next = 1;
        for _ in 0..10 {
            match stream.get_first_raw_message_by_subject(">", next).await {
                Ok(message) => {
                    writeln!(text, "{} {}", message.sequence, message.subject).unwrap();
                    next = message.sequence + 1;
                }
                Err(error) => {
                    writeln!(text, "after {next}: {error}").unwrap();
                    break;
                }
            }
        }
        text
    }

    /// Returns the number of messages in a stream, or `None` if it has no leader at the moment.
    pub(crate) fn messages(&self, name: &str) -> Option<u64> {
        self.runtime.block_on(async {
            let mut stream = self.jetstream.get_stream(name).await.ok()?;
            Some(stream.info().await.ok()?.state.messages)
        })
    }

    /// Returns the subjects of all outcomes, each of which has exactly one message. There must be
    /// `count`, and none may have been removed or replaced.
    pub(crate) fn outcomes(&self, count: u64) -> HashSet<String> {
        // The servers may still refuse requests because of the last fault, and the leader of the
        // stream may count the last outcome after another server has delivered it.
        let (state, stream) = wait_for("all outcomes in their stream", SWEPT, || {
            self.runtime.block_on(async {
                let stream = self.jetstream.get_stream("BRIGADE_default_OUTCOMES").await.ok()?;
                let state = stream.cached_info().state.clone();
                (state.last_sequence >= count).then_some((state, stream))
            })
        });
        assert_eq!(state.messages, count, "outcomes: {state:?}");
        assert_eq!((state.first_sequence, state.last_sequence), (1, count), "{state:?}");
        // Soon after the last fault, a consumer may be lost with the server that leads it.
        wait_for("a consumer that delivers all outcomes", SWEPT, || {
            self.runtime.block_on(async {
                let consumer = stream.create_consumer(everything()).await.ok()?;
                read(&consumer, count).await
            })
        })
    }
}

/// Returns the settings of a consumer that delivers a stream from its beginning.
fn everything() -> pull::Config {
    pull::Config {
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::None,
        headers_only: true,
        ..pull::Config::default()
    }
}

/// Reads the messages of a stream, whose sequences must have no gap. Returns `None` if the consumer
/// stops delivering them.
async fn read(consumer: &PullConsumer, count: u64) -> Option<HashSet<String>> {
    let mut messages = consumer.messages().await.ok()?;
    let mut subjects = HashSet::new();
    for sequence in 1..=count {
        let message = tokio::time::timeout(BOUND, messages.next()).await.ok()??.ok()?;
        assert_eq!(message.info().unwrap().stream_sequence, sequence);
        let subject = message.subject.to_string();
        assert!(subjects.insert(subject), "two outcomes: {}", message.subject);
    }
    Some(subjects)
}
