//! Clients of three servers that store each message on all of them.

use std::thread;
use std::time::Duration;

use brigade::Key;
use brigade_cluster::{Cluster, Node};
use brigade_testkit::{BOUND, NatsCluster, NatsServer, Watchdog, repetitions};

static DOUBLE: Key<u64, u64> = Key::new("double/1", double);

fn double(number: u64) -> u64 {
    2 * number
}

fn connect(servers: &NatsCluster) -> Cluster {
    let lease = Duration::from_secs(15);
    Cluster::builder().url(servers.urls()).replicas(3).lease(lease).connect().unwrap()
}

/// Submits a batch of `tasks` items, and describes those without their value.
fn failures(cluster: &Cluster, batch: &str, tasks: u64) -> Vec<String> {
    let batch = cluster.batch(batch).unwrap();
    let submit = |n: u64| batch.submit(&n.to_string(), &DOUBLE, n).unwrap();
    let handles: Vec<_> = (0..tasks).map(submit).collect();
    let outcomes = handles.into_iter().map(brigade_cluster::ClusterHandle::wait);
    (0..)
        .zip(outcomes)
        .filter_map(|(n, outcome)| match outcome {
            Ok(value) => (value != 2 * n).then(|| format!("{n}: {value}")),
            Err(error) => Some(error.to_string()),
        })
        .collect()
}

#[test]
fn two_clients_of_one_batch_both_get_every_outcome() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a batch of two clients", 8 * BOUND);
    let servers = NatsCluster::start(3);
    let clusters = [connect(&servers), connect(&servers)];
    let node = Node::builder().url(servers.urls()).workers(2).register(&DOUBLE).start().unwrap();
    let failures = thread::scope(|scope| {
        let run = |cluster| scope.spawn(move || failures(cluster, "shared", repetitions(3_000)));
        clusters.each_ref().map(run).map(|client| client.join().unwrap())
    });
    assert_eq!(failures, [Vec::<String>::new(), Vec::new()]);
    node.drain();
    node.join().unwrap();
}
