//! `brigade node` and `brigade cluster status`, with a real server. This test is the worker program
//! too.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brigade::Key;
use brigade::cluster::{Cluster, ClusterStatus, Endpoint};
use brigade::worker::Server;
use brigade_sys::before_main;
use brigade_sys::process::Signal;
use brigade_testkit::processes::hit_child;
use brigade_testkit::{BOUND, NatsCluster, NatsServer, Watchdog, wait_for};

before_main!(serve);

static DOUBLE: Key<u64, u64> = Key::new("double/1", |number: u64| 2 * number);
/// The function of nodes that run commands.
static FORGED: Key<(), ()> = Key::named("brigade/command/1");
static EXIT: Key<i32, ()> = Key::new("exit/1", |code: i32| std::process::exit(code));

fn serve() {
    Server::new().register(&DOUBLE).register(&EXIT).run();
}

fn brigade() -> Command {
    Command::new(env!("CARGO_BIN_EXE_brigade"))
}

/// A node that ends with the test.
struct Node(Child);

impl Node {
    fn start(url: &str, options: &[&str]) -> Self {
        let worker = std::env::current_exe().unwrap();
        let mut command = brigade();
        command.args(["node", "--nats", url, "--name", "here", "--workers", "2"]).args(options);
        Self(command.arg("--").arg(worker).stderr(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a node without a worker program.
fn start_commands(url: &str) -> Node {
    let mut node = start_commands_with(url, &[]);
    // Nobody reads it.
    node.0.stderr = None;
    node
}

/// Starts a node without a worker program, with these options.
fn start_commands_with(url: &str, options: &[&str]) -> Node {
    let mut command = brigade();
    command.args(["node", "--nats", url, "--name", "there", "--allow-commands"]).args(options);
    Node(command.stderr(Stdio::piped()).spawn().unwrap())
}

fn status(url: &str, options: &[&str]) -> Result<String, String> {
    of_cluster(&["status", url], options)
}

fn of_cluster(command: &[&str], options: &[&str]) -> Result<String, String> {
    let output = brigade().arg("cluster").args(command).args(options).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn a_node_runs_the_functions_of_a_worker_program() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a node of the command", 3 * BOUND);
    let server = NatsServer::start();
    let url = server.url();
    let problem = status(&url, &[]).unwrap_err();
    assert!(problem.contains("queue"), "{problem}");
    let mut node = Node::start(&url, &["--label", "gpu"]);
    let cluster = Cluster::connect(&url).unwrap();
    assert_eq!(cluster.submit(&DOUBLE, 21).unwrap().wait().unwrap(), 42);
    let doubled: Vec<u64> = cluster.map(&DOUBLE, 0..1_000).map(Result::unwrap).collect();
    assert!(doubled.into_iter().eq((0..1_000).map(|number| 2 * number)));
    let text = wait_for("the node in the status", BOUND, || {
        status(&url, &["--json"]).ok().filter(|text| text.contains("\"here\""))
    });
    for part in ["\"workers\":2", "double/1", "gpu", "\"dead_letters\":0", "\"tasks\":0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = status(&url, &[]).unwrap();
    assert!(text.contains("queue default") && text.contains("here"), "{text}");
    assert!(hit_child(node.0.id(), Signal::Terminate.into()));
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn a_node_runs_commands_only_if_it_may() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a node that may run no commands", 3 * BOUND);
    let server = NatsServer::start();
    let url = server.url();
    let _node = Node::start(&url, &["--label", "gpu"]);
    let cluster = wait_for("the queue", BOUND, || Cluster::connect(&url).ok());
    assert_eq!(cluster.submit(&DOUBLE, 1).unwrap().wait().unwrap(), 2);
    let mut run = brigade();
    run.args(["run", "--cluster", &url, "--", "echo", "{}", ":::", "x"]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("brigade node --allow-commands"), "{line}");
    // Nor if a client leaves the label out.
    let forged = cluster.submit(&FORGED, ()).unwrap();
    let node = || {
        let status = ClusterStatus::fetch(&Endpoint::at(&url), "default").unwrap();
        status.nodes.into_iter().find(|node| node.name == "here")
    };
    wait_for("a refusal", BOUND, || node().filter(|node| node.returned > 0));
    assert_eq!(cluster.submit(&DOUBLE, 2).unwrap().wait().unwrap(), 4);
    assert!(!forged.is_done() && run.try_wait().unwrap().is_none());

    let _commands = start_commands(&url);
    let mut stdout = String::new();
    run.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert_eq!((stdout.as_str(), run.wait().unwrap().success()), ("x\n", true));
    let node = wait_for("the node", BOUND, node);
    assert_eq!(node.recorded, 2, "what it knows");
    forged.cancel();
    assert!(forged.wait().unwrap_err().is_cancelled());
}

/// The examples for services and containers.
const UNIT: &str = include_str!("../../../../docs/deploy/brigade-node.service");
const CONTAINERFILE: &str = include_str!("../../../../docs/deploy/Containerfile");

/// Runs the command line of an example as its machine does, with no other variables: until it has
/// run a task, and then gets the signal of the example.
fn run_example(url: &str, line: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        ("brigade", Path::new(env!("CARGO_BIN_EXE_brigade"))),
        ("my-worker", &std::env::current_exe().unwrap()),
    ];
    for (name, program) in programs {
        symlink(program, folder.path().join(name)).unwrap();
    }
    let place = |word: &str| match word.strip_prefix("/usr/local/bin/") {
        Some(name) => folder.path().join(name).into_os_string(),
        None => word.into(),
    };
    let mut command = Command::new(folder.path().join(line[0].rsplit('/').next().unwrap()));
    command.args(line[1..].iter().map(|word| place(word))).env_clear();
    // The first server of several is down.
    command.env("NATS_URL", format!("nats://127.0.0.1:1,{url}"));
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()));
    let mut node = Node(command.stderr(Stdio::null()).spawn().unwrap());
    let cluster = wait_for("the queue", BOUND, || Cluster::connect(url).ok());
    if line.iter().any(|word| word == "--allow-commands") {
        let run = ["run", "--cluster", url, "--", "echo", "{}", ":::", "x"];
        assert_eq!(brigade().args(run).output().unwrap().stdout, b"x\n");
    } else {
        assert_eq!(cluster.submit(&DOUBLE, 21).unwrap().wait().unwrap(), 42);
    }
    assert!(hit_child(node.0.id(), Signal::Terminate.into()));
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn the_examples_for_services_and_containers_run() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("the examples of nodes", 3 * BOUND);
    let server = NatsServer::start();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // Of its two lines, one is a comment.
    let lines = UNIT.lines().map(|line| line.trim_start_matches("# "));
    let lines: Vec<_> = lines.filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        run_example(&server.url(), &words(line));
    }
    let list = |instruction: &str| -> Vec<String> {
        let line = CONTAINERFILE.lines().find_map(|line| line.strip_prefix(instruction));
        let list = line.unwrap().trim().trim_matches(['[', ']']);
        list.split(", ").map(|word| word.trim_matches('"').to_owned()).collect()
    };
    run_example(&server.url(), &[list("ENTRYPOINT"), list("CMD")].concat());
}

/// The exposure, in tenths, from which on systemd calls a service `MEDIUM` in place of `OK`.
const MEDIUM: &str = "--threshold=49";

#[test]
fn the_service_is_valid_and_has_few_rights() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("brigade-node.service");
    std::fs::write(&path, UNIT.replace("/usr/local/bin/brigade", env!("CARGO_BIN_EXE_brigade")))
        .unwrap();
    let analyze = |words: &[&str]| Command::new("systemd-analyze").args(words).arg(&path).output();
    let Ok(verified) = analyze(&["verify"]) else { return };
    assert_eq!(
        (verified.status.success(), String::from_utf8_lossy(&verified.stderr).as_ref()),
        (true, "")
    );
    let rated = analyze(&["security", "--offline=true", "--no-pager", MEDIUM]).unwrap();
    assert!(rated.status.success(), "{}", String::from_utf8_lossy(&rated.stdout));
}

#[test]
fn dead_letters_are_listed_submitted_again_and_removed() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("dead letters of the command", 3 * BOUND);
    let server = NatsServer::start();
    let url = server.url();
    let dead = |options: &[&str]| of_cluster(&["dead", &url], options);
    let problem = dead(&[]).unwrap_err();
    assert!(problem.contains("`default` does not exist"), "{problem}");
    let _node = Node::start(&url, &[]);
    let cluster = Cluster::connect(&url).unwrap();
    assert!(!dead(&[]).unwrap().contains("exit/1"));
    let batch = cluster.batch("b").unwrap();
    let error = batch.task("bad", &EXIT).unwrap().retries(2).submit(7).unwrap().wait().unwrap_err();
    assert!(error.to_string().contains("3 deaths"), "{error}");
    let text = dead(&[]).unwrap();
    assert!(text.contains("b/bad") && text.contains("exit/1") && text.contains("here:"), "{text}");
    let text = dead(&["--json"]).unwrap();
    assert!(text.starts_with('{') && text.contains("\"deaths\":3"), "{text}");
    let problem = dead(&["--remove", "b/other"]).unwrap_err();
    assert!(problem.contains("no dead letter of b/other"), "{problem}");
    let text = dead(&["--requeue", "b/bad"]).unwrap();
    assert!(text.contains("submitted again"), "{text}");
    let removed = || dead(&["--remove", "all"]).unwrap().contains("b/bad: removed");
    brigade_testkit::wait_until("it was given up again", BOUND, removed);
    assert!(!dead(&[]).unwrap().contains("b/bad"));
}

#[test]
fn a_program_without_functions_is_refused() {
    let output = brigade().args(["node", "--", "/bin/true"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(255));
    assert!(text.contains("the worker program cannot be used"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_its_address() {
    let problem = status("nats://127.0.0.1:1", &[]).unwrap_err();
    assert!(problem.contains("127.0.0.1:1"), "{problem}");
}

/// Waits for a line of a node's or run's standard error that contains a text.
fn wait_for_line(stderr: &mut impl BufRead, text: &str) {
    let mut all = String::new();
    while !all.contains(text) {
        let length = stderr.read_line(&mut all).unwrap();
        assert!(length > 0, "it ends without a line with {text:?}: {all}");
    }
}

#[test]
fn a_login_of_the_environment_counts_beside_an_address() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a login of the environment", 3 * BOUND);
    let server = NatsServer::with_configuration("authorization { token: \"secret\" }");
    let url = server.url();
    let worker = std::env::current_exe().unwrap();
    let node = |command: &mut Command| {
        command.args(["node", "--nats", &url, "--workers", "1"]).stderr(Stdio::piped());
        Node(command.arg("--").arg(&worker).spawn().unwrap())
    };
    let _by_variable = node(brigade().env("NATS_TOKEN", "secret"));
    let mut by_option = brigade();
    by_option.args(["node", "--nats-token", "secret"]).args(["--nats", &url, "--workers", "1"]);
    let _by_option = Node(by_option.arg("--").arg(&worker).spawn().unwrap());
    wait_for("both nodes in the status", BOUND, || {
        let status = status(&url, &["--json", "--nats-token", "secret"]).ok()?;
        (status.matches("\"workers\":1").count() == 2).then_some(())
    });
    let wrong = status(&url, &["--nats-token", "wrong"]).unwrap_err();
    assert!(wrong.contains("check `token`") && !wrong.contains("secret"), "{wrong}");
    let missing = status(&url, &[]).unwrap_err();
    assert!(missing.contains("NATS_TOKEN"), "{missing}");
    let half = status(&url, &["--nats-cert", "c.pem"]).unwrap_err();
    assert!(half.contains("--nats-key"), "{half}");
    let mut run = brigade();
    let refused = run.args(["run", "--nats-token", "x", "true"]).output().unwrap();
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("give --cluster"), "{refused}");
}

#[test]
fn a_lost_link_is_reported_and_so_is_its_return() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a lost link", 4 * BOUND);
    let mut server = NatsServer::start();
    let url = server.url();
    let mut node = start_commands_with(&url, &[]);
    let mut node = BufReader::new(node.0.stderr.take().unwrap());
    wait_for_line(&mut node, "runs brigade/command/1");
    let mut run = brigade();
    run.args(["run", "--cluster", &url, "--label", "nowhere", "--", "echo", "{}", ":::", "x"]);
    let mut run = Node(run.stderr(Stdio::piped()).spawn().unwrap());
    let mut run = BufReader::new(run.0.stderr.take().unwrap());
    wait_for("the job is in the queue", BOUND, || {
        status(&url, &["--json"]).ok().filter(|text| text.contains("\"tasks\":1"))
    });
    server.kill();
    wait_for_line(&mut node, "the link to the server is lost");
    wait_for_line(&mut run, "the link to the server is lost");
    server.restart();
    wait_for_line(&mut node, "the link to the server is back");
    wait_for_line(&mut run, "the link to the server is back");
}

#[test]
fn one_replica_and_an_old_version_on_three_servers_are_warnings() {
    if !NatsServer::installed() {
        return;
    }
    let _watchdog = Watchdog::new("a queue on three servers", 4 * BOUND);
    let servers = NatsCluster::start(3);
    let urls = servers.urls();
    let mut three = start_commands_with(&urls, &["--replicas", "3", "-v"]);
    let mut three = BufReader::new(three.0.stderr.take().unwrap());
    wait_for_line(&mut three, "runs brigade/command/1");
    if NatsServer::forgets() {
        wait_for_line(&mut three, "may be lost: use a newer version");
    }
    let cluster = Cluster::builder().url(&urls).create_queue(false);
    let cluster = wait_for("the queue", BOUND, || cluster.clone().connect().ok());
    drop(cluster);
    let mut few = start_commands_with(&urls, &["--queue", "few"]);
    let mut few = BufReader::new(few.0.stderr.take().unwrap());
    wait_for_line(&mut few, "create the queue with 3 replicas");
    let replicas = |queue: &str| {
        let stream = servers.servers()[0].monitor("/jsz?streams=true&config=true").unwrap();
        let (_, config) = stream.split_once(&format!("\"name\": \"BRIGADE_{queue}_TASKS\""))?;
        let (_, config) = config.split_once("\"num_replicas\": ")?;
        config.chars().next()
    };
    wait_for("three replicas", BOUND, || replicas("default").filter(|replicas| *replicas == '3'));
}
