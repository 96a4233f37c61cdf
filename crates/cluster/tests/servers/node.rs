//! Nodes against real servers: processes that are killed, stopped and ended in order, and servers
//! that crash.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use brigade::{Key, Pool, Resource, Retry, TaskErrorKind};
use brigade_cluster::{Cluster, Node, NodeBuilder, Requirements};
use brigade_testkit::processes::{Signal, hit};
use brigade_testkit::{BOUND, NatsCluster, NatsServer, Watchdog, pause, repetitions, wait_until};
use tempfile::TempDir;

/// The addresses of the servers, in the environment of a process that is a node.
const URLS: &str = "BRIGADE_TEST_NODE";

/// The lease in milliseconds, likewise.
const LEASE_MILLIS: &str = "BRIGADE_TEST_LEASE";

/// Set for a worker that is another program, as far as its host can see.
const WORKER_PROGRAM: &str = "BRIGADE_TEST_WORKER_PROGRAM";

const LEASE: Duration = Duration::from_secs(1);

/// Bounds a wait for three servers, which elect leaders of every stream and consumer first, and
/// write all to disk three times.
const REPLICATED_BOUND: Duration = BOUND.saturating_mul(4);

/// Leaves a line in a file, takes some milliseconds, and returns the id of its node.
static NOTE: Key<(PathBuf, u64, u64), u32> = Key::new("note/1", note);
/// Leaves a line in a file, takes until another one exists, and returns the id of its node.
static HOLD: Key<(PathBuf, u64, PathBuf), u32> = Key::new("hold/1", hold);
static KILL_NODE: Key<(), ()> = Key::new("kill-node/1", kill_node);
static EXIT: Key<i32, ()> = Key::new("exit/1", |code: i32| std::process::exit(code));
static EXIT_LARGE: Key<Vec<u8>, ()> = Key::new("exit-large/1", |_: Vec<u8>| std::process::exit(7));
static FAIL_TWICE: Key<(PathBuf, u32), Result<u32, u32>> = Key::new("fail-twice/1", fail_twice);
static DOUBLE: Key<u64, u64> = Key::new("double/1", double);
/// Takes until a file exists.
static BLOCK: Key<PathBuf, ()> = Key::new("block/1", block);
/// Known to the worker program only.
static TRIPLE: Key<u64, u64> = Key::named("triple/1");
static NEW: Key<u64, u64> = Key::new("new/2", double);

fn note((file, number, millis): (PathBuf, u64, u64)) -> u32 {
    let mut file = File::options().append(true).create(true).open(file).unwrap();
    // In one write, because other workers append too.
    file.write_all(format!("{number}\n").as_bytes()).unwrap();
    pause(Duration::from_millis(millis));
    parent_id()
}

fn hold((file, number, gate): (PathBuf, u64, PathBuf)) -> u32 {
    note((file, number, 0));
    block(gate);
    parent_id()
}

/// Returns an error, panics or ends its worker the first two times for this file.
fn fail_twice((file, how): (PathBuf, u32)) -> Result<u32, u32> {
    note((file.clone(), how.into(), 0));
    let run = notes(&file)[&how.into()];
    assert_eq!(brigade::worker::attempt().map(brigade::worker::Attempt::get), Some(run));
    match how % 3 {
        0 if run < 3 => Err(run),
        1 if run < 3 => panic!("run {run}"),
        2 if run < 3 => std::process::exit(7),
        _ => Ok(how),
    }
}

fn kill_node((): ()) {
    hit(parent_id(), Signal::KILL);
    pause(BOUND);
}

fn block(file: PathBuf) {
    wait_until("the file exists", 2 * BOUND, || file.exists());
}

fn double(number: u64) -> u64 {
    2 * number
}

fn builder(urls: &str, lease: Duration) -> NodeBuilder {
    let node = Node::builder().url(urls).workers(1).lease(lease);
    node.register(&NOTE)
        .register(&HOLD)
        .register(&KILL_NODE)
        .register(&EXIT)
        .register(&EXIT_LARGE)
        .register(&FAIL_TWICE)
        .register(&DOUBLE)
        .register(&BLOCK)
}

pub(super) fn worker_or_node() {
    if std::env::var_os(WORKER_PROGRAM).is_some() {
        brigade::worker::Server::new().task(TRIPLE.name(), |number: u64| 3 * number).run();
    }
    brigade::init();
    if let Ok(urls) = std::env::var(URLS) {
        // A test that hangs is killed, and cannot end its nodes any more.
        brigade_sys::parent_death::bind(parent_id()).unwrap();
        let lease = std::env::var(LEASE_MILLIS).unwrap().parse().unwrap();
        builder(&urls, Duration::from_millis(lease)).run().unwrap();
        std::process::exit(0);
    }
}

/// A node in a process of its own, which is killed at the end of the test.
struct NodeProcess(Child);

impl NodeProcess {
    fn start(urls: &str, lease: Duration) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(URLS, urls).env(LEASE_MILLIS, lease.as_millis().to_string());
        Self(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        hit(self.0.id(), signal);
    }

    /// Waits for the end, and returns whether the node was drained.
    fn ends_in_order(mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a test with a server of its own, if the program is installed.
fn with_server(test: impl FnOnce(&mut NatsServer)) {
    if NatsServer::installed() {
        let _watchdog = Watchdog::new("a test of nodes", 4 * BOUND);
        test(&mut NatsServer::start());
    }
}

fn connect(urls: &str, lease: Duration) -> Cluster {
    Cluster::builder().url(urls).lease(lease).connect().unwrap()
}

/// Returns the number of messages in a stream whose subjects match a filter.
fn messages(urls: &str, stream: &str, filter: &str) -> usize {
    crate::run(async {
        let client = crate::connect(urls).await;
        let stream = jetstream::new(client).get_stream_no_info(stream).await.unwrap();
        match stream.info_with_subjects(filter).await {
            Ok(mut info) => {
                let mut messages = 0;
                while let Some(Ok((_, count))) = futures_util::StreamExt::next(&mut info).await {
                    messages += count;
                }
                messages
            }
            // Without a leader, nobody knows.
            Err(_) => usize::MAX,
        }
    })
}

/// Removes the messages with a subject.
fn purge(urls: &str, stream: &str, subject: &str) {
    crate::run(async {
        let client = crate::connect(urls).await;
        let stream = jetstream::new(client).get_stream(stream).await.unwrap();
        stream.purge().filter(subject).await.unwrap();
    });
}

/// Returns the number of outcomes that were recorded, those included that were removed since.
fn recorded_outcomes(urls: &str) -> u64 {
    stored(urls, "BRIGADE_default_OUTCOMES")
}

/// Returns the number of messages that a stream has taken.
fn stored(urls: &str, stream: &str) -> u64 {
    crate::run(async {
        let client = crate::connect(urls).await;
        let stream = jetstream::new(client).get_stream(stream).await.unwrap();
        stream.cached_info().state.last_sequence
    })
}

fn wait_until_the_queue_is_empty(urls: &str, bound: Duration) {
    let is_empty = || messages(urls, "BRIGADE_default_TASKS", ">") == 0;
    wait_until("no task is left in the queue", bound, is_empty);
}

/// Returns how often each number was noted.
fn notes(file: &Path) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(file).unwrap_or_default().lines() {
        *counts.entry(line.parse().unwrap()).or_default() += 1;
    }
    counts
}

#[test]
fn tasks_of_a_killed_node_run_elsewhere() {
    with_server(|server| {
        let (folder, urls) = (tempfile::tempdir().unwrap(), server.url());
        let file = folder.path().join("notes");
        let cluster = connect(&urls, LEASE);
        let (killed, other) = (NodeProcess::start(&urls, LEASE), NodeProcess::start(&urls, LEASE));
        let submit = |n| cluster.submit(&NOTE, (file.clone(), n, 20)).unwrap();
        let handles: Vec<_> = (0..100).map(submit).collect();
        wait_until("some tasks have run", BOUND, || notes(&file).len() > 10);
        killed.signal(Signal::KILL);
        for handle in handles {
            handle.wait().unwrap();
        }
        assert_eq!(notes(&file).len(), 100);
        wait_until_the_queue_is_empty(&urls, BOUND);
        assert_eq!(recorded_outcomes(&urls), 100);
        other.signal(Signal::TERM);
        assert!(other.ends_in_order());
    });
}

#[test]
fn what_a_second_signal_kills_runs_elsewhere() {
    with_server(|server| {
        let (folder, urls) = (tempfile::tempdir().unwrap(), server.url());
        let file = folder.path().join("notes");
        let cluster = connect(&urls, LEASE);
        let kill_the_node_that_runs = |number| {
            let node = NodeProcess::start(&urls, LEASE);
            wait_until("the task runs", BOUND, || notes(&file).contains_key(&number));
            node.signal(Signal::TERM);
            node.signal(Signal::INT);
            node.ends_in_order();
        };
        let single = cluster.submit(&NOTE, (file.clone(), 1, 2_000)).unwrap();
        kill_the_node_that_runs(1);
        thread::scope(|scope| {
            let inputs = [(2, 2_000), (3, 0), (4, 0)].map(|(n, time)| (file.clone(), n, time));
            let map = scope.spawn(|| cluster.map(&NOTE, inputs).chunk(3).collect::<Vec<_>>());
            kill_the_node_that_runs(2);
            let _node = NodeProcess::start(&urls, LEASE);
            single.wait().unwrap();
            assert!(map.join().unwrap().iter().all(Result::is_ok));
        });
    });
}

#[test]
fn a_node_that_was_stopped_overwrites_no_outcome() {
    with_server(|server| {
        let (folder, urls) = (tempfile::tempdir().unwrap(), server.url());
        let file = folder.path().join("notes");
        let cluster = connect(&urls, LEASE);
        let batch = cluster.batch("b").unwrap();
        let stopped = NodeProcess::start(&urls, LEASE);
        let gate = folder.path().join("gate");
        let task = (file.clone(), 7, gate.clone());
        let handle = batch.submit("item", &HOLD, task.clone()).unwrap();
        wait_until("the task runs", BOUND, || !notes(&file).is_empty());
        stopped.signal(Signal::STOP);
        let before = notes(&file)[&7];
        let other = NodeProcess::start(&urls, LEASE);
        wait_until("another node runs it", 2 * BOUND, || notes(&file)[&7] > before);
        File::create(&gate).unwrap();
        let by = handle.wait().unwrap();
        assert_eq!(by, other.0.id());
        stopped.signal(Signal::CONT);
        stopped.signal(Signal::TERM);
        assert!(stopped.ends_in_order());
        wait_until_the_queue_is_empty(&urls, BOUND);
        assert_eq!(messages(&urls, "BRIGADE_default_OUTCOMES", ">"), 1);
        // Whoever asks again gets the recorded outcome, and nothing runs.
        let (again, runs) = (connect(&urls, LEASE), notes(&file)[&7]);
        let again = again.batch("b").unwrap().submit("item", &HOLD, task).unwrap();
        assert_eq!((again.wait().unwrap(), notes(&file)[&7]), (by, runs));
    });
}

#[test]
fn a_task_that_kills_nodes_is_given_up() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let handle = cluster.submit(&KILL_NODE, ()).unwrap();
        for _ in 0..3 {
            assert!(!NodeProcess::start(&urls, LEASE).ends_in_order());
        }
        let last = NodeProcess::start(&urls, LEASE);
        let error = handle.wait().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::GivenUp { deaths: 3, .. }), "{error}");
        assert_eq!(messages(&urls, "BRIGADE_default_HISTORY", "brigade.default.dead.>"), 1);
        assert_eq!(cluster.submit(&DOUBLE, 4).unwrap().wait().unwrap(), 8);
        wait_until_the_queue_is_empty(&urls, BOUND);
        last.signal(Signal::TERM);
        assert!(last.ends_in_order());
    });
}

#[test]
fn a_task_that_kills_workers_is_retried_and_then_given_up() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let nodes =
            [builder(&urls, LEASE), builder(&urls, LEASE)].map(|node| node.start().unwrap());
        let deaths = || nodes.iter().map(|node| node.status().worker_deaths).sum::<u64>();
        let error = cluster.submit(&EXIT, 7).unwrap().wait().unwrap_err();
        assert!(error.is_worker_death(), "{error}");
        let error = cluster.task(&EXIT).retries(1).submit(7).unwrap().wait().unwrap_err();
        assert!(error.is_worker_death() && error.to_string().contains('7'), "{error}");
        assert_eq!(messages(&urls, "BRIGADE_default_HISTORY", "brigade.default.dead.>"), 0);
        wait_until("all deaths are counted", BOUND, || deaths() == 3);
        let error = cluster.task(&EXIT).retries(9).submit(7).unwrap().wait().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::GivenUp { deaths: 10, .. }), "{error}");
        assert_eq!(messages(&urls, "BRIGADE_default_HISTORY", "brigade.default.dead.>"), 1);
        wait_until("all deaths are counted", BOUND, || deaths() == 13);
        wait_until_the_queue_is_empty(&urls, BOUND);
    });
}

#[test]
fn tasks_and_items_run_again_after_pauses_and_failures() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let _node = builder(&urls, LEASE).start().unwrap();
        let folder = TempDir::new().unwrap();
        let pause = Duration::from_millis(100);
        let retry = Retry::new().attempts(3).delay(pause);
        for how in 0..3 {
            let task = cluster.task(&FAIL_TWICE).retry(retry).retry_panics().retry_errors();
            let begin = Instant::now();
            let value = task.submit((folder.path().join("task"), how)).unwrap().wait();
            assert_eq!(value.unwrap(), Ok(how));
            assert!(begin.elapsed() >= 3 * pause, "{:?}", begin.elapsed());
        }
        let inputs = (0..12).map(|how| (folder.path().join("items"), how));
        let map = cluster.map(&FAIL_TWICE, inputs).retry(retry).retry_panics().retry_errors();
        let values: Vec<_> = map.map(|value| value.unwrap().unwrap()).collect();
        assert!(values.into_iter().eq(0..12));
        // Failures that were not named are outcomes, and so is the last one.
        let input = |how| (folder.path().join(format!("named {how}")), how);
        let task = cluster.task(&FAIL_TWICE).retry(retry);
        assert!(task.submit(input(1)).unwrap().wait().unwrap_err().is_panic());
        assert_eq!(task.submit(input(0)).unwrap().wait().unwrap(), Err(1));
        let task = cluster.task(&FAIL_TWICE).retries(1).retry_errors();
        assert_eq!(task.submit(input(3)).unwrap().wait().unwrap(), Err(2));
        wait_until_the_queue_is_empty(&urls, BOUND);
    });
}

#[test]
fn a_task_in_its_pause_can_be_cancelled() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let node = builder(&urls, LEASE).start().unwrap();
        let folder = TempDir::new().unwrap();
        let hour = Retry::new().delay(Duration::from_secs(3600));
        let task = cluster.task(&FAIL_TWICE).retry(hour).retry_errors();
        let handle = task.submit((folder.path().join("notes"), 0)).unwrap();
        wait_until("the task is returned", BOUND, || node.status().returned == 1);
        assert_eq!(messages(&urls, "BRIGADE_default_TASKS", ">"), 1);
        assert!(handle.cancel());
        assert!(handle.wait().unwrap_err().is_cancelled());
        wait_until_the_queue_is_empty(&urls, BOUND);
    });
}

#[test]
fn a_first_delivery_adds_to_the_deaths_of_an_earlier_one() {
    with_server(|server| {
        let urls = server.url();
        let node = builder(&urls, LEASE).start().unwrap();
        let submit = |retries| {
            let cluster = connect(&urls, LEASE);
            let batch = cluster.batch("b").unwrap();
            let task = batch.task("item", &EXIT).unwrap().retries(retries);
            task.submit(7).unwrap().wait().unwrap_err()
        };
        assert!(submit(1).is_worker_death());
        wait_until("both deaths are counted", BOUND, || node.status().worker_deaths == 2);
        // Without its outcome, the item runs again, and the node does not look for a history.
        purge(&urls, "BRIGADE_default_OUTCOMES", "brigade.default.outcome.b.item");
        let error = submit(9);
        assert!(matches!(error.kind(), TaskErrorKind::GivenUp { deaths: 10, .. }), "{error}");
        wait_until("all deaths are counted", BOUND, || node.status().worker_deaths >= 10);
        assert_eq!(node.status().worker_deaths, 10, "the first two count");
    });
}

#[test]
fn a_dead_letter_is_read_submitted_again_and_removed() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let _node = builder(&urls, LEASE).name("n").start().unwrap();
        let letters = || cluster.dead_letters().collect::<Result<Vec<_>, _>>().unwrap();
        assert!(letters().is_empty());
        let batch = cluster.batch("b").unwrap();
        let submit = |cluster: &Cluster| {
            let batch = cluster.batch("b").unwrap();
            batch
                .task("bad", &EXIT)
                .unwrap()
                .retries(2)
                .label("l")
                .submit(7)
                .unwrap()
                .wait()
                .unwrap_err()
        };
        let error = submit(&cluster);
        assert!(matches!(error.kind(), TaskErrorKind::GivenUp { deaths: 3, .. }), "{error}");
        let found = letters();
        let [letter] = &found[..] else { panic!("{found:?}") };
        assert_eq!(letter.key.to_string(), "b/bad");
        assert_eq!((letter.function.as_str(), letter.label.as_deref()), ("exit/1", Some("l")));
        assert_eq!((letter.items, letter.deaths, letter.node.as_str()), (1, 3, "n"));
        let ends: Vec<_> = letter.history.iter().map(|report| report.delivery).collect();
        assert_eq!(ends, [1, 2, 3]);
        let argument: i32 = brigade_codec::decode(letter.arguments[0].as_slice()).unwrap();
        assert_eq!(argument, 7);
        let json = serde_json::to_string(letter).unwrap();
        assert!(json.contains("WorkerDied") && json.contains("exit/1"), "{json}");

        assert!(cluster.requeue(letter).unwrap());
        // It runs again, from the beginning, and dies as often.
        let again = submit(&connect(&urls, LEASE));
        assert!(matches!(again.kind(), TaskErrorKind::GivenUp { deaths: 3, .. }), "{again}");
        assert!(!cluster.requeue(letter).unwrap(), "it is another letter by now");
        let found = letters();
        assert!(found.len() == 1 && found[0].key == letter.key && found[0].when >= letter.when);
        assert!(cluster.remove_dead_letter(&found[0]).unwrap());
        assert!(!cluster.remove_dead_letter(&found[0]).unwrap());
        assert!(letters().is_empty());
        drop(batch);
    });
}

#[test]
fn a_dead_letter_keeps_its_large_argument() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let _node = builder(&urls, LEASE).start().unwrap();
        let task = cluster.task(&EXIT_LARGE).retries(2);
        let error = task.submit(vec![7; 1 << 20]).unwrap().wait().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::GivenUp { .. }), "{error}");
        wait_until_the_queue_is_empty(&urls, BOUND);
        let letter = cluster.dead_letters().next().unwrap().unwrap();
        assert_eq!(letter.arguments, []);
        assert!(cluster.requeue(&letter).unwrap());
        // Without the argument the outcome would be another one.
        let next = || cluster.dead_letters().next();
        let is_back = || next().is_some_and(|again| again.unwrap().when > letter.when);
        wait_until("it is given up again", BOUND, is_back);
    });
}

#[test]
fn a_drained_node_hands_back_what_has_not_begun() {
    with_server(|server| {
        let (folder, urls) = (tempfile::tempdir().unwrap(), server.url());
        let file = folder.path().join("notes");
        // Longer than the test: nothing may rest on it.
        let lease = 4 * BOUND;
        let cluster = connect(&urls, lease);
        let first = NodeProcess::start(&urls, lease);
        // The node learns that tasks are brief, and takes more of them than it has workers.
        for n in 0..200 {
            cluster.submit(&DOUBLE, n).unwrap().wait().unwrap();
        }
        let submit = |(n, millis)| cluster.submit(&NOTE, (file.clone(), n, millis)).unwrap();
        let running = submit((0, 1_000));
        wait_until("a task runs", BOUND, || notes(&file).len() == 1);
        let handles: Vec<_> = (1..50).map(|n| submit((n, 0))).collect();
        // What the server is about to send while a node leaves waits for its lease.
        wait_until("all tasks are in the queue", BOUND, || {
            stored(&urls, "BRIGADE_default_TASKS") == 250
        });
        first.signal(Signal::TERM);
        assert!(first.ends_in_order());
        assert!(running.wait().is_ok());
        let second = NodeProcess::start(&urls, lease);
        for handle in handles {
            handle.wait().unwrap();
        }
        assert_eq!(notes(&file), (0..50).map(|n| (n, 1)).collect());
        wait_until_the_queue_is_empty(&urls, BOUND);
        second.signal(Signal::TERM);
        assert!(second.ends_in_order());
    });
}

#[test]
fn a_node_without_tasks_ends_although_the_server_is_away() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let node = builder(&urls, LEASE).start().unwrap();
        assert_eq!(cluster.submit(&DOUBLE, 4).unwrap().wait().unwrap(), 8);
        wait_until("the node holds nothing", BOUND, || node.status().held == 0);
        server.kill();
        wait_until("the link is known to be lost", BOUND, || !cluster.is_connected());
        node.drain();
        assert_eq!(node.join().unwrap().recorded, 1);
    });
}

#[test]
fn metrics_of_a_node_carry_its_name() {
    with_server(|server| {
        let urls = server.url();
        let node = builder(&urls, LEASE).name("here").serve_status("127.0.0.1:0").start().unwrap();
        let cluster = connect(&urls, LEASE);
        assert_eq!(cluster.submit(&DOUBLE, 4).unwrap().wait().unwrap(), 8);
        let mut socket = std::net::TcpStream::connect(node.status_addr().unwrap()).unwrap();
        socket.set_read_timeout(Some(BOUND)).unwrap();
        socket.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
        let text = std::io::read_to_string(socket).unwrap();
        assert!(text.contains("brigade_tasks_enqueued_total{node=\"here\",pool="), "{text}");
        let refused = builder(&urls, LEASE).serve_status("nowhere").start().unwrap_err();
        assert!(refused.to_string().contains("serve_status"), "{refused}");
    });
}

#[test]
fn a_node_takes_no_more_tasks_than_it_has_resources_for() {
    with_server(|server| {
        let (urls, dir) = (server.url(), tempfile::tempdir().unwrap());
        let node = builder(&urls, LEASE).workers(2).resource("gpu", Resource::Indexed(1));
        let node = node.start().unwrap();
        let cluster = connect(&urls, LEASE);
        let (file, gate) = (dir.path().join("begun"), dir.path().join("gate"));
        let hold = |number| (file.clone(), number, gate.clone());
        let task = cluster.task(&HOLD).needs("gpu", 1);
        let handles = [1, 2].map(|number| task.submit(hold(number)).unwrap());
        wait_until("one has begun", BOUND, || file.exists());
        for number in 0..8 {
            assert_eq!(cluster.submit(&DOUBLE, number).unwrap().wait().unwrap(), 2 * number);
        }
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
        wait_until("the other is left to other nodes", BOUND, || node.status().held == 1);
        File::create(&gate).unwrap();
        for handle in handles {
            handle.wait().unwrap();
        }
        let doubled: Result<Vec<_>, _> = cluster.map(&DOUBLE, 0..50).needs("gpu", 1).collect();
        assert_eq!(doubled.unwrap(), (0..50).map(double).collect::<Vec<_>>());
    });
}

#[test]
fn a_task_waits_for_a_node_that_meets_its_requirements() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let small = builder(&urls, LEASE).label("ssd").memory_gib(4).start().unwrap();
        let needs = [
            Requirements::new().label("gpu"),
            Requirements::new().label("gpu").label("ssd"),
            Requirements::new().memory_gib(8),
            Requirements::cores(2),
            Requirements::new().resource("gpu", 2),
        ];
        let submit = |(n, needs)| cluster.task(&DOUBLE).requires(needs).submit(n).unwrap();
        let waiting: Vec<_> = (0..).zip(needs).map(submit).collect();
        for needs in [
            Requirements::new(),
            Requirements::new().label("ssd"),
            Requirements::new().memory_gib(4),
        ] {
            assert_eq!(submit((7, needs)).wait().unwrap(), 14);
        }
        let left = || messages(&urls, "BRIGADE_default_TASKS", ">");
        wait_until("only the others are left", BOUND, || left() == 5 && small.status().held == 0);
        assert_eq!(small.status().recorded, 3);
        let large = builder(&urls, LEASE).cores_per_worker(2).memory_gib(8).label("ssd");
        let large = large.label("gpu").resource("gpu", Resource::Indexed(2)).start();
        // This machine may have a single core.
        let Ok(_large) = large else { return };
        for (n, handle) in (0..).zip(waiting) {
            assert_eq!(handle.wait().unwrap(), 2 * n);
        }
        assert_eq!(small.status().recorded, 3);
        wait_until_the_queue_is_empty(&urls, BOUND);
    });
}

#[test]
fn a_node_runs_functions_of_a_worker_program_by_name() {
    with_server(|server| {
        let urls = server.url();
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.env(WORKER_PROGRAM, "");
        let node =
            Node::builder().url(&urls).pool(Pool::builder().worker_command(&program)).workers(1);
        let node = node.register_name(TRIPLE.name()).start().unwrap();
        assert_eq!(connect(&urls, LEASE).submit(&TRIPLE, 7).unwrap().wait().unwrap(), 21);
        node.drain();
        assert_eq!(node.join().unwrap().given_up, 0);
    });
}

#[test]
fn an_unknown_task_waits_for_a_node_that_knows_it() {
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let old = builder(&urls, LEASE).start().unwrap();
        let handle = cluster.submit(&NEW, 4).unwrap();
        wait_until("the old node has returned the task", BOUND, || old.status().returned > 0);
        let new = builder(&urls, LEASE).register(&NEW).start().unwrap();
        assert_eq!(handle.wait().unwrap(), 8);
        wait_until_the_queue_is_empty(&urls, BOUND);
        for node in [old, new] {
            node.drain();
            assert_eq!(node.join().unwrap().given_up, 0);
        }
    });
}

#[test]
fn nothing_is_lost_or_stuck_when_the_server_crashes() {
    let tasks = repetitions(4_000);
    with_server(|server| {
        let urls = server.url();
        let cluster = connect(&urls, LEASE);
        let nodes =
            [builder(&urls, LEASE), builder(&urls, LEASE)].map(|node| node.start().unwrap());
        let handles: Vec<_> = (0..tasks).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        let recorded = || nodes.iter().map(|node| node.status().recorded).sum::<u64>();
        wait_until("some outcomes are recorded", BOUND, || recorded() > tasks / 8);
        server.kill();
        server.restart();
        for (n, handle) in (0..).zip(handles) {
            assert_eq!(handle.wait().unwrap(), 2 * n);
        }
        wait_until_the_queue_is_empty(&urls, BOUND);
        assert_eq!(recorded_outcomes(&urls), tasks);
        for node in nodes {
            node.drain();
            node.join().unwrap();
        }
    });
}

#[test]
fn nodes_start_at_the_same_time_on_new_servers() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a test of three servers", 8 * BOUND);
    let servers = NatsCluster::start(3);
    let urls = servers.urls();
    let start = || {
        let node = builder(&urls, LEASE).replicas(3).start();
        node.map(|node| node.drain())
    };
    thread::scope(|scope| {
        let nodes: Vec<_> = (0..12).map(|_| scope.spawn(start)).collect();
        for node in nodes {
            node.join().unwrap().unwrap();
        }
    });
}

#[test]
fn a_cluster_of_servers_survives_the_death_of_one() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a test of three servers", 8 * BOUND);
    let mut servers = NatsCluster::start(3);
    let (urls, lease) = (servers.urls(), Duration::from_secs(5));
    let tasks = repetitions(2_000);
    let cluster = Cluster::builder().url(&urls).replicas(3).lease(lease).connect().unwrap();
    let node = builder(&urls, lease).replicas(3).start().unwrap();
    let handles: Vec<_> = (0..tasks).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
    wait_until("some outcomes are recorded", REPLICATED_BOUND, || {
        node.status().recorded > tasks / 10
    });
    servers.server(0).kill();
    for (n, handle) in (0..).zip(handles) {
        assert_eq!(handle.wait().unwrap(), 2 * n);
    }
    servers.server(0).restart();
    wait_until_the_queue_is_empty(&urls, REPLICATED_BOUND);
    node.drain();
    node.join().unwrap();
}

#[test]
fn brief_tasks_behind_a_long_one_run_elsewhere() {
    with_server(|server| {
        let (url, folder) = (server.url(), tempfile::tempdir().unwrap());
        let first = builder(&url, LEASE).start().unwrap();
        let cluster = connect(&url, LEASE);
        // The node learns that tasks are brief, and holds many of them.
        let brief: Vec<_> = (0..100).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        for handle in brief {
            handle.wait().unwrap();
        }
        let end = folder.path().join("end");
        let long = cluster.submit(&BLOCK, end.clone()).unwrap();
        let behind: Vec<_> = (0..20).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        wait_until("the node has the tasks", BOUND, || {
            messages(&url, "BRIGADE_default_TASKS", ">") == 21
        });
        let second = builder(&url, LEASE).start().unwrap();
        for (number, handle) in (0..).zip(behind) {
            assert_eq!(handle.wait().unwrap(), 2 * number);
        }
        File::create(end).unwrap();
        long.wait().unwrap();
        for node in [first, second] {
            node.drain();
            node.join().unwrap();
        }
    });
}

/// A client of another version submits an item and a single task. Both are given up under their own
/// names, and their outcomes name the versions.
#[test]
fn a_task_of_another_version_gets_its_own_outcome() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("tasks of another version", 6 * BOUND);
    let server = NatsServer::start();
    let cluster = Cluster::connect(server.url()).unwrap();
    let batch = cluster.batch("b").unwrap();
    let item = batch.submit("item", &DOUBLE, 1).unwrap();
    let outcome = |key: &str| format!("brigade.default.outcome.{}", key.replace('/', "."));
    crate::run(async {
        let jetstream = jetstream::new(crate::connect(&server.url()).await);
        let tasks = jetstream.get_stream("BRIGADE_default_TASKS").await.unwrap();
        let begun = Instant::now();
        let task = loop {
            // A submission returns before the server has stored the task.
            match tasks.get_first_raw_message_by_subject(">", 1).await {
                Ok(task) => break task,
                Err(error) => assert!(begun.elapsed() < BOUND, "the task was not stored: {error}"),
            }
        };
        let mut message = task.payload.to_vec();
        message[0] = 9;
        let subject = task.subject.strip_suffix(".b.item").unwrap();
        let published = jetstream.publish(format!("{subject}.b.other"), message.clone().into());
        published.await.unwrap().await.unwrap();
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Msg-Id", "~client/77");
        let subject = format!("{subject}.~client");
        let published = jetstream.publish_with_headers(subject, headers, message.into());
        published.await.unwrap().await.unwrap();
    });
    let node = builder(&server.url(), LEASE).start().unwrap();
    assert_eq!(item.wait().unwrap(), 2);
    // Waits without asking the server again and again.
    let error = batch.submit("other", &DOUBLE, 1).unwrap().wait().unwrap_err();
    assert!(matches!(error.kind(), TaskErrorKind::GivenUp { deaths: 0, .. }), "{error}");
    assert!(error.to_string().contains("version 9, and this program knows 3"), "{error}");
    wait_until("both tasks are given up", 4 * BOUND, || {
        cluster.dead_letters().filter_map(Result::ok).count() == 2
    });
    let mut letters: Vec<_> = cluster.dead_letters().map(Result::unwrap).collect();
    letters.sort_by_key(|letter| letter.key.to_string());
    let keys: Vec<_> = letters.iter().map(|letter| letter.key.to_string()).collect();
    assert_eq!(keys, ["b/other", "~client/77"]);
    let report = letters[0].history[0].incident.to_string();
    assert!(report.contains("another version"), "{report}");
    wait_until("the single task has its outcome", BOUND, || {
        crate::run(async {
            let jetstream = jetstream::new(crate::connect(&server.url()).await);
            let outcomes = jetstream.get_stream("BRIGADE_default_OUTCOMES").await.unwrap();
            outcomes.get_last_raw_message_by_subject(&outcome("~client/77")).await.is_ok()
        })
    });
    node.drain();
    node.join().unwrap();
}
