//! The programs of the test: nodes on the hosts of a network, their workers, and a client.

use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::{ExitStatusExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use brigade::{Key, TaskError, TaskErrorKind};
use brigade_cluster::{Cluster, ClusterError, Node};
use brigade_testkit::processes::{Signal, hit};
use brigade_testkit::{BOUND, NatsServer, Network, Random, pause, wait_until};

use crate::faults::SERVERS;
use crate::ledger::RECORD;

brigade::__before_main!(play);

/// The variable with the role of a process.
const ROLE: &str = "BRIGADE_CHAOS_ROLE";
const URLS: &str = "BRIGADE_CHAOS_URLS";
const LEASE_MILLIS: &str = "BRIGADE_CHAOS_LEASE";
const WORKERS: &str = "BRIGADE_CHAOS_WORKERS";
/// The file to which the workers of a node append.
const LEDGER: &str = "BRIGADE_CHAOS_LEDGER";
const SEED: &str = "BRIGADE_CHAOS_CLIENT_SEED";
const TASKS: &str = "BRIGADE_CHAOS_CLIENT_TASKS";
const REPLICAS: &str = "BRIGADE_CHAOS_REPLICAS";
const OUTCOME_LIFE_MILLIS: &str = "BRIGADE_CHAOS_OUTCOME_LIFE";
/// The file for the results of the client.
const RESULTS: &str = "BRIGADE_CHAOS_RESULTS";

/// The batch of the client.
pub(crate) const BATCH: &str = "nightly";

/// The version of the messages of some nodes.
const OTHER_VERSION: u8 = 9;

/// Deaths that a task survives. Each fault counts as one for the tasks that it hits, however often
/// they were hit before.
const MAX_DEATHS: u32 = 100;

/// Notes that the task with this number runs, takes some milliseconds, and returns a number that
/// depends on the first.
pub(crate) static WORK: Key<(u32, u64), u64> = Key::new("work/1", work);

/// Notes that it runs, waits until its node has leave to go on, and returns the node's id.
pub(crate) static HOLD: Key<(), u32> = Key::new("hold/1", hold);

/// Notes that it runs, and kills its node.
pub(crate) static KILL_NODE: Key<(), ()> = Key::new("kill-node/1", kill_node);

fn work((number, millis): (u32, u64)) -> u64 {
    note(number);
    pause(Duration::from_millis(millis));
    Random::new(number.into()).number()
}

fn hold((): ()) -> u32 {
    note(0);
    let leave = leave(&PathBuf::from(env::var_os(LEDGER).unwrap()));
    wait_until("the node has leave to go on", 10 * BOUND, || leave.exists());
    parent_id()
}

fn kill_node((): ()) {
    note(0);
    hit(parent_id(), Signal::KILL);
    pause(BOUND);
}

/// Appends a number to the ledger of this worker's node. There is none in the local pool.
fn note(number: u32) {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    let open = |path| File::options().append(true).create(true).open(path).unwrap();
    if let Some(mut file) = FILE.get_or_init(|| env::var_os(LEDGER).map(open)).as_ref() {
        // In one write, because other workers append too.
        assert_eq!(file.write(&number.to_le_bytes()).unwrap(), RECORD);
    }
}

/// Returns the file whose existence lets a node's `HOLD` go on.
pub(crate) fn leave(ledger: &Path) -> PathBuf {
    ledger.with_extension("leave")
}

fn play() {
    brigade::init();
    let Ok(role) = env::var(ROLE) else { return };
    // The test keeps the other end open as long as it lives.
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(1);
    });
    match role.as_str() {
        "node" => node(),
        "other node" => {
            brigade_cluster::__speak_version(OTHER_VERSION);
            node();
        }
        "client" => client(),
        _ => witness(),
    }
    std::process::exit(0);
}

fn number<N: TryFrom<u64>>(variable: &str) -> N {
    let number: u64 = env::var(variable).unwrap().parse().unwrap();
    N::try_from(number).ok().unwrap()
}

fn outcome_life() -> Duration {
    Duration::from_millis(number(OUTCOME_LIFE_MILLIS))
}

fn lease() -> Duration {
    Duration::from_millis(number(LEASE_MILLIS))
}

fn node() {
    insist(run_node);
}

fn run_node() -> Result<(), ClusterError> {
    let node = Node::builder().url(env::var(URLS).unwrap()).workers(number(WORKERS));
    let node = node.lease(lease()).replicas(number(REPLICAS)).outcome_life(outcome_life());
    node.register(&WORK).register(&HOLD).register(&KILL_NODE).run().map(drop)
}

/// Connects like the client of the test.
pub(crate) fn connect(urls: &str, lease: Duration) -> Cluster {
    Cluster::builder().url(urls).lease(lease).replicas(SERVERS).connect().unwrap()
}

/// Connects with the settings in the environment.
fn try_to_connect() -> Result<Cluster, ClusterError> {
    let cluster = Cluster::builder().url(env::var(URLS).unwrap()).lease(lease());
    cluster.replicas(number(REPLICAS)).outcome_life(outcome_life()).connect()
}

/// Tries again if `attempt` fails, as whoever starts such a program would do. Servers that need
/// their operator may be away for longer than clients wait.
fn insist<T>(attempt: impl Fn() -> Result<T, ClusterError>) -> T {
    for _ in 0..3 {
        match attempt() {
            Ok(value) => return value,
            Err(error) => println!("trying again: {error}"),
        }
        // A server that restarts refuses connections at once.
        pause(Duration::from_secs(2));
    }
    attempt().unwrap()
}

/// Submits all tasks, waits for their outcomes, and writes the results. Submits those again that an
/// old server has lost.
fn client() {
    let forgets = NatsServer::forgets();
    let is_lost = |error: &TaskError| matches!(error.kind(), TaskErrorKind::Lost { .. });
    write_results(|error| forgets && is_lost(error), |outcome| outcome.unwrap().to_string());
}

/// Does the same once, but writes errors too.
fn witness() {
    let describe = |outcome: Result<u64, TaskError>| {
        outcome.map_or_else(|error| error.to_string(), |number| number.to_string())
    };
    write_results(|_| false, describe);
}

fn write_results(
    is_submitted_again: impl Fn(&TaskError) -> bool,
    describe: impl Fn(Result<u64, TaskError>) -> String,
) {
    let cluster = insist(try_to_connect);
    let batch = insist(|| cluster.batch(BATCH));
    let mut random = Random::new(number(SEED));
    let submit = |(number, millis): (u32, u64)| {
        let task = batch.task(&number.to_string(), &WORK).unwrap().max_deaths(MAX_DEATHS);
        task.submit((number, millis)).unwrap()
    };
    let arguments = (0..number(TASKS)).map(|number: u32| (number, random.within(1..21)));
    let handles: Vec<_> = arguments.map(|argument| (argument, submit(argument))).collect();
    let mut results = String::new();
    for (argument, handle) in handles {
        let mut outcome = handle.wait();
        if outcome.as_ref().is_err_and(&is_submitted_again) {
            println!("task {} is submitted again: {outcome:?}", argument.0);
            outcome = submit(argument).wait();
        }
        writeln!(results, "{}", describe(outcome)).unwrap();
    }
    fs::write(env::var(RESULTS).unwrap(), results).unwrap();
}

/// Settings of all programs.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) urls: String,
    pub(crate) lease: Duration,
    pub(crate) workers: usize,
    pub(crate) replicas: usize,
    pub(crate) outcome_life: Duration,
    /// The folder of the ledgers and of the results.
    pub(crate) folder: PathBuf,
}

impl Surroundings {
    /// Returns the file to which the workers on a host append.
    pub(crate) fn ledger(&self, host: usize) -> PathBuf {
        self.folder.join(host.to_string())
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.folder.join("results")
    }

    /// Starts the node of a host.
    pub(crate) fn start_node(&self, network: &Network, host: usize) -> Program {
        self.start(network.command(host, env::current_exe().unwrap()), "node", host)
    }

    /// Starts a node on this machine, with the number of its ledger.
    pub(crate) fn start_local_node(&self, number: usize) -> Program {
        self.start(Command::new(env::current_exe().unwrap()), "node", number)
    }

    /// Starts a node of another version of Brigade on this machine.
    pub(crate) fn start_other_node(&self, number: usize) -> Program {
        self.start(Command::new(env::current_exe().unwrap()), "other node", number)
    }

    fn start(&self, mut command: Command, role: &str, number: usize) -> Program {
        command.env(ROLE, role).env(WORKERS, self.workers.to_string());
        Program::start(command.env(LEDGER, self.ledger(number)), self)
    }

    /// Starts a client that writes its results, errors included, to a file.
    pub(crate) fn start_witness(&self, tasks: u32, seed: u64, results: &Path) -> Program {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(ROLE, "witness").env(RESULTS, results);
        command.env(TASKS, tasks.to_string()).env(SEED, seed.to_string());
        Program::start(&mut command, self)
    }

    /// Starts the client, which is not on any host.
    pub(crate) fn start_client(&self, tasks: u32, seed: u64) -> Program {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env(ROLE, "client").env(RESULTS, self.results());
        command.env(TASKS, tasks.to_string()).env(SEED, seed.to_string());
        Program::start(&mut command, self)
    }
}

/// A node or a client. It ends with the test, also if that is killed.
#[derive(Debug)]
pub(crate) struct Program {
    process: Child,
    _open: ChildStdin,
}

impl Program {
    fn start(command: &mut Command, surroundings: &Surroundings) -> Self {
        let Surroundings { urls, lease, replicas, outcome_life, .. } = surroundings;
        command.env(URLS, urls).env(LEASE_MILLIS, lease.as_millis().to_string());
        command.env(REPLICAS, replicas.to_string());
        command.env(OUTCOME_LIFE_MILLIS, outcome_life.as_millis().to_string());
        let mut process = command.stdin(Stdio::piped()).spawn().unwrap();
        let open = process.stdin.take().unwrap();
        Self { process, _open: open }
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Returns `true` once the program has ended.
    ///
    /// # Panics
    /// Panics if it has failed.
    pub(crate) fn has_succeeded(&mut self) -> bool {
        let ended = self.process.try_wait().unwrap();
        assert!(ended.is_none_or(|status| status.success()), "the program fails: {ended:?}");
        ended.is_some()
    }

    /// Drains a node, and waits for its end. One that still starts ends at once.
    ///
    /// # Panics
    /// Panics if the node fails.
    pub(crate) fn drain(mut self) {
        hit(self.id(), Signal::TERM);
        let status = self.process.wait().unwrap();
        let is_new = status.signal() == Some(Signal::TERM.as_raw());
        assert!(status.success() || is_new, "the node fails: {status:?}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
