//! The faults of a run, and the moments at which they happen. A seed decides both.

use std::iter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brigade_testkit::{BOUND, NatsCluster, Network, Random, pause, wait_until};

use crate::ledger::Ledger;
use crate::roles::{Program, Surroundings};

/// Time after which servers that are not healthy are restarted. An election takes up to 15 s on a
/// quiet machine.
const UNHEALTHY: Duration = Duration::from_secs(45);

/// Time between two looks at the health of the servers.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Number of nodes that are killed.
const KILLED: usize = 2;

/// Number of servers.
pub(crate) const SERVERS: usize = 3;

/// A moment, as a number of runs that have begun by then.
type Moment = u64;

/// The faults of a run.
#[derive(Debug)]
pub(crate) struct Plan {
    cut_off: CutOff,
    kills: Vec<Kill>,
    client_is_killed: Moment,
    servers: Vec<Outage>,
}

/// A host is cut off, and connected again.
#[derive(Debug)]
struct CutOff {
    at: Moment,
    host: usize,
    time: Duration,
}

/// The node of a host is killed, and another one is started later.
#[derive(Debug)]
struct Kill {
    at: Moment,
    host: usize,
    pause: Duration,
}

/// A server is killed, and restarted later.
#[derive(Debug)]
struct Outage {
    at: Moment,
    server: usize,
    pause: Duration,
}

impl Plan {
    pub(crate) fn new(random: &mut Random, tasks: u32, hosts: usize, lease: Duration) -> Self {
        let tasks = u64::from(tasks);
        // The last fault happens while there is still enough to do.
        let moment = |random: &mut Random| random.within(tasks / 20..tasks * 7 / 10);
        let mut chosen = shuffled(random, hosts).into_iter();
        let mut next = || chosen.next().unwrap();
        let cut_off = CutOff {
            at: moment(random),
            host: next(),
            time: lease + lease / 5 + random.below(lease),
        };
        let kill = |random: &mut Random, host| Kill {
            at: moment(random),
            host,
            pause: random.below(2 * lease),
        };
        let mut kills: Vec<_> =
            iter::repeat_with(&mut next).take(KILLED).map(|host| kill(random, host)).collect();
        kills.sort_by_key(|kill| kill.at);
        let client_is_killed = moment(random);
        let outage = |random: &mut Random, server| Outage {
            at: moment(random),
            server,
            pause: Duration::from_millis(100) + random.below(Duration::from_secs(3)),
        };
        let servers = shuffled(random, SERVERS);
        let mut servers: Vec<_> =
            servers.into_iter().map(|server| outage(random, server)).collect();
        servers.sort_by_key(|outage| outage.at);
        Self { cut_off, kills, client_is_killed, servers }
    }

    /// Cuts a host off and connects it again.
    pub(crate) fn cut_off(&self, ledger: &Ledger, network: &Network) {
        let CutOff { at, host, time } = self.cut_off;
        ledger.wait_for(at);
        network.cut_off(host);
        pause(time);
        network.connect(host);
    }

    /// Kills nodes and starts others in their places.
    pub(crate) fn kill_nodes(
        &self,
        ledger: &Ledger,
        network: &Network,
        surroundings: &Surroundings,
        nodes: &mut [Option<Program>],
    ) {
        for kill in &self.kills {
            ledger.wait_for(kill.at);
            nodes[kill.host].take().unwrap().kill();
            wait_until("the workers have ended with their node", BOUND, || {
                network.pids(kill.host).is_empty()
            });
            pause(kill.pause);
            nodes[kill.host] = Some(surroundings.start_node(network, kill.host));
        }
    }

    /// Kills and restarts the servers, one after the other, and operates them until it is over.
    pub(crate) fn kill_servers(
        &self,
        ledger: &Ledger,
        servers: &mut NatsCluster,
        over: &AtomicBool,
    ) {
        let is_over = || over.load(Ordering::Relaxed);
        for outage in &self.servers {
            operate(servers, |_| is_over() || ledger.runs() >= outage.at);
            servers.server(outage.server).kill();
            pause(outage.pause);
            servers.launch(outage.server);
            operate(servers, |servers| is_over() || servers.is_healthy());
        }
        operate(servers, |_| is_over());
    }

    /// Kills the client. Its successor is the one that counts.
    pub(crate) fn kill_client(&self, ledger: &Ledger, client: Program) {
        ledger.wait_for(self.client_is_killed);
        client.kill();
    }
}

/// Does what an operator of the servers would do, until a condition holds: version 2.9.10 sometimes
/// leaves a stream or a consumer without a leader after crashes of several servers, until they are
/// restarted.
pub(crate) fn operate(servers: &mut NatsCluster, mut until: impl FnMut(&NatsCluster) -> bool) {
    let mut healthy = Instant::now();
    while !until(servers) {
        if servers.is_healthy() {
            healthy = Instant::now();
        } else if healthy.elapsed() >= UNHEALTHY {
            println!("restarting all servers, which are not healthy:\n{}", servers.describe());
            servers.restart();
            healthy = Instant::now();
        }
        pause(LOOK_AGAIN);
    }
}

/// Returns the numbers below `count` in a random order.
fn shuffled(random: &mut Random, count: usize) -> Vec<usize> {
    let mut all: Vec<(u64, usize)> = (0..count).map(|index| (random.number(), index)).collect();
    all.sort_unstable();
    all.into_iter().map(|(_, index)| index).collect()
}
