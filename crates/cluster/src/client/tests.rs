//! Tests of the client against a real server and a node of few lines, which runs tasks in its own
//! thread.

mod fake_node;
mod lost;

use std::error::Error;
use std::io;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use brigade_task::{Executor, SubmitErrorKind, TaskErrorKind, TaskState};
use brigade_testkit::{BOUND, NatsServer, Watchdog, repetitions, wait_until};
use brigade_worker::Key;
use futures_util::future::join_all;

use super::*;
use crate::error::ClusterError;
use crate::names::{Names, Queue, TaskKey};
use crate::server::Server;
use crate::setup::QueueSettings;
use crate::tests::stale_server::{Consumers, StaleServer};
use fake_node::FakeNode;

static DOUBLE: Key<u64, u64> = Key::new("double/1", |number: u64| number * 2);
static LENGTH: Key<Vec<u8>, u64> = Key::new("length/1", |bytes: Vec<u8>| bytes.len() as u64);
static REPEAT: Key<u32, Vec<u8>> = Key::new("repeat/1", |count: u32| vec![7; count as usize]);

/// Fails if the argument is odd.
static FAILS: Key<u64, u64> = Key::named("fails-if-odd/1");

/// Runs a test with a server of its own, if the program is installed.
fn with_server(test: impl FnOnce(&mut NatsServer)) {
    if NatsServer::installed() {
        let _watchdog = Watchdog::new("a test of the client", 3 * BOUND);
        test(&mut NatsServer::start());
    }
}

fn connect(server: &NatsServer) -> Cluster {
    Cluster::connect(server.url()).unwrap()
}

#[test]
fn tasks_run_elsewhere_and_their_values_come_back() {
    with_server(|server| {
        let cluster = connect(server);
        let _node = FakeNode::start(&server.url());
        let handle = cluster.submit(&DOUBLE, 21).unwrap();
        assert_eq!(handle.wait().unwrap(), 42);
        let handles: Vec<_> = (0..2000).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        for (n, handle) in (0..).zip(handles) {
            assert_eq!(handle.wait().unwrap(), 2 * n);
        }
        let handles = (0..10).map(|n| cluster.submit_async(&DOUBLE, n));
        let handles = futures_executor(join_all(handles));
        let values = futures_executor(join_all(handles.into_iter().map(Result::unwrap)));
        assert_eq!(values.into_iter().map(Result::unwrap).sum::<u64>(), 90);
        let handle = cluster.try_submit(&DOUBLE, 4).unwrap();
        let (sender, receiver) = channel();
        handle.on_done(move |outcome| sender.send(outcome.unwrap()).unwrap());
        assert_eq!(receiver.recv_timeout(BOUND), Ok(8));
        assert_eq!(handle.state(), TaskState::Done);
    });
}

#[test]
fn threads_that_cancel_the_same_task_all_learn_of_it() {
    with_server(|server| {
        let cluster = connect(server);
        for number in 0..20 {
            let handle = cluster.submit(&DOUBLE, number).unwrap();
            let began = Instant::now();
            thread::scope(|scope| {
                for canceller in [(); 4].map(|()| scope.spawn(|| handle.cancel())) {
                    assert!(canceller.join().unwrap());
                }
            });
            assert!(began.elapsed() < backend::CANCEL_PATIENCE, "one of them was not woken");
        }
    });
}

#[test]
fn an_outcome_is_found_that_a_follower_has_not_heard_of() {
    with_server(|nats| {
        let url = nats.url();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(&url).await.unwrap();
            let settings = QueueSettings::new(Names::new(Queue::default()));
            let real = Server::open(client, settings).await.unwrap();
            let key = "b/item".parse::<TaskKey>().unwrap();
            let subject = real.names().outcome(&key);
            let stored = real.jetstream.publish(subject.clone(), "an outcome".into()).await;
            stored.unwrap().await.unwrap();
            let server = Server {
                jetstream: StaleServer::start(&url, Consumers::Done { delivered: 0 }).await,
                ..real
            };
            assert_eq!(server.outcome(&subject).await.unwrap().unwrap(), "an outcome");
            let other = server.names().outcome(&"b/other".parse().unwrap());
            assert_eq!(server.outcome(&other).await.unwrap(), None);
        });
    });
}

#[test]
fn maps_keep_the_order_and_their_failures() {
    with_server(|server| {
        let cluster = connect(server);
        let _node = FakeNode::start(&server.url());
        let doubled: Vec<u64> = cluster.map(&DOUBLE, 0..30_000).map(Result::unwrap).collect();
        assert_eq!(doubled, (0..30_000).map(|n| 2 * n).collect::<Vec<u64>>());
        let mut doubled: Vec<u64> =
            cluster.map_unordered(&DOUBLE, 0..500).chunk(7).map(Result::unwrap).collect();
        doubled.sort_unstable();
        assert_eq!(doubled, (0..500).map(|n| 2 * n).collect::<Vec<u64>>());
        assert_eq!(cluster.map(&DOUBLE, 0..3).count(), 3);
        let results: Vec<bool> = cluster.map(&FAILS, 0..50).map(|r| r.is_ok()).collect();
        assert_eq!(results, (0..50).map(|n| n % 2 == 0).collect::<Vec<bool>>());
        // An abandoned map leaves nothing in the queue.
        let mut map = cluster.map(&DOUBLE, 0..1_000_000).chunk(1).window(20);
        assert_eq!(map.next().unwrap().unwrap(), 0);
    });
}

#[test]
fn large_payloads_take_another_way() {
    with_server(|server| {
        let cluster = connect(server);
        let _node = FakeNode::start(&server.url());
        let large = vec![1_u8; 3 << 20];
        assert_eq!(cluster.submit(&LENGTH, large.clone()).unwrap().wait().unwrap(), 3 << 20);
        let value = cluster.submit(&REPEAT, 2 << 20).unwrap().wait().unwrap();
        assert_eq!((value.len(), value[0]), (2 << 20, 7));
        let lengths: Vec<u64> = cluster
            .map(&LENGTH, [large, vec![0; 5], vec![0; 200 << 10], vec![0; 200 << 10]])
            .chunk(4)
            .map(Result::unwrap)
            .collect();
        assert_eq!(lengths, [3 << 20, 5, 200 << 10, 200 << 10]);
    });
}

#[test]
fn a_cancelled_task_has_one_outcome_and_leaves_the_queue() {
    with_server(|server| {
        let cluster = connect(server);
        let handle = cluster.try_submit(&DOUBLE, 1).unwrap();
        assert_eq!(handle.state(), TaskState::Queued);
        assert!(handle.cancel());
        assert_eq!(handle.state(), TaskState::Cancelled);
        assert!(handle.wait().unwrap_err().is_cancelled());
        let handle = cluster.try_submit(&DOUBLE, 1).unwrap();
        assert!(handle.kill());
        assert_eq!(*handle.wait().unwrap_err().kind(), TaskErrorKind::Killed);
        drop(cluster.try_submit(&DOUBLE, 1).unwrap().abort_on_drop());
        fake_node::wait_until_empty(&server.url());
        let _node = FakeNode::start(&server.url());
        let mut handle = cluster.try_submit(&DOUBLE, 5).unwrap();
        let value = handle.wait_timeout(BOUND).unwrap().unwrap();
        assert_eq!(value, 10);
        assert!(!handle.cancel(), "it has a value");
    });
}

#[test]
fn a_cancellation_leaves_the_deliveries_of_others_alone() {
    with_server(|server| {
        let cluster = connect(server);
        let batch = cluster.batch("nightly").unwrap();
        let [_held, cancelled, _waits] =
            ["1", "2", "3"].map(|item| batch.submit(item, &DOUBLE, 1).unwrap());
        let url = server.url();
        wait_until("all are in the queue", BOUND, || fake_node::waiting(&url) == 3);
        fake_node::hold_one(&url);
        assert!(cancelled.cancel());
        wait_until("the second is gone", BOUND, || fake_node::waiting(&url) == 2);
        wait_until("one is held, one waits", BOUND, || fake_node::held_and_waiting(&url) == (1, 1));
    });
}

#[test]
fn a_full_queue_returns_the_argument_or_lets_it_wait() {
    with_server(|server| {
        let cluster = Cluster::builder().url(server.url()).max_tasks(2).connect().unwrap();
        let first = cluster.try_submit(&DOUBLE, 1).unwrap();
        let second = cluster.submit(&DOUBLE, 2).unwrap();
        let third = cluster.submit(&DOUBLE, 3).unwrap();
        let refused = cluster.try_submit(&DOUBLE, 9).unwrap_err();
        assert_eq!(*refused.kind(), SubmitErrorKind::Full);
        assert_eq!(refused.into_argument(), 9);
        let refused = cluster.submit_timeout(&DOUBLE, 8, Duration::from_millis(30)).unwrap_err();
        assert_eq!(*refused.kind(), SubmitErrorKind::TimedOut);
        assert_eq!(refused.into_argument(), 8);
        let _node = FakeNode::start(&server.url());
        let fourth = cluster.submit_timeout(&DOUBLE, 4, BOUND).unwrap();
        for (handle, value) in [(first, 2), (second, 4), (third, 6), (fourth, 8)] {
            assert_eq!(handle.wait().unwrap(), value);
        }
    });
}

#[test]
fn a_batch_is_continued_by_its_name() {
    with_server(|server| {
        let cluster = connect(server);
        let batch = cluster.batch("nightly").unwrap();
        assert!(!batch.is_continued());
        let _lost = batch.submit("waits", &DOUBLE, 8).unwrap();
        let node = FakeNode::start(&server.url());
        assert_eq!(batch.submit("done", &DOUBLE, 4).unwrap().wait().unwrap(), 8);
        let doubled: Vec<u64> = batch.map(&DOUBLE, 0..50).map(Result::unwrap).collect();
        assert_eq!(doubled.len(), 50);
        let twice = batch.submit("done", &DOUBLE, 4).unwrap();
        assert_eq!(twice.wait().unwrap(), 8);
        let runs = node.stop();
        drop(cluster);

        let cluster = connect(server);
        let batch = cluster.batch("nightly").unwrap();
        assert!(batch.is_continued());
        assert_eq!(batch.submit("done", &DOUBLE, 4).unwrap().wait().unwrap(), 8);
        assert_eq!(batch.submit("waits", &DOUBLE, 8).unwrap().wait().unwrap(), 16);
        let again: Vec<u64> = batch.map(&DOUBLE, 0..50).chunk(3).map(Result::unwrap).collect();
        assert_eq!(again, doubled);
        assert!(runs > 0, "everything was run by the first node");
        let error = batch.submit("done", &DOUBLE, 5).unwrap().wait().unwrap_err();
        assert!(error.to_string().contains("another input"), "{error}");
        let error = batch.map(&LENGTH, [vec![1]]).next().unwrap().unwrap_err();
        assert!(error.to_string().contains("double/1"), "{error}");
        assert!(matches!(cluster.batch("a.b"), Err(ClusterError::Name(_))));
        assert!(batch.submit("~1", &DOUBLE, 5).is_err());
    });
}

#[test]
fn received_outcomes_outside_of_batches_are_removed() {
    with_server(|server| {
        let url = server.url();
        let cluster = Cluster::builder().url(&url).lease(Duration::from_secs(1)).connect().unwrap();
        let _node = FakeNode::start(&url);
        let batch = cluster.batch("stays").unwrap();
        assert_eq!(batch.submit("one", &DOUBLE, 1).unwrap().wait().unwrap(), 2);
        let handles: Vec<_> = (0..100).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        for (n, handle) in (0..).zip(handles) {
            assert_eq!(handle.wait().unwrap(), 2 * n);
        }
        // That of the batch, and the last one.
        wait_until("the outcomes are removed", BOUND, || fake_node::outcomes(&url) == 2);
        assert_eq!(cluster.submit(&DOUBLE, 7).unwrap().wait().unwrap(), 14);
        drop(cluster);
        assert_eq!(fake_node::outcomes(&url), 1);
    });
}

#[test]
fn outcomes_of_many_clients_are_removed() {
    with_server(|server| {
        let (url, lease) = (server.url(), Duration::from_secs(1));
        let connect = |_| Cluster::builder().url(&url).lease(lease).connect().unwrap();
        let clusters: Vec<_> = (0..10).map(connect).collect();
        let _node = FakeNode::start(&url);
        let submit = |cluster: &Cluster| cluster.submit(&DOUBLE, 1).unwrap();
        let handles: Vec<_> = (0..20).flat_map(|_| clusters.iter().map(submit)).collect();
        for handle in handles {
            assert_eq!(handle.wait().unwrap(), 2);
        }
        // The last one of each client.
        wait_until("the outcomes are removed", BOUND, || fake_node::outcomes(&url) == 10);
    });
}

#[test]
fn a_server_that_is_killed_and_restarted_loses_nothing() {
    let tasks = repetitions(20_000);
    with_server(|server| {
        let lease = Duration::from_secs(1);
        let cluster = Cluster::builder().url(server.url()).lease(lease).connect().unwrap();
        let _node = FakeNode::start(&server.url());
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..tasks {
                    sender.send(cluster.submit(&DOUBLE, n).unwrap()).unwrap();
                }
                drop(sender);
            });
            let mut n = 0;
            for handle in receiver {
                if n == tasks / 4 {
                    server.kill();
                    assert!(cluster_is_down(&cluster));
                    let refused = cluster.try_submit(&DOUBLE, 1).unwrap_err();
                    assert!(matches!(refused.kind(), SubmitErrorKind::Disconnected { .. }));
                    server.restart();
                }
                assert_eq!(handle.wait().unwrap(), 2 * n);
                n += 1;
            }
            assert_eq!(n, tasks);
        });
    });
}

#[test]
fn a_closed_cluster_reports_what_it_does_not_know() {
    with_server(|server| {
        let cluster = connect(server);
        let handle = cluster.submit(&DOUBLE, 1).unwrap();
        drop(cluster);
        let error = handle.wait().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::Disconnected { .. }), "{error}");
        // It was submitted nevertheless.
        assert_eq!(fake_node::waiting(&server.url()), 1);
    });
    let error = Cluster::connect("nats://127.0.0.1:1").unwrap_err();
    assert!(matches!(error, ClusterError::Connect { .. }), "{error}");
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let mut refused = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    assert!(refused.any(|error| error.kind() == io::ErrorKind::ConnectionRefused), "{error:?}");
    assert!(!error.to_string().contains("refused"), "the text repeats its source: {error}");
}

#[test]
fn a_client_connects_without_blocking_its_thread() {
    with_server(|server| {
        let _node = FakeNode::start(&server.url());
        let cluster = Cluster::builder().url(server.url()).connect_async();
        let cluster = futures_executor(cluster).unwrap();
        assert_eq!(cluster.submit(&DOUBLE, 21).unwrap().wait().unwrap(), 42);
    });
    let nobody = Cluster::builder().url("nats://127.0.0.1:1").connect_async();
    let error = futures_executor(nobody).unwrap_err();
    assert!(matches!(error, ClusterError::Connect { .. }), "{error}");
}

#[test]
fn the_same_code_runs_on_a_cluster_and_on_a_pool() {
    fn double(executor: &impl Executor) -> u64 {
        let handle = executor.submit(&DOUBLE, 2).unwrap();
        handle.wait().unwrap()
    }
    with_server(|server| {
        let cluster = connect(server);
        let _node = FakeNode::start(&server.url());
        assert_eq!(double(&cluster), 4);
    });
}

fn cluster_is_down(cluster: &Cluster) -> bool {
    wait_until("the link is down", BOUND, || !cluster.is_connected());
    true
}

fn futures_executor<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The silence after which consumers are replaced is longer than a heartbeat.
#[test]
fn an_idle_client_keeps_its_consumer() {
    with_server(|server| {
        let cluster = connect(server);
        let mut handle = cluster.submit(&DOUBLE, 1).unwrap();
        assert!(handle.wait_timeout(Duration::from_secs(3)).is_none());
        assert_eq!(fake_node::consumers_of_outcomes(&server.url()), 1);
        let _node = FakeNode::start(&server.url());
        assert_eq!(handle.wait_timeout(BOUND).unwrap().unwrap(), 2);
    });
}
