//! `brigade run --status`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use super::common::{PATIENCE, TestDir};

fn get(address: &str, path: &str) -> String {
    let mut socket = TcpStream::connect(address).expect("a live view");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    socket.write_all(request.as_bytes()).expect("a server");
    let mut response = String::new();
    socket.read_to_string(&mut response).expect("a response");
    response
}

#[test]
fn a_run_shows_its_jobs_while_they_run() {
    let dir = TestDir::new();
    let pipe = dir.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    // The first job fails, and the second one runs until somebody writes into the pipe.
    dir.write("jobs", "exit 3\ncat pipe\ntrue\n");
    let arguments = ["run", "--status", "0", "--no-pin", "--jobs", "1", "jobs"];
    let mut run = dir.spawn(&arguments);
    let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let url = line();
    let address = url.split("http://").nth(1).expect("an address").trim_end_matches('/').to_owned();
    assert!(line().contains("job 1 failed"));
    // The job was started before the pipe can be opened, and reported soon after.
    let mut writer = std::fs::File::options().write(true).open(&pipe).expect("a reader");
    let deadline = std::time::Instant::now() + PATIENCE;
    let snapshot = loop {
        let snapshot = get(&address, "/snapshot.json");
        if snapshot.contains(r#""label":"cat pipe""#) {
            break snapshot;
        }
        assert!(std::time::Instant::now() < deadline, "{snapshot}");
    };
    for part in [
        r#""enqueued":3,"finished":1"#,
        r#""queued":1,"running":1"#,
        r#""failures":{"exited":1}"#,
        r#""text":"exit code 3""#,
    ] {
        assert!(snapshot.contains(part), "{part}: {snapshot}");
    }
    assert!(get(&address, "/metrics").contains("brigade_tasks_running{pool=\"1\"} 1\n"));
    writer.write_all(b"done\n").expect("a reader");
    drop(writer);
    assert_eq!(run.wait().expect("brigade").code(), Some(1));
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let ran = TestDir::new().run(&["--status", "0.0.0.0:0", "--", "true", ":::", "a"]);
    assert_eq!(ran.status, 255);
    assert!(ran.stderr.contains("no authentication"), "{}", ran.stderr);
}
