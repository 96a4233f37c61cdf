//! Clients against a real server and real nodes, whose workers are this executable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use brigade::{Executor, Key, Pool, TaskErrorKind};
use brigade_cluster::{Cluster, Node, Priority, Requirements, RunningNode};
use brigade_codec::chain;
use brigade_testkit::{BOUND, NatsServer, Watchdog, pause, repetitions, wait_until};

static DOUBLE: Key<u64, u64> = Key::new("double/1", double);
static REVERSE: Key<Vec<u8>, Vec<u8>> = Key::new("reverse/1", reverse);
static NOTE: Key<(PathBuf, u64), u64> = Key::new("note/1", note);
static MISBEHAVE: Key<u32, u32> = Key::new("misbehave/1", misbehave);
static SLEEP: Key<u64, ()> = Key::new("sleep/1", sleep);

fn double(number: u64) -> u64 {
    2 * number
}

fn reverse(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.reverse();
    bytes
}

/// Leaves a line in a file, and takes a few milliseconds.
fn note((file, number): (PathBuf, u64)) -> u64 {
    let mut file = File::options().append(true).create(true).open(file).unwrap();
    // At once, because other workers write too.
    file.write_all(format!("{number}\n").as_bytes()).unwrap();
    pause(Duration::from_millis(3));
    2 * number
}

fn misbehave(how: u32) -> u32 {
    match how {
        1 => panic!("as requested"),
        2 => std::process::exit(7),
        3 => {
            pause(BOUND);
            3
        }
        how => how,
    }
}

fn sleep(millis: u64) {
    pause(Duration::from_millis(millis));
}

/// Runs a test with a server of its own, if the program is installed.
fn with_server(test: impl FnOnce(&mut NatsServer)) {
    if NatsServer::installed() {
        let _watchdog = Watchdog::new("a test of the client", 4 * BOUND);
        test(&mut NatsServer::start());
    }
}

fn connect(server: &NatsServer) -> Cluster {
    Cluster::builder().url(server.url()).lease(Duration::from_secs(1)).connect().unwrap()
}

fn node(server: &NatsServer, workers: usize) -> RunningNode {
    let node = Node::builder().url(server.url()).workers(workers).lease(Duration::from_secs(1));
    let node = node.register(&DOUBLE).register(&REVERSE).register(&NOTE);
    node.register(&MISBEHAVE).register(&SLEEP).start().unwrap()
}

fn end(node: RunningNode) {
    node.drain();
    let status = node.join().unwrap();
    assert_eq!(status.held, 0);
}

fn notes(file: &Path) -> Vec<u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn tasks_run_in_the_workers_of_nodes() {
    let items = repetitions(20_000);
    with_server(|server| {
        let cluster = connect(server);
        let nodes = [node(server, 1), node(server, 1)];
        let handles: Vec<_> = (0..500).map(|n| cluster.submit(&DOUBLE, n).unwrap()).collect();
        for (n, handle) in (0..).zip(handles) {
            assert_eq!(handle.wait().unwrap(), 2 * n);
        }
        let mapped: Vec<u64> = cluster.map(&DOUBLE, 0..items).map(Result::unwrap).collect();
        assert_eq!(mapped, (0..items).map(double).collect::<Vec<u64>>());
        let mapped: BTreeSet<u64> =
            cluster.map_unordered(&DOUBLE, 0..2_000).map(Result::unwrap).collect();
        assert_eq!(mapped, (0..2_000).map(double).collect::<BTreeSet<u64>>());
        nodes.into_iter().for_each(end);
    });
}

#[test]
fn programs_that_start_at_once_create_one_queue() {
    with_server(|server| {
        let at_once = Barrier::new(4);
        for queue in 0..repetitions(50) {
            let create = || {
                at_once.wait();
                Cluster::builder().url(server.url()).queue(format!("queue-{queue}")).connect()
            };
            let created: Vec<_> = thread::scope(|scope| {
                let starters: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
                starters.into_iter().map(|starter| starter.join().unwrap()).collect()
            });
            for cluster in created {
                cluster.unwrap();
            }
        }
    });
}

#[test]
fn a_queue_whose_subjects_belong_to_another_stream_is_refused() {
    with_server(|server| {
        crate::run(async {
            let client = crate::connect(&server.url()).await;
            let subjects = vec!["brigade.taken.>".to_owned()];
            let config =
                stream::Config { name: "theirs".to_owned(), subjects, ..Default::default() };
            jetstream::new(client).create_stream(config).await.unwrap();
        });
        let queue = Cluster::builder().url(server.url()).queue("taken").connect();
        let error = chain(&queue.unwrap_err());
        assert!(error.contains("the stream theirs stores brigade.taken."), "{error}");
    });
}

#[test]
fn failures_come_back_as_from_a_pool() {
    with_server(|server| {
        let cluster = connect(server);
        let node = node(server, 1);
        let error = cluster.submit(&MISBEHAVE, 1).unwrap().wait().unwrap_err();
        assert!(error.is_panic() && error.to_string().contains("as requested"), "{error}");
        assert_eq!(error.label(), Some("misbehave/1"));
        let error = cluster.submit(&MISBEHAVE, 2).unwrap().wait().unwrap_err();
        assert!(error.is_worker_death(), "{error}");
        let slow = cluster.task(&MISBEHAVE).deadline(Duration::from_millis(100)).label("slow");
        let error = slow.submit(3).unwrap().wait().unwrap_err();
        assert!(error.is_deadline(), "{error}");
        assert_eq!(error.label(), Some("slow"));
        let results: Vec<_> = cluster.map(&MISBEHAVE, [0, 1, 4, 2, 5]).chunk(5).collect();
        let values: Vec<Option<u32>> = results.into_iter().map(Result::ok).collect();
        assert_eq!(values, [Some(0), None, Some(4), None, Some(5)]);
        end(node);
    });
}

#[test]
fn results_of_a_map_come_with_their_inputs() {
    with_server(|server| {
        let node = node(server, 2);
        let cluster = connect(server);
        let inputs = [0, 1, 4, 2, 5];
        for chunk in [1, 2, 5] {
            let results = cluster.map_unordered(&MISBEHAVE, inputs).chunk(chunk).with_inputs();
            let mut seen = Vec::new();
            for (how, result) in results {
                let position = inputs.iter().position(|other| *other == how);
                match result {
                    Ok(value) => assert_eq!(value, how),
                    Err(error) => assert_eq!(error.index(), position, "{error}"),
                }
                seen.push(position.unwrap());
            }
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
            let indexed = cluster.map(&MISBEHAVE, inputs).chunk(chunk).indexed();
            assert!(indexed.map(|(index, _)| index).eq(0..5));
        }
        end(node);
    });
}

#[test]
fn a_map_that_no_node_runs_times_out_and_may_go_on() {
    with_server(|server| {
        let cluster = connect(server);
        let mut results = cluster.map(&DOUBLE, 0..10).timeout(Duration::from_millis(50));
        let error = results.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "timed out waiting for 10 of 10 tasks");
        assert!(results.next().is_none());
        let node = node(server, 1);
        let values: Vec<u64> = results.into_inner().map(Result::unwrap).collect();
        assert_eq!(values, (0..10).map(double).collect::<Vec<u64>>());
        end(node);
    });
}

#[test]
fn large_payloads_travel_both_ways() {
    with_server(|server| {
        let cluster = connect(server);
        let node = node(server, 1);
        let mut large = vec![0_u8; 6 << 20];
        large[0] = 1;
        let back = cluster.submit(&REVERSE, large.clone()).unwrap().wait().unwrap();
        assert_eq!((back.len(), back.last()), (6 << 20, Some(&1)));
        let backs = cluster.map(&REVERSE, [large, vec![1, 2], vec![9; 300 << 10]]);
        let lengths: Vec<usize> = backs.map(|back| back.unwrap().len()).collect();
        assert_eq!(lengths, [6 << 20, 2, 300 << 10]);
        end(node);
    });
}

#[test]
fn a_kill_frees_the_worker_and_a_cancel_is_one_outcome() {
    with_server(|server| {
        let cluster = connect(server);
        let node = node(server, 1);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        let running = cluster.try_submit(&SLEEP, 600_000).unwrap();
        wait_until("the task is in a node", BOUND, || node.status().held > 0);
        let waiting = cluster.try_submit(&NOTE, (file.clone(), 1)).unwrap();
        assert!(waiting.cancel());
        assert!(waiting.wait().unwrap_err().is_cancelled());
        assert!(running.kill());
        assert_eq!(*running.wait().unwrap_err().kind(), TaskErrorKind::Killed);
        let mut next = cluster.submit(&NOTE, (file.clone(), 2)).unwrap();
        assert_eq!(next.wait_timeout(BOUND).unwrap().unwrap(), 4);
        assert_eq!(notes(&file), [2]);
        end(node);
    });
}

#[test]
fn urgent_tasks_come_first_and_needs_choose_the_node() {
    with_server(|server| {
        let cluster = connect(server);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        let mut handles = Vec::new();
        for (base, priority) in [(200, Priority::Low), (100, Priority::Normal), (0, Priority::High)]
        {
            for number in base..base + 5 {
                let task = cluster.task(&NOTE).priority(priority);
                handles.push(task.try_submit((file.clone(), number)).unwrap());
            }
        }
        let gpu = cluster.task(&DOUBLE).requires(Requirements::new().label("gpu"));
        let mut gpu = gpu.try_submit(4).unwrap();
        let plain = node(server, 1);
        for handle in handles {
            handle.wait().unwrap();
        }
        let order: Vec<u64> = notes(&file).into_iter().map(|number| number / 100).collect();
        assert!(order.is_sorted(), "{order:?}");
        assert!(!gpu.is_done());
        let special = Node::builder().url(server.url()).workers(1).label("gpu").register(&DOUBLE);
        let special = special.start().unwrap();
        assert_eq!(gpu.wait_timeout(BOUND).unwrap().unwrap(), 8);
        end(special);
        end(plain);
    });
}

#[test]
fn a_full_queue_empties_when_a_node_comes() {
    with_server(|server| {
        let cluster = Cluster::builder().url(server.url()).max_tasks(10).connect().unwrap();
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..100 {
                    sender.send(cluster.submit(&DOUBLE, n).unwrap()).unwrap();
                }
                drop(sender);
            });
            wait_until("the queue is full", BOUND, || {
                cluster.try_submit(&DOUBLE, 0).is_err_and(|refused| refused.is_full())
            });
            let node = node(server, 1);
            let sum: u64 = receiver.iter().map(|handle| handle.wait().unwrap()).sum();
            assert_eq!(sum, (0..100).map(double).sum::<u64>());
            end(node);
        });
    });
}

#[test]
fn a_server_that_dies_in_the_middle_costs_nothing_but_time() {
    let items = repetitions(20_000);
    with_server(|server| {
        let cluster = connect(server);
        let node = node(server, 2);
        let mut results = cluster.map_unordered(&DOUBLE, 0..items).chunk(10);
        let mut values = BTreeMap::<u64, u64>::new();
        for taken in 0..items {
            if taken == items / 5 {
                server.kill();
                server.restart();
            }
            let value = results.next().unwrap().unwrap();
            *values.entry(value).or_default() += 1;
        }
        assert!(results.next().is_none());
        assert_eq!(values, (0..items).map(|n| (2 * n, 1)).collect());
        assert_eq!(cluster.submit(&DOUBLE, 7).unwrap().wait().unwrap(), 14);
        end(node);
    });
}

/// The name of the variable by which the test below starts itself as a client to be killed.
const CHILD: &str = "BRIGADE_TEST_CHILD";

/// Applies `note` to inputs of which the parent knows all, and prints how far it came.
fn note_all(cluster: &Cluster, file: &Path, mut done: impl FnMut(u64)) -> Vec<u64> {
    let batch = cluster.batch("nightly").unwrap();
    let inputs = (0..2_000).map(|number| (file.to_owned(), number));
    let map = batch.map(&NOTE, inputs).chunk(5).window(100);
    let results = map.enumerate().map(|(at, result)| {
        done(at as u64);
        result.unwrap()
    });
    results.collect()
}

#[test]
fn a_batch_goes_on_after_its_client_was_killed() {
    if let Ok(settings) = std::env::var(CHILD) {
        let (url, file) = settings.split_once(' ').unwrap();
        let cluster = Cluster::connect(url).unwrap();
        let mut out = std::io::stdout();
        note_all(&cluster, Path::new(file), |done| writeln!(out, "done {done}").unwrap());
        return;
    }
    with_server(|server| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("notes");
        let node = node(server, 2);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "client::a_batch_goes_on_after_its_client_was_killed"])
            .env(CHILD, format!("{} {}", server.url(), file.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reached = lines.map(Result::unwrap).any(|line| line == "done 300");
        assert!(reached, "the client has ended early");
        child.kill().unwrap();
        child.wait().unwrap();

        let cluster = connect(server);
        assert!(cluster.batch("nightly").unwrap().is_continued());
        let values = note_all(&cluster, &file, |_| {});
        assert_eq!(values, (0..2_000).map(double).collect::<Vec<u64>>());
        let runs = notes(&file);
        assert_eq!(runs.iter().copied().collect::<BTreeSet<u64>>(), (0..2_000).collect());
        // Nothing died but the client, so nothing had a reason to run twice.
        assert_eq!(runs.len(), 2_000, "items ran twice");
        let again = note_all(&cluster, &file, |_| {});
        assert_eq!((again.len(), notes(&file).len()), (2_000, 2_000));
        end(node);
    });
}

#[test]
fn a_client_that_is_idle_hears_of_nodes_that_come_late() {
    with_server(|server| {
        let cluster = connect(server);
        let handle = cluster.submit(&DOUBLE, 1).unwrap();
        // Longer than the silence after which a client doubts that it still hears of outcomes. A
        // node that comes earlier would be heard of in any case.
        pause(Duration::from_millis(2500));
        let node = node(server, 1);
        assert_eq!(handle.wait().unwrap(), 2);
        end(node);
    });
}

#[test]
fn the_same_code_runs_on_a_cluster_and_on_a_pool() {
    fn sum(executor: &impl Executor) -> u64 {
        let first = executor.submit(&DOUBLE, 2).unwrap();
        let first = first.wait().unwrap();
        first + executor.map(&DOUBLE, 0..100).map(Result::unwrap).sum::<u64>()
    }
    with_server(|server| {
        let cluster = connect(server);
        let node = node(server, 1);
        let pool = Pool::builder().workers(1).build().unwrap();
        assert_eq!(sum(&cluster), sum(&pool));
        end(node);
    });
}

/// The node has a function of this name for numbers.
static DOUBLE_OF_TEXT: Key<String, String> = Key::named("double/1");

#[test]
fn a_key_with_other_types_than_the_node_is_refused() {
    with_server(|server| {
        let cluster = connect(server);
        let node = node(server, 1);
        let error = cluster.submit(&DOUBLE_OF_TEXT, "a".to_owned()).unwrap().wait().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::Function { .. }), "{error}");
        assert!(error.to_string().contains("u64 -> u64"), "{error}");
        let mut results = cluster.map(&DOUBLE_OF_TEXT, vec!["a".to_owned(); 3]);
        assert!(results.all(|result| result.is_err()));
        assert_eq!(cluster.submit(&DOUBLE, 4).unwrap().wait().unwrap(), 8);
        end(node);
    });
}
