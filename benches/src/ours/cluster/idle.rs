//! Measures clusters that have nothing to do: CPU time and messages of a node, a client and the
//! servers, in the first minute and in a later one.
//!
//! One with one server and one with three are watched at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use brigade::Link;
use brigade::cluster::{Cluster, RunningNode};
use brigade_testkit::{NatsServer, pause};

use super::node;
use crate::cluster::{Running, SERVERS, Servers};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::number;

/// Periods of the load in each of the two measurements, so that they are minutes by default.
const PERIODS: u32 = 6;

/// A start counts as a part of the first minute, which a shorter measurement cannot be scaled to.
const MINUTE: Duration = Duration::from_secs(60);

pub(in crate::ours) fn measure(link: Link, load: &Load, report: &mut Report) -> Outcome<()> {
    let window = Duration::from_secs(load.idle_seconds) * PERIODS;
    if window < MINUTE {
        return Err("shorter than a minute: run with --idle-seconds 10 or more".into());
    }
    let minutes = window.as_secs_f64() / MINUTE.as_secs_f64();
    let running = SERVERS.map(|servers| (servers, servers.start()));
    let mut clusters = Vec::new();
    let begin = Instant::now();
    for (servers, running) in running {
        clusters.push((servers, IdleCluster::start(servers, running?, link, load.workers)?));
    }
    let mut before: Vec<_> = clusters.iter().map(|_| [0.0; 5]).collect();
    for (index, name) in ["first", "later"].into_iter().enumerate() {
        let end = begin + window * (u32::try_from(index)? + 1);
        pause(end.saturating_duration_since(Instant::now()));
        for ((servers, cluster), before) in clusters.iter().zip(&mut before) {
            let usage = cluster.usage()?;
            for (figure, (after, before)) in FIGURES.iter().zip(usage.iter().zip(&*before)) {
                let name = format!("{}_{name}_{figure}", servers.name());
                report.record(&name, (after - before) / minutes);
            }
            *before = usage;
        }
    }
    Ok(())
}

/// The ends of the names of figures, in the order of [`IdleCluster::usage`].
const FIGURES: [&str; 5] = [
    "node_messages_count",
    "client_messages_count",
    "node_cpu_seconds",
    "client_cpu_seconds",
    "servers_cpu_seconds",
];

/// Dropped in the order of the fields.
struct IdleCluster {
    _client: Cluster,
    node: RunningNode,
    servers: Running,
    /// The threads of the node, whose workers have not started, and those of the client.
    node_threads: BTreeSet<String>,
    client_threads: BTreeSet<String>,
}

impl IdleCluster {
    fn start(replicas: Servers, servers: Running, link: Link, workers: usize) -> Outcome<Self> {
        let before = threads()?;
        let node = node(&servers, replicas, link, workers)?;
        let with_node = threads()?;
        let client = Cluster::builder().url(servers.urls()).replicas(replicas.replicas());
        let client = client.connect()?;
        Ok(Self {
            client_threads: threads()?.difference(&with_node).cloned().collect(),
            node_threads: with_node.difference(&before).cloned().collect(),
            _client: client,
            node,
            servers,
        })
    }

    fn usage(&self) -> Outcome<[f64; 5]> {
        let servers = self.servers.all();
        let [mut node, mut client] = [0; 2];
        for server in servers {
            for (name, messages) in connections(server)? {
                *if name == self.node.status().name { &mut node } else { &mut client } += messages;
            }
        }
        let own = Path::new("/proc/self/task");
        let mut of_servers = 0.0;
        for server in servers {
            let tasks = format!("/proc/{}/task", server.pid());
            of_servers += cpu_seconds(Path::new(&tasks), None)?;
        }
        Ok([
            number(node),
            number(client),
            cpu_seconds(own, Some(&self.node_threads))?,
            cpu_seconds(own, Some(&self.client_threads))?,
            of_servers,
        ])
    }
}

/// Returns the ids of the threads of this process.
fn threads() -> Outcome<BTreeSet<String>> {
    let entries = fs::read_dir("/proc/self/task")?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns the CPU time of the threads in a folder, or of some of them.
fn cpu_seconds(folder: &Path, only: Option<&BTreeSet<String>>) -> Outcome<f64> {
    let mut nanos = 0.0;
    for thread in fs::read_dir(folder)? {
        let thread = thread?;
        let id = thread.file_name().to_string_lossy().into_owned();
        if only.is_none_or(|only| only.contains(&id)) {
            let text = fs::read_to_string(thread.path().join("schedstat"))?;
            let first = text.split_whitespace().next().ok_or("schedstat is empty")?;
            nanos += first.parse::<f64>()?;
        }
    }
    Ok(nanos / 1e9)
}

/// Returns the names of the clients of a server, and the numbers of messages in both directions.
fn connections(server: &NatsServer) -> Outcome<Vec<(String, usize)>> {
    let answer = server.monitor("/connz").ok_or("the server does not answer")?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no body")?;
    let body: serde_json::Value = serde_json::from_str(body)?;
    let connections = body["connections"].as_array().ok_or("no connections")?;
    let read = |connection: &serde_json::Value| {
        let messages =
            |name| connection[name].as_u64().and_then(|count| usize::try_from(count).ok());
        let messages = messages("in_msgs").zip(messages("out_msgs"));
        let (received, sent) = messages.ok_or("no number of messages")?;
        Ok((connection["name"].as_str().unwrap_or_default().to_owned(), received + sent))
    };
    connections.iter().map(read).collect()
}
