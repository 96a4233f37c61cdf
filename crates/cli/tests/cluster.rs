//! `brigade node` and `brigade cluster status`, with a real server. This test is the worker program
//! too.

use std::process::{Child, Command, Stdio};

use brigade::Task;
use brigade::cluster::Cluster;
use brigade::worker::Server;
use brigade_sys::before_main;
use brigade_sys::process::Signal;
use brigade_testkit::processes::hit_child;
use brigade_testkit::{BOUND, NatsServer, Watchdog, wait_for};

before_main!(serve);

static DOUBLE: Task<u64, u64> = Task::new("double/1", |number: u64| 2 * number);

fn serve() {
    Server::new().register(&DOUBLE).run();
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

fn status(url: &str, options: &[&str]) -> Result<String, String> {
    let output = brigade().args(["cluster", "status", url]).args(options).output().unwrap();
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
