//! One queue of everybody: two clients of one batch, one of which is suspended for longer than
//! outcomes are kept, nodes of two versions, and servers that pause, die and come back.
//!
//! Each outcome must be exact. A client that comes too late gets an error that says why, and does
//! not wait longer than a bound.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use brigade_testkit::processes::{Signal, hit};
use brigade_testkit::{NatsCluster, NatsServer, Random, Watchdog, pause, wait_until};

use crate::faults::{SERVERS, operate};
use crate::ledger::{Ledger, STALL};
use crate::roles::{Program, Surroundings};
use crate::{LEASE, results_of_a_pool};

/// The variable with the seed of these tests.
const SEED: &str = "BRIGADE_CHAOS_SEED";

const TASKS: u32 = 1_500;

/// Number of nodes of this version. One more is of another version.
const NODES: usize = 3;

/// Time for which outcomes are kept.
const OUTCOME_LIFE: Duration = Duration::from_secs(12);

/// Time in which a client that comes too late must learn that. Usually it takes ten seconds, but
/// version 2.9.10 may leave a stream without a leader until its servers are restarted.
const TOO_LATE: Duration = STALL;

#[test]
fn every_client_of_one_server_gets_outcomes_or_reasons() {
    if NatsServer::installed() {
        play(1);
    }
}

#[test]
fn every_client_of_three_servers_gets_outcomes_or_reasons() {
    if NatsServer::installed() {
        play(SERVERS);
    }
}

fn play(servers: usize) {
    let seed = Random::seed_from(SEED);
    println!("repeat with: {SEED}={seed}");
    let _watchdog = Watchdog::new("a queue of everybody", 3 * STALL);
    let mut random = Random::new(seed);
    let mut cluster = NatsCluster::start(servers);
    let folder = tempfile::tempdir().unwrap();
    let surroundings = Surroundings {
        urls: cluster.urls(),
        lease: LEASE,
        workers: 2,
        replicas: servers,
        outcome_life: OUTCOME_LIFE,
        folder: folder.path().to_owned(),
    };
    let ledger = Ledger::new((0..NODES).map(|node| surroundings.ledger(node)));
    let mut nodes: Vec<_> = (0..NODES).map(|node| surroundings.start_local_node(node)).collect();
    let other = surroundings.start_other_node(NODES);
    let [late, steady] = ["late", "steady"].map(|name| folder.path().join(name));
    let mut late_client = surroundings.start_witness(TASKS, seed, &late);
    let mut steady_client = surroundings.start_witness(TASKS, seed, &steady);
    let mut moments: Vec<_> = (0..4).map(|_| random.within(30..u64::from(TASKS) * 2 / 3)).collect();
    moments.sort_unstable();
    let suspended = random.within(0..4);
    let over = AtomicBool::new(false);
    let (ended, failures) = thread::scope(|scope| {
        let late_id = late_client.id();
        let (cluster, ledger, surroundings) = (&mut cluster, &ledger, &surroundings);
        let (nodes, over) = (&mut nodes, &over);
        scope.spawn(move || {
            for (index, moment) in (0..).zip(moments) {
                operate(cluster, |_| ledger.runs() >= moment);
                if index == suspended {
                    hit(late_id, Signal::STOP);
                }
                match index {
                    0 => kill_a_node(&mut random, surroundings, nodes),
                    1 => pause_a_server(&mut random, cluster),
                    2 => restart_a_server(&mut random, cluster),
                    _ => {}
                }
            }
            operate(cluster, |_| over.load(Ordering::Relaxed));
        });
        let _over = Over(over);
        ledger.wait_while_runs_begin("the steady client ends", || steady_client.has_succeeded());
        pause(OUTCOME_LIFE + Duration::from_secs(2));
        hit(late_id, Signal::CONT);
        let begun = Instant::now();
        wait_until("the late client ends", TOO_LATE, || late_client.has_succeeded());
        let expected = results_of_a_pool(TASKS);
        (begun.elapsed(), [steady, late].map(|results| failures(&results, &expected)))
    });
    println!(
        "seed {seed}, {servers} servers: {} and {} outcomes were too late, known after {ended:.1?}",
        failures[0].len(),
        failures[1].len()
    );
    for (number, runs) in ledger.counts(TASKS).into_iter().enumerate() {
        // Version 2.9.10 may lose a task with a server that is killed. Then both clients know.
        let is_lost = failures.iter().all(|failures| failures.contains(&number));
        assert!(runs > 0 || is_lost, "task {number} has an outcome and has not run");
    }
    for node in nodes.into_iter().chain([other]) {
        node.drain();
    }
}

/// Ends the operation of the servers, also if the test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Checks the results of a client, and returns the tasks that came too late.
fn failures(results: &Path, expected: &[u64]) -> Vec<usize> {
    let results = fs::read_to_string(results).unwrap();
    let results: Vec<&str> = results.lines().collect();
    assert_eq!(results.len(), expected.len());
    let late = (0..).zip(results.iter().zip(expected)).filter(|(_, (result, expected))| {
        let is_value = result.parse().is_ok_and(|value: u64| value == **expected);
        let says_why = result.contains("has no outcome anymore") && result.contains("has expired");
        assert!(is_value || says_why, "neither the value {expected} nor a reason: {result}");
        !is_value
    });
    late.map(|(number, _)| number).collect()
}

fn kill_a_node(random: &mut Random, surroundings: &Surroundings, nodes: &mut Vec<Program>) {
    let number = random.within(0..NODES as u64);
    let number = usize::try_from(number).unwrap();
    nodes.remove(number).kill();
    pause(random.below(LEASE));
    nodes.insert(number, surroundings.start_local_node(number));
}

/// Lets a server pause for longer than clients wait for an answer.
fn pause_a_server(random: &mut Random, cluster: &NatsCluster) {
    let server = random.choose(cluster.servers());
    hit(server.pid(), Signal::STOP);
    pause(Duration::from_millis(2_500));
    hit(server.pid(), Signal::CONT);
}

fn restart_a_server(random: &mut Random, cluster: &mut NatsCluster) {
    let index = random.within(0..cluster.servers().len() as u64);
    let index = usize::try_from(index).unwrap();
    cluster.server(index).kill();
    pause(random.below(Duration::from_secs(1)));
    cluster.launch(index);
    operate(cluster, NatsCluster::is_healthy);
}
