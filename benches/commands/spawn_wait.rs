//! Runs commands at the minimum cost: two threads that start a process and wait for it.
//! Compile with `rustc -O`, and run as `spawn_wait COUNT PROGRAM`.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().and_then(|count| count.parse().ok()).expect("COUNT");
    let program = arguments.next().expect("PROGRAM");
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    // The other commands pass a number too, and `true` does more work with an
                    // argument.
                    let mut command = Command::new(&program);
                    let status = command.arg(number.to_string()).stdin(Stdio::null()).status();
                    assert!(status.expect("started").success());
                }
            });
        }
    });
}
