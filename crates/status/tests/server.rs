//! The server with real sockets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use brigade_metrics::PoolSnapshot;
use brigade_status::{ServeError, Source, StatusServer, Terms};
use brigade_testkit_core::example_snapshot;

/// A bound for everything that should take no time.
const LONG: Duration = Duration::from_secs(20);

fn example(workers: u32) -> PoolSnapshot {
    serde_json::from_value(example_snapshot(workers)).unwrap()
}

#[derive(Clone, Default)]
struct Pool {
    workers: u32,
    /// The example, made once: for 256 workers that is slow.
    example: Arc<OnceLock<PoolSnapshot>>,
    /// Number of snapshots made.
    calls: Arc<AtomicUsize>,
}

impl Source for Pool {
    fn snapshot(&self) -> Option<PoolSnapshot> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Some(self.example.get_or_init(|| example(self.workers)).clone())
    }
}

#[test]
fn a_stack_is_that_of_the_worker_in_the_path() {
    struct Stacks;
    impl Source for Stacks {
        fn snapshot(&self) -> Option<PoolSnapshot> {
            None
        }
        fn stack(&self, worker: u32) -> Option<String> {
            (worker == 3).then(|| "0 shop::decode".to_owned())
        }
    }
    let server = serve(Stacks);
    let response = get(&server, "/stack/3");
    assert!(response.starts_with("HTTP/1.1 200 ") && response.contains("text/plain"), "{response}");
    assert_eq!(body(&response), "0 shop::decode");
    for path in ["/stack/4", "/stack/", "/stack/-1", "/stack/3/", "/stack/99999999999"] {
        assert!(get(&server, path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    let server = serve(Pool::default());
    assert!(get(&server, "/stack/0").starts_with("HTTP/1.1 404 "), "the default");
}

fn serve(source: impl Source) -> StatusServer {
    StatusServer::serve("127.0.0.1:0", source).unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

/// Returns the whole response to a request.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut socket = connect(address);
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    response
}

fn get(server: &StatusServer, path: &str) -> String {
    exchange(server.addr(), &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.addr()))
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").unwrap().1
}

/// Begins to follow the events.
fn follow(address: SocketAddr) -> BufReader<TcpStream> {
    let mut socket = connect(address);
    socket.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    BufReader::new(socket)
}

/// Returns the name and the data of the next event.
fn next_event(events: &mut BufReader<TcpStream>) -> (String, String) {
    let (mut name, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "the stream ended");
        if let Some(value) = line.strip_prefix("event: ") {
            value.trim_end().clone_into(&mut name);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, data.to_owned());
        }
    }
}

#[test]
fn a_snapshot_arrives_whole_for_1_and_for_256_workers() {
    for workers in [1, 256] {
        let server = serve(Pool { workers, ..Pool::default() });
        let response = get(&server, "/snapshot.json");
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        let snapshot: PoolSnapshot = serde_json::from_str(body(&response)).unwrap();
        assert_eq!(snapshot, example(workers));
    }
}

#[test]
fn the_page_and_the_metrics_are_served_with_a_policy() {
    let server = serve(Pool::default());
    for (path, media_type, beginning) in [
        ("/", "text/html; charset=utf-8", "<!doctype html>"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8", "# HELP brigade_"),
    ] {
        let response = get(&server, path);
        assert!(response.contains(&format!("Content-Type: {media_type}\r\n")), "{response}");
        assert!(response.contains("Content-Security-Policy: default-src 'none'"), "{response}");
        assert!(body(&response).starts_with(beginning), "{response}");
        let length = format!("Content-Length: {}\r\n", body(&response).len());
        assert!(response.contains(&length), "{response}");
    }
}

#[test]
fn head_returns_no_body() {
    let server = serve(Pool::default());
    for path in ["/", "/snapshot.json", "/metrics", "/events", "/missing"] {
        let request = format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let response = exchange(server.addr(), &request);
        assert!(response.starts_with("HTTP/1.1 "), "{response}");
        assert_eq!(body(&response), "", "{path}");
    }
}

#[test]
fn requests_that_are_not_served_say_why() {
    let server = serve(Pool::default());
    for (request, status) in [
        ("GET /missing HTTP/1.1\r\nHost: localhost\r\n\r\n", "404 Not Found"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "405 Method"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403 Forbidden"),
        ("GET /snapshot.json HTTP/1.1\r\nHost: evil.example:80\r\n\r\n", "403 Forbidden"),
        ("GET /events HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403 Forbidden"),
        ("GET / HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("\x16\x03\x01", "400 Bad Request"),
    ] {
        let response = exchange(server.addr(), request);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {response}");
        assert!(body(&response).len() > 1, "{response}");
    }
}

#[test]
fn a_name_is_accepted_if_the_builder_knows_it() {
    let server =
        StatusServer::builder().host_name("build.example").serve("127.0.0.1:0", Pool::default());
    let request = "GET /metrics HTTP/1.1\r\nHost: build.example\r\n\r\n";
    let response = exchange(server.unwrap().addr(), request);
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
}

#[test]
fn followers_receive_the_terms_and_then_a_snapshot_a_second() {
    let server = serve(Pool { workers: 256, ..Pool::default() });
    let mut events = follow(server.addr());
    let (name, about) = next_event(&mut events);
    assert_eq!(name, "about");
    assert!(about.contains(r#""terms":{"task":"task","worker":"worker"}"#), "{about}");
    for _ in 0..3 {
        let (name, data) = next_event(&mut events);
        assert_eq!(name, "snapshot");
        let snapshot: PoolSnapshot = serde_json::from_str(&data).unwrap();
        assert_eq!(snapshot.workers.len(), 256);
    }
}

#[test]
fn no_snapshot_is_made_while_nobody_follows() {
    let calls = Arc::new(AtomicUsize::new(0));
    let server = serve(Pool { workers: 1, calls: Arc::clone(&calls), ..Pool::default() });
    let mut other = follow(server.addr());
    next_event(&mut other);
    drop(follow(server.addr()));
    drop(other);
    // A second follower's event shows that a second has passed since the first one left.
    let silent = serve(Pool::default());
    let mut clock = follow(silent.addr());
    for _ in 0..3 {
        next_event(&mut clock);
    }
    let before = calls.load(Ordering::SeqCst);
    for _ in 0..3 {
        next_event(&mut clock);
    }
    assert_eq!(calls.load(Ordering::SeqCst), before);
}

#[test]
fn silent_and_slow_clients_hold_nobody_up() {
    let server = serve(Pool { workers: 256, ..Pool::default() });
    let silent: Vec<TcpStream> = (0..200).map(|_| connect(server.addr())).collect();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| connect(server.addr())).collect();
    for socket in &mut slow {
        // Clients beyond the limit were dropped, and learn it here.
        let _ = socket.write_all(b"GET /snapshot.json HTTP/1.1\r\nHost: loc");
    }
    let lazy: Vec<_> = (0..30).map(|_| follow(server.addr())).collect();
    let begin = Instant::now();
    assert!(get(&server, "/metrics").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(begin.elapsed() < LONG);
    drop((silent, slow, lazy));
}

#[test]
fn a_client_that_sends_no_request_is_dropped() {
    let server = serve(Pool::default());
    let mut socket = connect(server.addr());
    socket.write_all(b"GET / HT").unwrap();
    // The bound of the socket is longer than that of the server.
    assert_eq!(socket.read(&mut [0; 8]).unwrap(), 0);
}

#[test]
fn too_many_followers_are_refused_and_others_are_served() {
    let server = serve(Pool::default());
    let mut followers: Vec<_> = (0..32).map(|_| follow(server.addr())).collect();
    for follower in &mut followers {
        assert_eq!(next_event(follower).0, "about");
    }
    let response = get(&server, "/events");
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert!(get(&server, "/").starts_with("HTTP/1.1 200 OK\r\n"));
}

#[test]
fn dropping_the_server_ends_connections_and_frees_the_port() {
    let server = serve(Pool::default());
    let address = server.addr();
    let mut events = follow(address);
    next_event(&mut events);
    drop(server);
    let mut rest = Vec::new();
    // The connection ends in order or by a reset.
    let _ = events.read_to_end(&mut rest);
    let refused = TcpStream::connect(address).map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(io::ErrorKind::ConnectionRefused));
}

#[test]
fn other_machines_are_served_only_on_request() {
    let error = StatusServer::serve("0.0.0.0:0", Pool::default()).unwrap_err();
    assert!(matches!(error, ServeError::NotLoopback(_)));
    assert!(error.to_string().contains("allow_remote_clients"), "{error}");
    let server = StatusServer::builder().allow_remote_clients().serve("0.0.0.0:0", Pool::default());
    let address = SocketAddr::from(([127, 0, 0, 1], server.as_ref().unwrap().addr().port()));
    let response = exchange(address, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
}

#[test]
fn a_port_in_use_is_an_error() {
    let server = serve(Pool::default());
    let error = StatusServer::serve(server.addr(), Pool::default()).unwrap_err();
    assert!(matches!(error, ServeError::Bind { .. }), "{error}");
}

#[test]
fn a_source_that_panics_or_is_gone_ends_nothing() {
    struct Failing;
    impl Source for Failing {
        fn snapshot(&self) -> Option<PoolSnapshot> {
            panic!("out of order")
        }
    }
    struct Gone;
    impl Source for Gone {
        fn snapshot(&self) -> Option<PoolSnapshot> {
            None
        }
        fn terms(&self) -> Terms {
            Terms::RUNNER
        }
    }
    let server = serve(Failing);
    assert!(get(&server, "/snapshot.json").starts_with("HTTP/1.1 500 "));
    assert!(get(&server, "/").starts_with("HTTP/1.1 200 "));
    let server = serve(Gone);
    assert!(get(&server, "/metrics").starts_with("HTTP/1.1 410 "));
    let mut events = follow(server.addr());
    assert!(next_event(&mut events).1.contains(r#""task":"job""#));
    assert_eq!(next_event(&mut events).0, "gone");
}
