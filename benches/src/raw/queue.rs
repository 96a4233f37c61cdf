//! Measures the whole way of a task through NATS JetStream without a pool: published by a client,
//! fetched by a node, answered with a result of which there can be only one, acknowledged, and
//! delivered to the client.
//!
//! Client and node are tasks of one runtime with two threads and a connection each. Nothing is
//! serialized, and no worker process is involved: no task queue over this transport can be faster.

use std::time::Duration;

use async_nats::header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE;
use async_nats::jetstream::consumer::{AckPolicy, pull, push};
use async_nats::jetstream::stream::{self, RetentionPolicy};
use async_nats::jetstream::{self, Context};
use async_nats::{HeaderMap, connect};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use super::objects;
use crate::cluster::{self, ITEMS, Servers};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{busy_trips, record_trips, throughput};

/// Maximum number of tasks that are published and not acknowledged.
const PUBLISHED: usize = 1_000;

/// Maximum number of tasks that the node holds.
const HELD: usize = 256;

/// Bytes of an argument, and of a result.
const SIZE: usize = 100;

pub(super) fn measure(load: &Load, report: &mut Report) {
    for servers in cluster::SERVERS {
        let name = servers.name();
        report.attempt(&format!("{name}_each_per_second"), || {
            let queue = Queue::start(servers, SIZE)?;
            throughput(load, cluster::MAX, |tasks| queue.run(tasks))
        });
        report.attempt(&format!("{name}_map_per_second"), || {
            let queue = Queue::start(servers, SIZE * ITEMS)?;
            throughput(load, cluster::MAX_MAPPED, |tasks| queue.run(tasks.div_ceil(ITEMS)))
        });
        let queue = Queue::start(servers, SIZE);
        let trips = queue.and_then(|queue| busy_trips(load, || queue.run(1)));
        record_trips(report, &format!("{name}_round_trip"), trips);
        report.attempt(&format!("{name}_payloads_per_second"), || {
            objects::measure(servers, load.object_count)
        });
    }
}

/// The streams, and the node.
struct Queue {
    // Dropped before the servers, because it ends the connections.
    runtime: Runtime,
    client: Context,
    payload: Vec<u8>,
    results: tokio::sync::Mutex<push::Ordered>,
    node: JoinHandle<()>,
    _servers: cluster::Running,
}

impl Queue {
    fn start(servers: Servers, size: usize) -> Outcome<Self> {
        let running = servers.start()?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (client, results, node) = runtime.block_on(async {
            let client = jetstream::new(connect(addresses(&running)).await?);
            let replicas = servers.replicas();
            let tasks = client
                .create_stream(stream::Config {
                    name: "TASKS".into(),
                    subjects: vec!["task".into()],
                    retention: RetentionPolicy::WorkQueue,
                    num_replicas: replicas,
                    ..Default::default()
                })
                .await?;
            let results = client
                .create_stream(stream::Config {
                    name: "RESULTS".into(),
                    subjects: vec!["result.>".into()],
                    num_replicas: replicas,
                    ..Default::default()
                })
                .await?;
            let consumer = tasks
                .create_consumer(pull::Config {
                    durable_name: Some("node".into()),
                    ack_policy: AckPolicy::Explicit,
                    max_ack_pending: 10_000,
                    ..Default::default()
                })
                .await?;
            let name = consumer.cached_info().name.clone();
            let deliver_subject = client.client().new_inbox();
            let ordered = push::OrderedConfig { deliver_subject, ..Default::default() };
            let results = results.create_consumer(ordered).await?.messages().await?;
            let context = jetstream::new(connect(addresses(&running)).await?);
            let consumer = context.get_consumer_from_stream(name, "TASKS").await?;
            let node = tokio::spawn(async move {
                // The node ends with the runtime.
                if let Err(error) = node(context, consumer, size).await {
                    eprintln!("the node has ended: {error}");
                }
            });
            Outcome::Ok((client, results, node))
        })?;
        let results = tokio::sync::Mutex::new(results);
        Ok(Self { runtime, client, payload: vec![1; size], results, node, _servers: running })
    }

    /// Publishes tasks and waits for their results.
    fn run(&self, tasks: usize) -> Outcome<()> {
        if self.node.is_finished() {
            return Err("the node has ended".into());
        }
        self.runtime.block_on(async {
            let (publish, receive) = (self.publish(tasks), self.receive(tasks));
            let (published, received) = tokio::join!(publish, receive);
            published.and(received)
        })
    }

    async fn publish(&self, tasks: usize) -> Outcome<()> {
        let mut unacknowledged = FuturesUnordered::new();
        for _ in 0..tasks {
            let sent = self.client.publish("task", self.payload.clone().into()).await?;
            unacknowledged.push(sent.into_future());
            if unacknowledged.len() >= PUBLISHED
                && let Some(acknowledged) = unacknowledged.next().await
            {
                acknowledged?;
            }
        }
        while let Some(acknowledged) = unacknowledged.next().await {
            acknowledged?;
        }
        Ok(())
    }

    async fn receive(&self, tasks: usize) -> Outcome<()> {
        let mut results = self.results.lock().await;
        for _ in 0..tasks {
            let next = tokio::time::timeout(Duration::from_secs(20), results.next()).await;
            next.map_err(|_| "no result for 20 s")?.ok_or("the results have ended")??;
        }
        Ok(())
    }
}

pub(super) fn addresses(servers: &cluster::Running) -> Vec<String> {
    servers.urls().split(',').map(str::to_owned).collect()
}

/// Answers tasks until the connection ends.
async fn node(
    context: Context,
    consumer: jetstream::consumer::Consumer<pull::Config>,
    size: usize,
) -> Outcome<()> {
    let mut messages = consumer.stream().max_messages_per_batch(HELD).messages().await?;
    let mut open = FuturesUnordered::new();
    let mut number = 0_u64;
    loop {
        tokio::select! {
            Some(message) = messages.next(), if open.len() < HELD => {
                let message = message?;
                number += 1;
                let mut headers = HeaderMap::new();
                headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, "0");
                let subject = format!("result.{number}");
                let result = vec![2_u8; size].into();
                let sent = context.publish_with_headers(subject, headers, result).await?;
                open.push(async move {
                    sent.await?;
                    message.ack().await
                });
            }
            Some(done) = open.next(), if !open.is_empty() => done.map_err(|error| error.to_string())?,
            else => return Ok(()),
        }
    }
}
