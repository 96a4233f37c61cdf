//! A node of few lines: one thread, one lane, no workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{self, Context};
use brigade_codec::{decode, encode};
use brigade_task::{TaskError, TaskErrorKind};
use brigade_testkit::{BOUND, wait_until};
use bytes::Bytes;
use futures_util::StreamExt;

use crate::connection::LinkEvent;
use crate::endpoint::Endpoint;
use crate::input_hash::input_hash;
use crate::message::{Items, ItemsBuilder, OutcomeHead, OutcomeMessage, TaskMessage};
use crate::names::{Lane, Names, Priority, Queue};
use crate::payload::Payloads;
use crate::publisher::{Publication, Publisher};
use crate::requirements::Class;
use crate::setup::QueueSettings;

/// A node in a thread of the test. It ends when it is dropped.
pub(super) struct FakeNode {
    is_stopped: Arc<AtomicBool>,
    runs: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl FakeNode {
    pub(super) fn start(url: &str) -> Self {
        let (is_stopped, runs) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (url, stop, count) = (url.to_owned(), Arc::clone(&is_stopped), Arc::clone(&runs));
        let thread = std::thread::spawn(move || block_on(run(&url, &stop, &count)));
        Self { is_stopped, runs, thread: Some(thread) }
    }

    /// Ends the node and returns the number of messages that it has run.
    pub(super) fn stop(self) -> u64 {
        let runs = Arc::clone(&self.runs);
        drop(self);
        runs.load(Ordering::Relaxed)
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok(), "the node has panicked");
        }
    }
}

async fn run(url: &str, is_stopped: &AtomicBool, runs: &AtomicU64) {
    let mut connection = Endpoint::at(url).connect("fake node").await.unwrap();
    let jetstream = jetstream::new(connection.client.clone());
    let names = names();
    let settings =
        QueueSettings { lease: Duration::from_secs(1), ..QueueSettings::new(names.clone()) };
    let payloads = settings.ensure(&jetstream).await.unwrap();
    let lane = Lane { priority: Priority::Normal, class: Class::default() };
    let consumer = settings.ensure_lane(&jetstream, &lane).await.unwrap();
    let mut publisher = Publisher::new(connection.client.clone(), |_| false).await.unwrap();
    let mut answers = Vec::new();
    while !is_stopped.load(Ordering::Relaxed) {
        for message in fetch(&consumer).await {
            runs.fetch_add(1, Ordering::Relaxed);
            let task = TaskMessage::from_bytes(&message.payload).unwrap();
            let subject = names.outcome(&task.head.key).into();
            let items = match payloads.get(&task.body).await {
                Ok(items) => items,
                // The outcome was recorded, but the lease ended before the acknowledgement.
                Err(_) if message.info().unwrap().delivered > 1 => {
                    message.ack().await.unwrap();
                    continue;
                }
                Err(error) => panic!("{error}"),
            };
            let outcome = execute(&task, items, &payloads).await;
            let mut headers = HeaderMap::new();
            headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
            let payload = outcome.to_bytes().unwrap();
            publisher.publish(message, Publication { subject, headers, payload }).await;
        }
        while publisher.len() > 0 {
            tokio::select! {
                event = connection.next_event() => publisher.on_link(event == LinkEvent::Up).await,
                () = publisher.answers(&mut answers) => {}
            }
            for answer in answers.drain(..) {
                answer.tag.ack().await.unwrap();
            }
        }
    }
}

async fn fetch(consumer: &PullConsumer) -> Vec<jetstream::Message> {
    let batch = consumer.fetch().max_messages(256).expires(Duration::from_millis(200));
    let Ok(messages) = batch.messages().await else { return Vec::new() };
    messages.filter_map(async |message| message.ok()).collect().await
}

async fn execute(task: &TaskMessage, items: Items, payloads: &Payloads) -> OutcomeMessage {
    let mut outcomes = ItemsBuilder::default();
    let mut head = OutcomeHead::new("fake node", task.head.items);
    for item in items {
        let item = item.unwrap();
        head.input_hashes.push(input_hash(&item));
        match call(&task.head.name, &item) {
            Ok(value) => outcomes.push_value(&value),
            Err(error) => outcomes.push_error(&error),
        }
    }
    assert_eq!(outcomes.count(), task.head.items);
    head.run_time = Duration::from_micros(2) * task.head.items;
    if !task.head.key.origin.is_batch() {
        head.input_hashes.clear();
    }
    let items: Items = outcomes.finish();
    let body = payloads.put(&task.head.key, items).await.unwrap();
    payloads.remove(&task.body).await;
    OutcomeMessage { head, body }
}

fn call(name: &str, argument: &Bytes) -> Result<Vec<u8>, TaskError> {
    let number = || decode::<u64>(argument).unwrap();
    match name {
        "double/1" => Ok(encoded(&(2 * number()))),
        "length/1" => Ok(encoded(&(decode::<Vec<u8>>(argument).unwrap().len() as u64))),
        "repeat/1" => Ok(encoded(&vec![7_u8; decode::<u32>(argument).unwrap() as usize])),
        "fails-if-odd/1" if number() % 2 == 0 => Ok(encoded(&number())),
        _ => {
            let message = format!("no {name} here");
            Err(TaskError::of(TaskErrorKind::Function { message }, None, 1, None))
        }
    }
}

fn encoded<T: serde::Serialize + 'static>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(value, &mut bytes, 16 << 20).unwrap();
    bytes
}

/// Waits until no task is in the queue.
pub(super) fn wait_until_empty(url: &str) {
    wait_until("the queue is empty", BOUND, || waiting(url) == 0);
}

/// Returns the number of tasks in the queue.
pub(super) fn waiting(url: &str) -> u64 {
    block_on(async {
        let mut stream = context(url).await.get_stream(names().tasks_stream()).await.unwrap();
        stream.info().await.unwrap().state.messages
    })
}

/// Takes a task as a node does, and does nothing with it.
pub(super) fn hold_one(url: &str) {
    // The server says that the consumer exists before it listens to requests at it, and drops them
    // until then.
    let expiry = Duration::from_secs(5);
    let take = async || {
        let consumer = consumer(url).await;
        let batch = consumer.fetch().max_messages(1).expires(expiry).messages().await.unwrap();
        batch.filter_map(async |message| message.ok()).count().await == 1
    };
    wait_until("a task is held", 2 * BOUND, || block_on(take()));
}

/// Returns how many tasks nodes hold, and how many wait for one.
pub(super) fn held_and_waiting(url: &str) -> (usize, u64) {
    block_on(async {
        let mut consumer = consumer(url).await;
        let info = consumer.info().await.unwrap();
        (info.num_ack_pending, info.num_pending)
    })
}

async fn consumer(url: &str) -> PullConsumer {
    let lane = Lane { priority: Priority::Normal, class: Class::default() };
    QueueSettings::new(names()).ensure_lane(&context(url).await, &lane).await.unwrap()
}

/// Returns the number of outcomes and manifests that are stored.
pub(super) fn outcomes(url: &str) -> u64 {
    block_on(async {
        let mut stream = context(url).await.get_stream(names().outcomes_stream()).await.unwrap();
        stream.info().await.unwrap().state.messages
    })
}

/// Returns the number of consumers of outcomes.
pub(super) fn consumers_of_outcomes(url: &str) -> usize {
    block_on(async {
        let mut stream = context(url).await.get_stream(names().outcomes_stream()).await.unwrap();
        stream.info().await.unwrap().state.consumer_count
    })
}

async fn context(url: &str) -> Context {
    jetstream::new(Endpoint::at(url).connect("test").await.unwrap().client)
}

fn names() -> Names {
    Names::new(Queue::default())
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
