//! `brigade top` without a live view, and without a terminal.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::common::TestDir;

fn top(address: &str) -> (Option<i32>, String) {
    let dir = TestDir::new();
    let output = dir.command(&["top", address]).output().expect("brigade");
    // Long messages are wrapped.
    let error = String::from_utf8_lossy(&output.stderr).replace('│', "");
    (output.status.code(), error.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn an_address_where_nobody_listens_is_an_error() {
    let address = "127.0.0.1:1";
    let (status, error) = top(address);
    assert_eq!(status, Some(255), "{error}");
    assert!(error.contains(&format!("no live view answers at {address}")), "{error}");
    assert!(error.contains("brigade run --status"), "{error}");
}

#[test]
fn another_server_is_not_a_live_view() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let _ = client.read(&mut [0; 1000]).expect("a request");
        client.write_all(b"HTTP/1.1 404 Not Found\r\n\r\n").expect("a client");
    });
    let (status, error) = top(&address.to_string());
    server.join().expect("no panic");
    assert_eq!(status, Some(255), "{error}");
    assert!(error.contains("is not a live view of Brigade"), "{error}");
}

#[test]
fn a_text_that_is_no_address_is_an_error() {
    let (status, error) = top("nowhere");
    assert_eq!(status, Some(255), "{error}");
    assert!(error.contains("`nowhere` is not an address"), "{error}");
}
