//! Servers for tests: they keep their address and their data, and end with the process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use brigade_testkit::processes::is_alive;
use brigade_testkit::{BOUND, NatsCluster, NatsServer, wait_until};

/// Sends the request to the JetStream API, and returns the reply.
fn request(url: &str, subject: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(url.strip_prefix("nats://").unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let length = body.len();
    write!(
        socket,
        "CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\nPUB {subject} reply {length}\r\n{body}\r\n"
    )
    .unwrap();
    let mut lines = BufReader::new(socket).lines().map(Result::unwrap);
    lines.find(|line| line.starts_with("MSG")).unwrap();
    lines.next().unwrap()
}

#[test]
fn a_server_keeps_its_address_and_data_after_a_kill() {
    if !NatsServer::installed() {
        return;
    }
    let mut server = NatsServer::start();
    let url = server.url();
    let stream = r#"{"name":"S","subjects":["s"],"storage":"file"}"#;
    let reply = request(&url, "$JS.API.STREAM.CREATE.S", stream);
    assert!(reply.contains("\"did_create\":true"), "{reply}");
    let pid = server.pid();
    server.kill();
    assert!(!is_alive(pid) && TcpStream::connect(&url["nats://".len()..]).is_err());
    server.restart();
    assert_eq!(server.url(), url);
    let reply = request(&url, "$JS.API.STREAM.INFO.S", "");
    assert!(reply.contains("\"subjects\":[\"s\"]"), "{reply}");
    let pid = server.pid();
    drop(server);
    assert!(!is_alive(pid));
}

#[test]
fn a_cluster_replicates_and_takes_a_server_back() {
    if !NatsServer::installed() {
        return;
    }
    let mut cluster = NatsCluster::start(3);
    assert_eq!(cluster.urls().split(',').count(), 3);
    let stream = r#"{"name":"S","subjects":["s"],"storage":"file","num_replicas":3}"#;
    let reply = request(&cluster.servers()[0].url(), "$JS.API.STREAM.CREATE.S", stream);
    assert!(reply.contains("\"num_replicas\":3"), "{reply}");
    cluster.server(2).kill();
    cluster.server(2).restart();
    let reply = request(&cluster.servers()[2].url(), "$JS.API.STREAM.INFO.S", "");
    assert!(reply.contains("\"num_replicas\":3"), "{reply}");
}

/// Set in the process that is killed.
const HOLDS: &str = "BRIGADE_TEST_HOLDS_A_SERVER";

#[test]
fn a_server_ends_with_a_test_that_is_killed() {
    if !NatsServer::installed() {
        return;
    }
    if std::env::var_os(HOLDS).is_some() {
        let server = NatsServer::start();
        writeln!(std::io::stdout(), "\npid {}", server.pid()).unwrap();
        // Until it is killed.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let mut test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "a_server_ends_with_a_test_that_is_killed"])
        .env(HOLDS, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(test.stdout.take().unwrap()).lines().map(Result::unwrap);
    let pid = lines.find_map(|line| line.strip_prefix("pid ")?.parse().ok()).unwrap();
    assert!(is_alive(pid));
    test.kill().unwrap();
    test.wait().unwrap();
    wait_until("the end of the server", BOUND, || !is_alive(pid));
}
