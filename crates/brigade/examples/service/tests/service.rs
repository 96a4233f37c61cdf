//! The example `service`, driven by requests that succeed, fail, crash, and come too fast.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use brigade_testkit::{BOUND, wait_until};
use image::{ImageFormat, RgbImage};
use rustix::process::{Pid, Signal, kill_process};

/// Arguments for a deadline that no test reaches.
const PATIENT: [&str; 2] = ["--deadline", "60000"];

/// Query of a request that takes longer than any test.
const ENDLESS: &str = "?delay=600000";

/// A running service, which is killed with its workers when it is dropped.
struct Service {
    process: Child,
    address: String,
}

/// An answer over HTTP.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Service {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_service"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the service");
        let mut line = String::new();
        let output = process.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://").expect(&line).to_owned();
        Self { process, address }
    }

    fn post(&self, query: &str, body: &[u8]) -> Option<Answer> {
        answer(self.begin(&format!("POST /thumbnail{query}"), body)?)
    }

    /// Sends a request, or returns `None` if the service accepts no connection.
    fn begin(&self, request: &str, body: &[u8]) -> Option<TcpStream> {
        let mut stream = self.send_head(request, "", body)?;
        stream.write_all(body).ok()?;
        Some(stream)
    }

    /// Sends a request without its body.
    fn send_head(&self, request: &str, headers: &str, body: &[u8]) -> Option<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(BOUND)).expect("a timeout");
        let length = body.len();
        write!(stream, "{request} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n").ok()?;
        write!(stream, "content-length: {length}\r\n{headers}\r\n").ok()?;
        Some(stream)
    }

    fn status_of(&self, query: &str) -> Option<u16> {
        self.post(query, &picture()).map(|answer| answer.status)
    }

    fn metrics(&self) -> String {
        let metrics = self.begin("GET /metrics", b"").and_then(answer).expect("an answer");
        String::from_utf8(metrics.body).expect("text")
    }

    /// Returns the value of a metric without labels of its own.
    fn metric(&self, name: &str) -> u64 {
        let metrics = self.metrics();
        let is_named = |line: &&str| line.strip_prefix(name).is_some_and(|it| it.starts_with('{'));
        let line = metrics.lines().find(is_named).expect("the metric");
        line.split(' ').next_back().and_then(|value| value.parse().ok()).expect("a number")
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("it runs");
    }

    fn exit(&mut self) -> std::process::ExitStatus {
        let mut status = None;
        wait_until("the exit of the service", BOUND, || {
            status = self.process.try_wait().expect("a child");
            status.is_some()
        });
        status.expect("it has exited")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns `None` if the service closes the connection without an answer.
fn answer(mut stream: TcpStream) -> Option<Answer> {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8(answer[..end].to_vec()).expect("a head").to_lowercase();
    let status = head.split(' ').nth(1)?.parse().expect("a status");
    Some(Answer { status, head, body: answer.split_off(end + 4) })
}

fn picture() -> Vec<u8> {
    picture_of(640, 480)
}

fn picture_of(width: u32, height: u32) -> Vec<u8> {
    let mut png = Cursor::new(Vec::new());
    let color = |x: u32, y| image::Rgb([x, y, x ^ y].map(|it| it.to_le_bytes()[0]));
    let picture = RgbImage::from_fn(width, height, color);
    picture.write_to(&mut png, ImageFormat::Png).expect("a picture");
    png.into_inner()
}

#[test]
fn a_crash_costs_one_request() {
    let service = Service::start(&PATIENT);
    for _ in 0..3 {
        let made = service.post("", &picture()).expect("an answer");
        assert_eq!(made.status, 200, "{}", made.head);
        let thumbnail = image::load_from_memory(&made.body).expect("a JPEG");
        assert_eq!((thumbnail.width(), thumbnail.height()), (128, 96));
        assert_eq!(service.status_of("?crash"), Some(500));
        assert_eq!(service.post("", b"no picture").expect("an answer").status, 415);
    }
    let metrics = service.metrics();
    assert!(metrics.contains("outcome=\"worker_died\"} 3\n"), "{metrics}");
}

#[test]
fn a_late_request_costs_its_worker() {
    let service = Service::start(&["--workers", "1", "--deadline", "1000"]);
    // On a busy machine, a request can be late before a worker has begun it.
    wait_until("a replaced worker", BOUND, || {
        assert_eq!(service.status_of(ENDLESS), Some(504));
        service.metric("brigade_worker_restarts_total") > 0
    });
    // A program without optimizations needs most of 100 ms for a large picture.
    let small = picture_of(16, 12);
    let status = || service.post("", &small).map(|answer| answer.status);
    wait_until("a thumbnail in time", BOUND, || status() == Some(200));
}

#[test]
fn a_full_queue_refuses_requests_until_a_client_leaves() {
    let [deadline, time] = PATIENT;
    let service = Service::start(&["--workers", "1", "--queue", "1", deadline, time]);
    let request = format!("POST /thumbnail{ENDLESS}");
    let running = service.begin(&request, b"");
    wait_until("a running task", BOUND, || service.metric("brigade_tasks_running") == 1);
    let queued = service.begin(&request, b"");
    wait_until("a queued task", BOUND, || service.metric("brigade_tasks_queued") == 1);
    let refused = service.post("", &picture()).expect("an answer");
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.head.contains("retry-after: 1"), "{refused:?}");
    drop((running, queued));
    wait_until("the end of both tasks", BOUND, || {
        service.metric("brigade_tasks_running") + service.metric("brigade_tasks_queued") == 0
    });
    assert_eq!(service.status_of(""), Some(200));
}

#[test]
fn a_terminated_service_finishes_what_has_begun() {
    let mut service = Service::start(&PATIENT);
    let picture = picture();
    let expect = "expect: 100-continue\r\n";
    let mut request = service.send_head("POST /thumbnail", expect, &picture).expect("it listens");
    // The service asks for the body once it handles the request.
    let mut asked = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    request.read_exact(&mut asked).expect("an interim answer");
    service.signal(Signal::TERM);
    wait_until("the end of the listener", BOUND, || TcpStream::connect(&service.address).is_err());
    request.write_all(&picture).expect("an open connection");
    assert_eq!(answer(request).expect("an answer").status, 200);
    assert!(service.exit().success());
}

#[test]
fn a_crash_in_process_ends_the_service() {
    let mut service = Service::start(&["--in-process", PATIENT[0], PATIENT[1]]);
    assert_eq!(service.status_of(""), Some(200));
    assert_eq!(service.status_of("?crash"), None);
    assert!(!service.exit().success());
    assert_eq!(service.status_of(""), None);
}
