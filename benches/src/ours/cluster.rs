//! Measures no-ops that travel through servers of NATS JetStream: client and node are in this
//! process, and the node's workers are processes as always.

use brigade::cluster::{Cluster, Node, RunningNode};
use brigade::{Link, Task};

use super::noop;
use crate::cluster::{MOST, MOST_MAPPED, Running, SERVERS, Servers};
use crate::load::Load;
use crate::report::{Outcome, Report};
use crate::sample::{busy_trips, record_trips, throughput};

static NOOP: Task<(), ()> = Task::new("bench/noop", noop);
static NOTHING: Task<u64, ()> = Task::new("bench/nothing", |_| ());

pub(super) fn measure(link: Link, load: &Load, report: &mut Report) {
    for servers in SERVERS {
        let name = servers.name();
        report.attempt(&format!("{name}_each_per_second"), || {
            let queue = Queue::start(servers, link, load)?;
            throughput(load, MOST, |tasks| queue.each(tasks))
        });
        report.attempt(&format!("{name}_map_per_second"), || {
            let queue = Queue::start(servers, link, load)?;
            throughput(load, MOST_MAPPED, |tasks| queue.map(tasks))
        });
        let queue = Queue::start(servers, link, load);
        let trips = queue.and_then(|queue| busy_trips(load, || queue.each(1)));
        record_trips(report, &format!("{name}_round_trip"), trips);
    }
}

/// A queue with one node. Dropped in the order of the fields.
struct Queue {
    cluster: Cluster,
    node: Option<RunningNode>,
    _servers: Running,
}

impl Queue {
    fn start(servers: Servers, link: Link, load: &Load) -> Outcome<Self> {
        let running = servers.start()?;
        let pool = brigade::Pool::builder().link(link);
        let node = Node::builder(running.urls())
            .pool(pool)
            .workers(load.workers)
            .replicas(servers.replicas())
            .register(&NOOP)
            .register(&NOTHING)
            .start()?;
        let cluster =
            Cluster::builder().url(running.urls()).replicas(servers.replicas()).connect()?;
        Ok(Self { cluster, node: Some(node), _servers: running })
    }

    fn each(&self, tasks: usize) -> Outcome<()> {
        let handles =
            (0..tasks).map(|_| self.cluster.submit(&NOOP, ())).collect::<Result<Vec<_>, _>>()?;
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
        if let Some(node) = self.node.take() {
            node.drain();
            // The measurement has already reported a node that failed.
            let _ = node.join();
        }
    }
}
