//! `brigade run --cluster`, with a real server and nodes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;

use brigade::Key;
use brigade::cluster::{Cluster, Requirements};
use brigade_testkit::{NatsServer, Watchdog};

use crate::common::{PATIENCE, RunOutput, TestDir, is_alive, pids, signal, until};

/// A server, and a directory in which clients and nodes run.
struct World {
    dir: TestDir,
    server: NatsServer,
    _watchdog: Watchdog,
}

/// A task that no node runs.
static NOTHING: Key<(), ()> = Key::named("nothing");

/// A node that ends with the test.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl World {
    /// Returns `None` where no server is installed.
    fn new(test: &'static str) -> Option<Self> {
        let installed = NatsServer::installed();
        installed.then(|| Self {
            dir: TestDir::new(),
            server: NatsServer::start(),
            _watchdog: Watchdog::new(test, 2 * PATIENCE),
        })
    }

    /// Starts a node that runs commands.
    fn node(&self, name: &str, workers: &str) -> Node {
        let url = self.server.url();
        let mut command = self.dir.command(&["node", "--allow-commands", "--nats", &url]);
        command.args(["--name", name, "--workers", workers]);
        Node(command.spawn().expect("brigade"))
    }

    /// Returns the arguments of a run.
    fn arguments<'a>(url: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        [&["--cluster", url, "--joblog", "log"], rest].concat()
    }

    fn run(&self, rest: &[&str]) -> RunOutput {
        self.dir.run(&Self::arguments(&self.server.url(), rest))
    }

    fn spawn(&self, rest: &[&str]) -> Child {
        let url = self.server.url();
        self.dir.spawn(&[&["run"], Self::arguments(&url, rest).as_slice()].concat())
    }

    /// Returns the columns of the log, by the number of the job.
    fn log(&self) -> Vec<Vec<String>> {
        let log = self.dir.read("log");
        let columns = |line: &str| line.split('\t').map(str::to_owned).collect();
        let mut lines: Vec<Vec<String>> = log.lines().skip(1).map(columns).collect();
        lines.sort_by_key(|line| line[0].parse::<u64>().expect("a number"));
        lines
    }

    /// Returns the number of tasks that are in the queue.
    fn waiting(&self) -> Option<String> {
        let url = self.server.url();
        let output = self.dir.command(&["cluster", "status", &url, "--json"]).output();
        let text = String::from_utf8(output.expect("brigade").stdout).expect("text");
        let (_, rest) = text.split_once("\"tasks\":")?;
        // Those of nodes are lists.
        let rest = rest.rsplit_once("\"tasks\":").map_or(rest, |(_, last)| last);
        Some(rest.chars().take_while(char::is_ascii_digit).collect())
    }
}

fn ended(child: Child) -> RunOutput {
    child.wait_with_output().expect("brigade").into()
}

#[test]
fn a_list_runs_on_all_nodes() {
    let Some(world) = World::new("a list on two nodes") else { return };
    let _nodes = [world.node("alpha", "1"), world.node("beta", "1")];
    // Each job waits for the other one, so they need both nodes.
    let line = "touch at-{1}; until [ -e at-{2} ]; do sleep 0.02; done; \
                echo {1} $PARALLEL_SEQ $PARALLEL_JOBSLOT {%} $COLOR; echo oops >&2; pwd > where";
    let rest = ["--results", "out", "--bar", "--env", "COLOR=red {1}", "--shell", "--", line];
    let ran = world.run(&[&rest[..], &[":::", "a", "b", ":::+", "b", "a"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.lines(), ["a 1 1 1 red a", "b 2 1 1 red b"]);
    let log = world.log();
    let mut hosts: Vec<&str> = log.iter().map(|line| line[1].as_str()).collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["alpha", "beta"]);
    for host in hosts {
        assert!(ran.stderr.contains(&format!("{host}: 1 succeeded")), "{}", ran.stderr);
    }
    let stored = fs::read_to_string(world.dir.path("out/1/a/2/b/stdout")).expect("stored");
    assert_eq!(stored, "a 1 1 1 red a\n");
    assert_eq!(world.dir.read("out/1/b/2/a/stderr"), "oops\n");
    let here = world.dir.path("").canonicalize().expect("a path");
    assert_eq!(world.dir.read("where").trim_end(), here.to_str().expect("text"));
}

#[test]
fn failures_are_as_on_one_machine() {
    let Some(world) = World::new("failures") else { return };
    let _node = world.node("alpha", "2");
    let jobs = "exit 3\nkill -9 $$\nsleep 1000\n./missing\ntrue\n\
                [ -e again ] || { touch again; exit 1; }\n";
    world.dir.write("jobs", jobs);
    let ran = world.run(&["--timeout", "3", "--retries", "1", "jobs"]);
    assert_eq!(ran.status, 4, "{}", ran.stderr);
    let ends: Vec<String> =
        world.log().iter().map(|line| format!("{} {}", line[6], line[7])).collect();
    assert_eq!(ends, ["3 0", "0 9", "-1 15", "127 0", "0 0", "0 0"]);
    assert!(ran.stderr.contains("exceeded its time limit of 3.000 s"), "{}", ran.stderr);
    let ran = world.run(&["--", "./missing", "{}", ":::", "x"]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("program `./missing` not found"), "{}", ran.stderr);
}

#[test]
fn a_halted_run_withdraws_what_has_not_begun() {
    let Some(world) = World::new("halt") else { return };
    let _node = world.node("alpha", "1");
    let jobs = "echo 1 >> runs; exit 7\necho 2 >> runs\necho 3 >> runs\nsleep 1000\n";
    world.dir.write("jobs", jobs);
    let ran = world.run(&["--halt", "now,fail=1", "-j", "1", "jobs"]);
    assert_eq!((ran.status, world.dir.read("runs").as_str()), (7, "1\n"), "{}", ran.stderr);
    let ran = world.run(&["--halt", "now,fail=1", "jobs"]);
    assert_eq!(ran.status, 7, "{}", ran.stderr);
    until("the queue is empty", || world.waiting().as_deref() == Some("0"));
}

#[test]
fn a_killed_client_is_continued() {
    let Some(world) = World::new("a killed client") else { return };
    let _node = world.node("alpha", "2");
    let line = "echo {} >> runs; until [ -e go ]; do sleep 0.02; done; echo done {}";
    let list = ["--shell", "--", line, ":::", "1", "2", "3", "4"];
    let mut client = world.spawn(&list);
    until("two jobs run", || world.dir.read("runs").lines().count() == 2);
    client.kill().expect("SIGKILL");
    client.wait().expect("ended");
    world.dir.write("go", "");
    let ran = world.run(&[&["--resume"], &list[..]].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.lines(), ["done 1", "done 2", "done 3", "done 4"]);
    let runs = world.dir.read("runs");
    let mut runs: Vec<&str> = runs.lines().collect();
    runs.sort_unstable();
    assert_eq!(runs, ["1", "2", "3", "4"], "nothing runs twice");
    assert_eq!(world.log().len(), 4);
    let ran = world.run(&[&["--resume"], &list[..]].concat());
    assert_eq!((ran.status, ran.stdout.as_str()), (0, ""));
}

#[test]
fn a_run_is_continued_with_another_time_limit() {
    let Some(world) = World::new("another limit") else { return };
    let list = ["--", "echo", "{}", ":::", "1", "2"];
    let client = world.spawn(&[&["--timeout", "100"], &list[..]].concat());
    until("the jobs are in the queue", || world.waiting().as_deref() == Some("2"));
    signal(client.id(), "INT");
    assert_eq!(ended(client).status, 130);
    let _node = world.node("alpha", "1");
    let ran = world.run(&[&["--resume", "--timeout", "200"], &list[..]].concat());
    assert_eq!((ran.status, ran.lines()), (0, vec!["1", "2"]), "{}", ran.stderr);
}

#[test]
fn a_batch_is_collected_again_and_its_failures_run_again() {
    let Some(world) = World::new("batches") else { return };
    let _node = world.node("alpha", "1");
    let line = "echo {} >> runs; [ {} != 2 ]";
    let list = ["--batch", "nightly", "--shell", "--", line, ":::", "1", "2"];
    for _ in 0..2 {
        let ran = world.run(&list);
        assert_eq!(ran.status, 1, "{}", ran.stderr);
    }
    assert_eq!(world.dir.read("runs"), "1\n2\n", "the outcomes are recorded");
    let ran = world.run(&[&["--resume"], &list[..]].concat());
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert_eq!(world.dir.read("runs"), "1\n2\n2\n");
}

#[test]
fn a_job_of_a_killed_node_is_gone_and_runs_elsewhere() {
    let Some(world) = World::new("a killed node") else { return };
    let lease = Duration::from_secs(1);
    let cluster = Cluster::builder().url(world.server.url()).lease(lease).connect();
    let cluster = cluster.expect("a cluster");
    // Creates the lane with this lease.
    let task = cluster.task(&NOTHING).requires(Requirements::new().label("commands"));
    assert!(task.submit(()).expect("submitted").cancel());
    let first = world.node("alpha", "1");
    let line = "setsid sleep 1000 & echo $! $$ >> pids; if [ -e go ]; then exit; fi; sleep 1000";
    let client = world.spawn(&["--shell", "--", line, ":::", "x"]);
    let left = pids(&world.dir.path("pids"), 2);
    world.dir.write("go", "");
    drop(first);
    until("the processes are gone", || !left.iter().any(|pid| is_alive(pid)));
    let _second = world.node("beta", "1");
    let ran = ended(client);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(world.log()[0][1], "beta");
    let all = pids(&world.dir.path("pids"), 4);
    until("all processes are gone", || !all.iter().any(|pid| is_alive(pid)));
}

#[test]
fn the_first_interrupt_cancels_and_the_second_kills() {
    let Some(world) = World::new("interrupts") else { return };
    let _node = world.node("alpha", "1");
    let go = world.dir.fifo("go");
    let line = "echo $$ >> pids; read line < go; echo over";
    let list = ["--json", "--shell", "--", line, ":::", "1", "2", "3"];
    let are_in_the_queue = |jobs: &str| {
        until("the jobs in the queue", || world.waiting().as_deref() == Some(jobs));
    };
    // Returns the client once it knows that a job runs, and the others are cancelled.
    let interrupted = |arguments: &[&str], jobs| {
        let mut client = world.spawn(arguments);
        let mut events = BufReader::new(client.stdout.take().expect("piped")).lines();
        let mut find = |name| events.any(|line| line.expect("text").contains(name));
        assert!(find("\"started\""));
        are_in_the_queue(jobs);
        signal(client.id(), "INT");
        assert!(find("\"halting\""));
        are_in_the_queue("1");
        (client, events)
    };
    let (client, events) = interrupted(&list, "3");
    fs::write(go, "").expect("it has time to finish");
    assert_eq!(events.filter(|line| line.as_ref().is_ok_and(|it| it.contains("over"))).count(), 1);
    assert_eq!(ended(client).status, 130);
    // The node acknowledges a job once its outcome is recorded, and the client may read it first.
    are_in_the_queue("0");
    assert_eq!(world.dir.read("pids").lines().count(), 1);
    assert_eq!(world.log().len(), 1, "the others are not in the log");
    // What was cancelled runs when the list is continued.
    world.dir.write("pids", "");
    let (client, _events) = interrupted(&[&["--resume"], &list[..]].concat(), "2");
    let running = pids(&world.dir.path("pids"), 1);
    assert!(is_alive(&running[0]));
    signal(client.id(), "INT");
    let ran = ended(client);
    assert_eq!(ran.status, 130, "{}", ran.stderr);
    until("the process is gone", || !is_alive(&running[0]));
    are_in_the_queue("0");
    assert_eq!(world.dir.read("pids").lines().count(), 1);
}

#[test]
fn a_large_output_arrives_whole() {
    let Some(world) = World::new("a large output") else { return };
    let _node = world.node("alpha", "1");
    let ran = world.run(&["--shell", "--", "seq {}", ":::", "300000"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.lines().map(str::parse::<u32>).eq((1..=300_000).map(Ok)));
    assert_eq!(world.log()[0][5], ran.stdout.len().to_string());
}

#[test]
fn a_run_without_nodes_says_so_and_waits() {
    let Some(world) = World::new("no nodes") else { return };
    let mut client = world.spawn(&["--", "echo", "{}", ":::", "x"]);
    let mut stderr = BufReader::new(client.stderr.take().expect("piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert!(line.contains("brigade node --allow-commands"), "{line}");
    signal(client.id(), "TERM");
    assert_eq!(ended(client).status, 143);
    assert!(world.log().is_empty());
}

#[test]
fn options_without_a_meaning_on_a_cluster_are_refused() {
    let dir = TestDir::new();
    for options in [
        &["--pipe"][..],
        &["--line-buffer"],
        &["--ungroup"],
        &["--policy", "compact"],
        &["--memfree", "1G"],
        &["--load", "1"],
        &["--delay", "1"],
        &["--canary", "true"],
        &["--sandbox", "strict"],
        &["--memory", "1G"],
        &["--cpu-time", "1s"],
        &["--file-size", "1k"],
        &["--processes", "9"],
        &["--timeout", "200%"],
        &["--jobs", "50%"],
        &["--process-slot-var", "SLOT"],
    ] {
        let all = [options, &["--cluster", "nats://127.0.0.1:1", "--", "true"]].concat();
        let ran = dir.run(&all);
        assert_eq!(ran.status, 255, "{options:?}");
        assert!(ran.stderr.contains(options[0]), "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("not available with"), "{options:?}: {}", ran.stderr);
    }
    let ran = dir.run(&["--cluster", "nats://127.0.0.1:1", "--", "true", ":::", "x"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("127.0.0.1:1"), "{}", ran.stderr);
    let ran = dir.run(&["--batch", "b", "--", "true", ":::", "x"]);
    assert!(ran.stderr.contains("--cluster"), "{}", ran.stderr);
}
