//! Measures tasks that travel through servers of NATS JetStream: client and nodes are in this
//! process, and the nodes' workers are processes as always.

mod idle;
mod payloads;

pub(super) use idle::measure as measure_idle;

use std::time::Duration;

use brigade::cluster::{Cluster, Node, RunningNode};
use brigade::{Key, Link, Pool};

use super::balance::{EVEN, lasts};
use super::noop;
use crate::cluster::{MAX, MAX_MAPPED, Running, SERVERS, Servers};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{busy_trips, number, record_trips, throughput, timed};

static NOOP: Key<(), ()> = Key::new("bench/noop", noop);
static NOTHING: Key<u64, ()> = Key::new("bench/nothing", |_| ());
static LASTS: Key<Duration, ()> = Key::new("bench/lasts", lasts);
static ECHO: Key<Vec<u8>, Vec<u8>> = Key::new("bench/echo", |payload: Vec<u8>| payload);

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    for servers in SERVERS {
        let name = servers.name();
        report.attempt(&format!("{name}_each_per_second"), || {
            let queue = Queue::start(servers, link, &[load.workers])?;
            throughput(load, MAX, |tasks| queue.each(&NOOP, &(), tasks))
        });
        report.attempt(&format!("{name}_map_per_second"), || {
            let queue = Queue::start(servers, link, &[load.workers])?;
            throughput(load, MAX_MAPPED, |tasks| queue.map(tasks))
        });
        let queue = Queue::start(servers, link, &[load.workers]);
        let trips = queue.and_then(|queue| busy_trips(load, || queue.each(&NOOP, &(), 1)));
        record_trips(report, &format!("{name}_round_trip"), trips);
        report.attempt(&format!("{name}_even_percent"), || even(servers, link, load));
        let queue = Queue::start(servers, link, &[load.workers]);
        payloads::measure(queue, name, load.object_count, report);
    }
}

/// Returns the ideal time of tasks of 10 ms on two nodes with one worker each, as a percentage of
/// the measured time.
fn even(servers: Servers, link: Link, load: &Load) -> Outcome<f64> {
    let queue = Queue::cold(servers, link, &[1, 1])?;
    // Long enough for the nodes to learn that these tasks are not brief.
    queue.each(&LASTS, &EVEN, 20)?;
    let (time, ()) = timed(|| queue.each(&LASTS, &EVEN, load.even_tasks))?;
    let ideal = EVEN.as_secs_f64() * number(load.even_tasks) / 2.0;
    Ok(100.0 * ideal / time.as_secs_f64())
}

/// A queue with nodes. Dropped in the order of the fields.
struct Queue {
    cluster: Cluster,
    nodes: Vec<RunningNode>,
    _servers: Running,
}

impl Queue {
    /// Starts nodes with these numbers of workers, which have all run no-ops.
    fn start(servers: Servers, link: Link, workers: &[usize]) -> Outcome<Self> {
        let queue = Self::cold(servers, link, workers)?;
        queue.each(&NOOP, &(), 100 * workers.iter().sum::<usize>())?;
        Ok(queue)
    }

    /// Starts nodes with these numbers of workers, which start with the first tasks.
    fn cold(servers: Servers, link: Link, workers: &[usize]) -> Outcome<Self> {
        let running = servers.start()?;
        let nodes = workers.iter().map(|&workers| node(&running, servers, link, workers));
        let nodes = nodes.collect::<Outcome<Vec<_>>>()?;
        let cluster =
            Cluster::builder().url(running.urls()).replicas(servers.replicas()).connect()?;
        Ok(Self { cluster, nodes, _servers: running })
    }

    fn each<A, R>(&self, task: &Key<A, R>, argument: &A, tasks: usize) -> Outcome<()>
    where
        A: Clone + serde::Serialize + serde::de::DeserializeOwned + 'static,
        R: serde::Serialize + serde::de::DeserializeOwned + 'static,
    {
        let submit = |_| self.cluster.submit(task, argument.clone()).map_err(|e| e.to_string());
        let handles = (0..tasks).map(submit).collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            handle.wait()?;
        }
        Ok(())
    }

    fn map(&self, items: usize) -> Outcome<()> {
        let mut count = 0;
        for result in self.cluster.map(&NOTHING, 0..items as u64) {
            result?;
            count += 1;
        }
        if count == items { Ok(()) } else { Err(format!("only {count} of {items} results").into()) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        for node in std::mem::take(&mut self.nodes) {
            node.drain();
            // The measurement has already reported a node that failed.
            let _ = node.join();
        }
    }
}

fn node(running: &Running, servers: Servers, link: Link, workers: usize) -> Outcome<RunningNode> {
    let node = Node::builder()
        .url(running.urls())
        .pool(Pool::builder().link(link))
        .workers(workers)
        .replicas(servers.replicas())
        .register(&NOOP)
        .register(&NOTHING)
        .register(&LASTS)
        .register(&ECHO);
    Ok(node.start()?)
}
