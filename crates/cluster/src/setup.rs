//! Creates the streams, the bucket and the consumers of a queue, and checks those that exist.
//!
//! Clients and nodes do this at each start, in any order and at the same time. A stream that exists
//! is used as it is, unless a promise would break.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{self, AckPolicy, PullConsumer};
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{
    Config, ConsumerErrorKind, DiscardPolicy, RetentionPolicy, Stream,
};
use async_nats::jetstream::{Context, ErrorCode, object_store};
use brigade_codec::chain;
use futures_util::TryStreamExt;

use crate::error::ClusterError;
use crate::names::{Lane, Names};
use crate::payload::Payloads;

/// From this number of servers on, the streams of a queue should have replicas.
const SERVERS_WITH_REPLICAS: usize = 3;

/// The oldest server with named consumers and direct gets.
const OLDEST_SERVER: (i64, i64, i64) = (2, 9, 0);

/// The default of nats-server. A message has up to 256 KiB of items, and a dead letter more.
const SMALLEST_MAX_PAYLOAD: usize = 1 << 20;

/// Period in which a task that is published again is recognized by its id. A client retries for
/// seconds.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);

/// Number of pulls that may wait at one consumer: one for each node.
const MAX_WAITING: i64 = 16_384;

/// Minimum life of payloads in the object store, where tasks may wait longer than outcomes are
/// kept.
const PAYLOAD_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Period in which servers that start or elect a leader answer with errors that pass, and the pause
/// between two requests. An election takes up to 15 s on a quiet machine, and may have to be
/// repeated.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(250);

/// Settings of a queue's streams. Those of the first client or node count.
#[derive(Debug, Clone)]
pub(crate) struct QueueSettings {
    pub(crate) names: Names,
    /// `true` if streams that do not exist are created.
    pub(crate) creates: bool,
    /// Number of servers that store each message.
    pub(crate) replicas: usize,
    /// Maximum number of tasks that are not done.
    pub(crate) max_tasks: i64,
    /// Period for which outcomes and histories are kept.
    pub(crate) outcome_life: Duration,
    /// Time after which a node that is silent has lost its tasks.
    pub(crate) lease: Duration,
}

impl QueueSettings {
    pub(crate) fn new(names: Names) -> Self {
        Self {
            names,
            creates: true,
            replicas: 1,
            max_tasks: 1_000_000,
            outcome_life: Duration::from_secs(24 * 3600),
            lease: Duration::from_secs(10),
        }
    }

    /// Checks the server, and creates everything that is missing except lanes. Returns the object
    /// store.
    pub(crate) async fn ensure(&self, jetstream: &Context) -> Result<Payloads, ClusterError> {
        check_server(jetstream)?;
        let tasks = self.stream(self.names.tasks_stream(), vec![self.names.all("task")]);
        let tasks = Config {
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            max_messages: self.max_tasks,
            duplicate_window: DUPLICATE_WINDOW,
            ..tasks
        };
        let outcomes = self.stream(self.names.outcomes_stream(), vec![self.names.all("outcome")]);
        let outcomes = Config { max_age: self.outcome_life, ..outcomes };
        let history = vec![self.names.all("returned"), self.names.all("dead")];
        let history = self.stream(self.names.history_stream(), history);
        let history = Config { max_age: self.outcome_life, ..history };
        if self.creates {
            for wanted in [tasks, outcomes, history] {
                ensure_stream(jetstream, wanted).await?;
            }
        } else {
            self.require(jetstream, &tasks.name).await?;
        }
        // Also of a queue that exists: whoever created it may have been interrupted.
        self.ensure_bucket(jetstream).await
    }

    /// Checks that the queue exists, by the first of its streams.
    async fn require(&self, jetstream: &Context, stream: &str) -> Result<(), ClusterError> {
        retry("look for the queue", PATIENCE, async || match existing(jetstream, stream).await? {
            Some(_) => Ok(()),
            None => Err(Retry::Never(format!(
                "the queue `{}` does not exist: check the name, or start a client or a node",
                self.names.queue()
            ))),
        })
        .await
    }

    /// Returns the settings that all streams share.
    fn stream(&self, name: String, subjects: Vec<String>) -> Config {
        Config {
            name,
            subjects,
            num_replicas: self.replicas,
            allow_direct: true,
            ..Config::default()
        }
    }

    async fn ensure_bucket(&self, jetstream: &Context) -> Result<Payloads, ClusterError> {
        let bucket = self.names.payloads_bucket();
        let wanted = object_store::Config {
            bucket: bucket.clone(),
            max_age: (2 * self.outcome_life).max(PAYLOAD_LIFE),
            num_replicas: self.replicas,
            ..object_store::Config::default()
        };
        let bucket = retry("create the bucket for payloads", PATIENCE, async || {
            if let Ok(bucket) = jetstream.get_object_store(&bucket).await {
                return Ok(bucket);
            }
            let created = jetstream.create_object_store(wanted.clone()).await;
            created.map_err(|error| Retry::Later(chain(&error)))
        });
        let bucket = bucket.await?;
        Payloads::of(jetstream, wanted.bucket, bucket).await
    }

    /// Returns the consumer of a lane, which is created if it is missing.
    pub(crate) async fn ensure_lane(
        &self,
        jetstream: &Context,
        lane: &Lane,
    ) -> Result<PullConsumer, ClusterError> {
        let (stream, name) = (self.names.tasks_stream(), lane.consumer());
        let wanted = consumer::pull::Config {
            durable_name: Some(name.clone()),
            filter_subject: self.names.lane_filter(lane),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.lease,
            // The number of deaths is limited by nodes, because the server would leave such a
            // message in the stream for ever.
            max_deliver: -1,
            max_ack_pending: self.max_tasks,
            max_waiting: MAX_WAITING,
            ..consumer::pull::Config::default()
        };
        retry("create a consumer", PATIENCE, async || {
            let found = jetstream.get_consumer_from_stream(&name, &stream).await;
            match found {
                Ok(consumer) => return Ok(consumer),
                Err(error) => match error.kind() {
                    ConsumerErrorKind::JetStream(error)
                        if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND => {}
                    _ => return Err(Retry::Later(chain(&error))),
                },
            }
            let created = jetstream.create_consumer_on_stream(wanted.clone(), &stream).await;
            created.map_err(|error| Retry::Later(chain(&error)))
        })
        .await
    }

    /// Returns the lanes that exist.
    pub(crate) async fn lanes(&self, jetstream: &Context) -> Result<Vec<Lane>, ClusterError> {
        let stream = self.names.tasks_stream();
        let names: Vec<String> = retry("list the consumers", PATIENCE, async || {
            let stream = jetstream.get_stream_no_info(&stream).await;
            let stream = stream.map_err(|error| Retry::Later(chain(&error)))?;
            stream.consumer_names().try_collect().await.map_err(|e| Retry::Later(chain(&e)))
        })
        .await?;
        Ok(names.iter().filter_map(|name| Lane::of_consumer(name)).collect())
    }
}

/// Checks that the server has everything that this crate needs. Warns of a cluster of servers that
/// may lose tasks.
fn check_server(jetstream: &Context) -> Result<(), ClusterError> {
    let client = jetstream.client();
    let info = client.server_info();
    let unsupported = |reason| Err(ClusterError::Unsupported { reason });
    let (major, minor, patch) = OLDEST_SERVER;
    if !client.is_server_compatible(major, minor, patch) {
        let reason =
            format!("it has version {}, and {major}.{minor}.{patch} is the oldest", info.version);
        return unsupported(reason);
    }
    if !info.jetstream {
        return unsupported("JetStream is off: start it with `-js`".to_owned());
    }
    if info.max_payload < SMALLEST_MAX_PAYLOAD {
        let reason = format!(
            "its `max_payload` is {}, and at least {SMALLEST_MAX_PAYLOAD} is needed",
            info.max_payload
        );
        return unsupported(reason);
    }
    // See `docs/cluster.md`.
    if info.connect_urls.len() >= SERVERS_WITH_REPLICAS && !client.is_server_compatible(2, 10, 0) {
        tracing::warn!(
            version = info.version,
            "when servers of this version die one after the other, tasks that several of them hold \
             may be lost: use a newer version"
        );
    }
    Ok(())
}

/// Checks the stream that exists, or creates it. Only the latter needs the permission for that.
async fn ensure_stream(jetstream: &Context, wanted: Config) -> Result<(), ClusterError> {
    let found = retry("create a stream", PATIENCE, async || {
        if let Some(found) = existing(jetstream, &wanted.name).await? {
            return Ok(found);
        }
        let error = match jetstream.create_stream(wanted.clone()).await {
            Ok(created) => return Ok(created),
            Err(error) => error,
        };
        Err(match error.kind() {
            CreateStreamErrorKind::JetStream(error) => match error.error_code() {
                ErrorCode::STREAM_NAME_EXIST => Retry::Later(error.to_string()),
                ErrorCode::STREAM_SUBJECT_OVERLAP => overlapping(jetstream, &wanted).await,
                code if is_final(code) => Retry::Never(error.to_string()),
                _ => Retry::Later(error.to_string()),
            },
            _ => Retry::Later(chain(&error)),
        })
    })
    .await?;
    warn_of_few_replicas(jetstream, &found);
    check_stream(&found, &wanted)
}

/// Warns of a queue that stands still when one of many servers dies.
fn warn_of_few_replicas(jetstream: &Context, stream: &Stream) {
    let info = stream.cached_info();
    // A server names the others of its cluster.
    let servers = jetstream.client().server_info().connect_urls.len();
    let is_clustered = info.cluster.as_ref().is_some_and(|cluster| cluster.name.is_some());
    if is_clustered && servers >= SERVERS_WITH_REPLICAS && info.config.num_replicas < 3 {
        tracing::warn!(
            stream = info.config.name,
            replicas = info.config.num_replicas,
            "the servers of a cluster hold this stream on few of them: if one dies, the queue may \
             stand still or be lost; create the queue with 3 replicas"
        );
    }
}

/// Returns a stream if it exists.
pub(crate) async fn existing(jetstream: &Context, name: &str) -> Result<Option<Stream>, Retry> {
    let error = match jetstream.get_stream(name).await {
        Ok(found) => return Ok(Some(found)),
        Err(error) => error,
    };
    match error.kind() {
        GetStreamErrorKind::JetStream(error) => match error.error_code() {
            ErrorCode::STREAM_NOT_FOUND => Ok(None),
            code if is_final(code) => Err(Retry::Never(error.to_string())),
            _ => Err(Retry::Later(error.to_string())),
        },
        _ => Err(Retry::Later(chain(&error))),
    }
}

/// Handles a stream whose subjects belong to another one, or to itself: when two programs create
/// the same stream at once, the server (2.9.10) may say to one of them that subjects overlap.
async fn overlapping(jetstream: &Context, wanted: &Config) -> Retry {
    for subject in &wanted.subjects {
        // Without an answer, nothing is known of the subject.
        let Ok(owner) = jetstream.stream_by_subject(subject).await else { continue };
        if owner != wanted.name {
            return Retry::Never(format!(
                "the stream {owner} stores {subject}: delete it, or use another queue"
            ));
        }
    }
    Retry::Later("the subjects of the stream overlap with its own".to_owned())
}

/// Returns `true` if waiting does not help.
fn is_final(code: ErrorCode) -> bool {
    [
        ErrorCode::STREAM_INVALID_CONFIG,
        ErrorCode::STREAM_REPLICAS_NOT_SUPPORTED,
        ErrorCode::STORAGE_RESOURCES_EXCEEDED,
        ErrorCode::MAXIMUM_STREAMS_LIMIT,
    ]
    .contains(&code)
}

/// Refuses a stream with which a promise would break. Limits and replicas are the owner's choice.
fn check_stream(found: &Stream, wanted: &Config) -> Result<(), ClusterError> {
    let actual = &found.cached_info().config;
    let mut subjects = (actual.subjects.clone(), wanted.subjects.clone());
    subjects.0.sort();
    subjects.1.sort();
    let fields = [
        ("retention", format!("{:?}", actual.retention), format!("{:?}", wanted.retention)),
        ("discard", format!("{:?}", actual.discard), format!("{:?}", wanted.discard)),
        ("subjects", subjects.0.join(" "), subjects.1.join(" ")),
        ("no_ack", actual.no_ack.to_string(), wanted.no_ack.to_string()),
        ("allow_direct", actual.allow_direct.to_string(), wanted.allow_direct.to_string()),
    ];
    for (field, found, needed) in fields {
        if found != needed {
            let stream = wanted.name.clone();
            return Err(ClusterError::Setting { stream, field, found, needed });
        }
    }
    Ok(())
}

/// Reason why a request to the server failed, and whether it may be sent again.
pub(crate) enum Retry {
    Later(String),
    Never(String),
}

/// Sends requests until one succeeds: for some seconds after its start, or after the death of a
/// leader, a server refuses all of them.
pub(crate) async fn retry<T>(
    operation: &'static str,
    patience: Duration,
    attempt: impl AsyncFn() -> Result<T, Retry>,
) -> Result<T, ClusterError> {
    let begun = Instant::now();
    loop {
        match attempt().await {
            Ok(value) => return Ok(value),
            Err(Retry::Never(reason)) => return Err(ClusterError::server(operation, reason)),
            Err(Retry::Later(reason)) if begun.elapsed() >= patience => {
                return Err(ClusterError::server(operation, reason));
            }
            Err(Retry::Later(reason)) => {
                tracing::debug!(operation, reason, "the server refused a request; trying again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
