//! "I need to know where it crashed": runs tasks that end badly, and prints what their errors say.
//!
//! ```sh
//! cargo run -p brigade-example-crash
//! ```
//!
//! The host goes on after each of them. Try it with `--release`, with other profiles, or after
//! `strip`: `docs/crashes.md` says what each build knows.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "it prints what it has found")]

use std::error::Error;
use std::hint::black_box;
use std::thread;
use std::time::Duration;

use brigade::Pool;

/// A picture, of which only the length is read.
struct Header {
    width: u32,
    height: u32,
}

#[inline(never)]
fn parse_header(bytes: &[u8]) -> Header {
    if bytes.len() < 8 {
        // What a C library does when an assertion fails.
        std::process::abort();
    }
    let number = |at: usize| u32::from(bytes[at]) << 8 | u32::from(bytes[at + 1]);
    Header { width: number(0), height: number(2) }
}

#[inline(never)]
fn decode(bytes: &[u8]) -> u32 {
    let header = parse_header(black_box(bytes));
    black_box(header.width) * header.height
}

fn thumbnail(bytes: Vec<u8>) -> u32 {
    black_box(decode(&bytes))
}

#[inline(never)]
fn depth(node: u64) -> u64 {
    let children = black_box([node; 32]);
    if node == u64::MAX { 0 } else { 1 + depth(node + 1) + black_box(children)[0] }
}

fn deep(node: u64) -> u64 {
    black_box(depth(node))
}

fn deep_in_a_thread(node: u64) -> u64 {
    let thread = thread::Builder::new().name("decoder".to_owned());
    let thread = thread.spawn(move || depth(node));
    thread.map_or(0, |thread| thread.join().unwrap_or_default())
}

#[inline(never)]
fn checked(number: u64) -> u64 {
    assert!(number > 1000, "the number {number} is too small");
    number
}

fn checks(number: u64) -> u64 {
    black_box(checked(number))
}

#[inline(never)]
fn wait_for_a_reply(limit: Duration) {
    thread::sleep(limit);
    black_box(limit);
}

fn hangs(seconds: u64) {
    wait_for_a_reply(Duration::from_secs(seconds));
    black_box(seconds);
}

fn main() -> Result<(), Box<dyn Error>> {
    brigade::init();
    let pool = Pool::builder().workers(1).build()?;
    let limit = Duration::from_millis(100);
    let errors = [
        pool.task(thumbnail).label("upload 17.jpg").submit(vec![0xff, 0xd8])?.wait().err(),
        pool.task(deep).label("deep.xml").submit(0)?.wait().err(),
        pool.task(deep_in_a_thread).label("deep in a thread").submit(0)?.wait().err(),
        pool.task(checks).label("number 7").submit(7)?.wait().err(),
        pool.task(hangs).label("slow server").deadline(limit).submit(60)?.wait().err(),
    ];
    for error in errors.into_iter().flatten() {
        println!("{error:#}\n");
    }
    println!(
        "and the next task returns {}",
        pool.submit(thumbnail, vec![0, 3, 0, 2, 0, 0, 0, 0])?.wait()?
    );
    Ok(())
}
