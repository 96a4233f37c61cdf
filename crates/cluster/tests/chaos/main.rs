//! Ten nodes, each on a host of its own, three servers and a client, while links are cut and
//! programs are killed. Without the permission to make hosts, these tests pass without a look.
//!
//! `cargo xtask chaos --cluster` runs the first test with 100,000 tasks; a seed decides the faults.

#![expect(clippy::print_stdout, reason = "the seed, and the ledger of a run that passes")]

mod faults;
mod ledger;
mod mixed;
mod roles;
mod streams;

use std::env;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use brigade::{Pool, TaskErrorKind};
use brigade_testkit::{
    BOUND, NatsCluster, NatsServer, Network, Random, Watchdog, repetitions, wait_until,
};

use faults::{Plan, SERVERS};
use ledger::{Ledger, STALL};
use roles::{HOLD, KILL_NODE, Program, Surroundings, WORK, connect, leave};
use streams::Streams;

const HOSTS: usize = 10;

/// The variables with the seed and the number of tasks of the first test.
const SEED: &str = "BRIGADE_CHAOS_SEED";
const TASKS: &str = "BRIGADE_CHAOS_TASKS";

/// Number of tasks without that variable, in [repetitions].
const MANY_TASKS: u32 = 4_000;

const LEASE: Duration = Duration::from_secs(3);

/// Returns `true` if these tests can run here.
fn is_possible() -> bool {
    let is_possible = NatsServer::installed() && Network::permitted();
    if !is_possible {
        println!("left out: needs nats-server, and root with `ip` for network namespaces");
    }
    is_possible
}

/// Hosts, servers that all of them reach, and the folder of the programs.
struct Stage {
    network: Network,
    servers: NatsCluster,
    surroundings: Surroundings,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new(hosts: usize, lease: Duration, workers: usize) -> Self {
        let network = Network::new(hosts);
        let servers = NatsCluster::start_on(&network.address(), SERVERS);
        let folder = tempfile::tempdir().unwrap();
        let (urls, path) = (servers.urls(), folder.path().to_owned());
        let outcome_life = Duration::from_secs(24 * 3600);
        let surroundings =
            Surroundings { urls, lease, workers, replicas: SERVERS, outcome_life, folder: path };
        Self { network, servers, surroundings, _folder: folder }
    }

    fn start_node(&self, host: usize) -> Program {
        self.surroundings.start_node(&self.network, host)
    }

    fn streams(&self) -> Streams {
        Streams::connect(&self.surroundings.urls)
    }

    fn ledger(&self, hosts: usize) -> Ledger {
        Ledger::new((0..hosts).map(|host| self.surroundings.ledger(host)))
    }

    fn wait_until_no_process_is_left(&self, hosts: usize) {
        for host in 0..hosts {
            wait_until("no process is left on a host", BOUND, || {
                self.network.pids(host).is_empty()
            });
        }
    }
}

/// Ends the operation of the servers. If the test fails, that prints the state of the queue.
struct Over<'a> {
    is_over: &'a AtomicBool,
    urls: &'a str,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}", Streams::connect(self.urls).describe());
        }
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Returns the results of a local pool, without the milliseconds.
fn results_of_a_pool(tasks: u32) -> Vec<u64> {
    let pool = Pool::builder().workers(2).build().unwrap();
    pool.map(&WORK, (0..tasks).map(|number| (number, 0))).map(Result::unwrap).collect()
}

#[test]
fn every_task_has_one_outcome_whatever_dies_or_is_cut_off() {
    if !is_possible() {
        return;
    }
    let tasks =
        env::var(TASKS).map_or_else(|_| repetitions(MANY_TASKS), |text| text.parse().unwrap());
    let seed = Random::seed_from(SEED);
    println!("repeat with: cargo xtask chaos --cluster --seed {seed} --tasks {tasks}");
    let mut stage = Stage::new(HOSTS, LEASE, 2);
    let mut random = Random::new(seed);
    let plan = Plan::new(&mut random, tasks, HOSTS, LEASE);
    println!("{plan:#?}");
    let mut nodes: Vec<_> = (0..HOSTS).map(|host| Some(stage.start_node(host))).collect();
    let (ledger, surroundings) = (stage.ledger(HOSTS), stage.surroundings.clone());
    let (network, servers) = (&stage.network, &mut stage.servers);
    let (begun, over) = (Instant::now(), AtomicBool::new(false));
    let subjects = thread::scope(|scope| {
        scope.spawn(|| plan.cut_off(&ledger, network));
        scope.spawn(|| plan.kill_nodes(&ledger, network, &surroundings, &mut nodes));
        scope.spawn(|| plan.kill_servers(&ledger, servers, &over));
        let _over = Over { is_over: &over, urls: &surroundings.urls };
        plan.kill_client(&ledger, surroundings.start_client(tasks, seed));
        let mut client = surroundings.start_client(tasks, seed);
        ledger.wait_while_runs_begin("the client ends", || client.has_succeeded());
        println!("all outcomes after {:.1?}", begun.elapsed());
        let streams = Streams::connect(&surroundings.urls);
        streams.wait_until_the_queue_is_empty();
        println!("the queue is empty after {:.1?}", begun.elapsed());
        streams.outcomes(tasks.into())
    });
    let results = fs::read_to_string(surroundings.results()).unwrap();
    let results: Vec<u64> = results.lines().map(|line| line.parse().unwrap()).collect();
    assert!(results == results_of_a_pool(tasks), "results differ from those of a local pool");
    let counts = ledger.counts(tasks);
    for (number, runs) in counts.iter().enumerate() {
        assert!(*runs > 0, "task {number} has an outcome and did not run");
        assert!(subjects.contains(&format!("brigade.default.outcome.nightly.{number}")));
    }
    let most = counts.iter().max().unwrap();
    let again = counts.iter().filter(|runs| **runs > 1).count();
    println!("{tasks} tasks, {again} ran more than once, none more than {most} times");
    let _watchdog = Watchdog::new("the end of the nodes", STALL);
    for node in nodes {
        node.unwrap().drain();
    }
    stage.wait_until_no_process_is_left(HOSTS);
    println!("everything has ended after {:.1?}", begun.elapsed());
}

#[test]
fn a_node_that_was_cut_off_overwrites_no_outcome() {
    if !is_possible() {
        return;
    }
    let _watchdog = Watchdog::new("a test of a node that is cut off", 8 * BOUND);
    let stage = Stage::new(2, LEASE, 1);
    let (network, ledger) = (&stage.network, stage.ledger(2));
    let cluster = connect(&stage.surroundings.urls, LEASE);
    let batch = cluster.batch("b").unwrap();
    let cut_off = stage.start_node(0);
    let handle = batch.submit("item", &HOLD, ()).unwrap();
    ledger.wait_for(1);
    network.cut_off(0);
    let other = stage.start_node(1);
    ledger.wait_for(2);
    fs::write(leave(&stage.surroundings.ledger(1)), "").unwrap();
    let by = handle.wait().unwrap();
    assert_eq!(by, other.id());
    // The first run ends, and its node comes back with another outcome.
    fs::write(leave(&stage.surroundings.ledger(0)), "").unwrap();
    network.connect(0);
    cut_off.drain();
    let streams = stage.streams();
    streams.wait_until_the_queue_is_empty();
    streams.outcomes(1);
    let again = connect(&stage.surroundings.urls, LEASE);
    let again = again.batch("b").unwrap().submit("item", &HOLD, ()).unwrap();
    assert_eq!((again.wait().unwrap(), ledger.runs()), (by, 2));
    other.drain();
    stage.wait_until_no_process_is_left(2);
}

#[test]
fn a_poison_task_is_given_up_on_all_nodes_together() {
    if !is_possible() {
        return;
    }
    let _watchdog = Watchdog::new("a test of a poison task", 8 * BOUND);
    let stage = Stage::new(4, LEASE, 1);
    let mut nodes: Vec<_> = (0..4).map(|host| stage.start_node(host)).collect();
    let cluster = connect(&stage.surroundings.urls, LEASE);
    let error = cluster.submit(&KILL_NODE, ()).unwrap().wait().unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::GivenUp { deaths: 3, .. }), "{error}");
    let streams = stage.streams();
    streams.wait_until_the_queue_is_empty();
    assert_eq!(cluster.dead_letters().filter_map(Result::ok).count(), 1);
    streams.outcomes(1);
    assert_eq!(stage.ledger(4).runs(), 3);
    assert_eq!(cluster.submit(&WORK, (7, 0)).unwrap().wait().unwrap(), Random::new(7).number());
    nodes.retain_mut(|node| network_has(&stage.network, node.id()));
    assert_eq!(nodes.len(), 1);
    nodes.into_iter().for_each(Program::drain);
    stage.wait_until_no_process_is_left(4);
}

fn network_has(network: &Network, pid: u32) -> bool {
    (0..4).any(|host| network.pids(host).contains(&pid))
}
