//! The live view of a pool, over real sockets, while its workers run and die.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use brigade::metrics::{FailureKind, PoolSnapshot, PoolState, WorkerState};
use brigade_integration::{pool, square};
use brigade_testkit::faults::aborts;
use brigade_testkit::{BOUND, Gate, outcome, pass, wait_for};

fn get(address: SocketAddr, path: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(BOUND)).unwrap();
    socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

fn snapshot(address: SocketAddr) -> PoolSnapshot {
    let response = get(address, "/snapshot.json");
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn the_view_shows_running_tasks_failures_and_restarts() {
    let pool = pool(2);
    let page = pool.serve_status("127.0.0.1:0").unwrap();
    let gate = Gate::new();
    let held = pool.task(pass).label("<b>held</b>").submit(gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let shown = snapshot(page.addr());
    let busy = shown.workers.iter().find(|worker| worker.state == WorkerState::Busy).unwrap();
    assert_eq!(busy.running.as_ref().map(|task| &*task.label), Some("<b>held</b>"));
    assert!(pool.worker_pids().contains(&busy.pid.unwrap()));
    assert!(outcome(pool.submit(aborts, ()).unwrap()).is_err());
    let shown = snapshot(page.addr());
    assert_eq!(shown.failures[&FailureKind::WorkerDied], 1);
    assert!(shown.recent_failures[0].text.contains("SIGABRT"), "{shown}");
    let metrics = get(page.addr(), "/metrics");
    let labels = format!(r#"pool="{}",outcome="worker_died""#, shown.pool);
    let line = format!("brigade_tasks_finished_total{{{labels}}} 1");
    assert!(metrics.contains(&line), "{metrics}");
    gate.open();
    outcome(held).unwrap();
    wait_for("the restart", BOUND, || (snapshot(page.addr()).restarts == 1).then_some(()));
}

#[test]
fn the_view_outlives_its_pool_and_says_so() {
    let pool = pool(1);
    let page = pool.serve_status("127.0.0.1:0").unwrap();
    outcome(pool.submit(square, 3).unwrap()).unwrap();
    pool.shutdown().unwrap();
    let shown = snapshot(page.addr());
    assert_eq!((shown.state, shown.finished), (PoolState::Ended, 1));
    drop(pool);
    assert!(get(page.addr(), "/snapshot.json").starts_with("HTTP/1.1 410 "));
    assert!(get(page.addr(), "/").starts_with("HTTP/1.1 200 "));
    let address = page.addr();
    drop(page);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_client_that_follows_does_not_hold_the_pool_up() {
    let pool = pool(1);
    let page = pool.serve_status("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(page.addr()).unwrap();
    client.set_read_timeout(Some(BOUND)).unwrap();
    client.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(client).lines();
    let mut next = |start: &str| loop {
        let line = lines.next().unwrap().unwrap();
        if line.starts_with(start) {
            break line;
        }
    };
    next("event: snapshot");
    for number in 0..200 {
        assert_eq!(outcome(pool.submit(square, number).unwrap()).unwrap(), number * number);
    }
    next("event: snapshot");
    let shown: PoolSnapshot =
        serde_json::from_str(next("data: ").strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(shown.enqueued, shown.finished + shown.pending);
    // The client reads no more, and the pool and the page end nevertheless.
    drop(pool);
    drop(page);
}
