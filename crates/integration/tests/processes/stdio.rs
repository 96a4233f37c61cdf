//! The destinations of the output of workers.

use std::io::{Write, stderr, stdout};
use std::process::Command;

use brigade::{PoolBuilder, Stdio, TaskErrorKind};
use brigade_integration::{Captured, Helper, POISON, builder};
use brigade_testkit::faults::{exits, prints_a_mebibyte, sleeps};
use brigade_testkit::{BOUND, Watchdog, outcome, processes, wait_until};

/// Builds a pool with its own name, so that its events differ from those of other tests.
fn capturing(name: &str) -> PoolBuilder {
    // Before any event, so that none is missed.
    Captured::get();
    builder(1).name(name).stdio(Stdio::Capture)
}

fn prints((out, err): (String, String)) {
    stdout().write_all(out.as_bytes()).unwrap();
    stdout().flush().unwrap();
    stderr().write_all(err.as_bytes()).unwrap();
}

#[test]
fn captured_lines_are_events_with_worker_and_stream() {
    let pool = capturing("events").build().unwrap();
    let texts = ("one\ntwo\r\n\nunfinished".to_owned(), "a warning\nand".to_owned());
    outcome(pool.submit(prints, texts).unwrap()).unwrap();
    let pids = pool.worker_pids();
    pool.shutdown().unwrap();
    let captured = Captured::get();
    assert_eq!(captured.stream("events", "stdout"), ["one", "two", "", "unfinished"]);
    assert_eq!(captured.stream("events", "stderr"), ["a warning", "and"]);
    for line in captured.of_pool("events") {
        assert_eq!(line.pid, u64::from(pids[0]));
        assert!(!line.worker.is_empty() && line.worker.contains('0'), "{line:?}");
    }
}

#[test]
fn complete_lines_arrive_while_the_worker_lives() {
    let pool = capturing("live").build().unwrap();
    let texts = ("first\nsecond".to_owned(), String::new());
    outcome(pool.submit(prints, texts).unwrap()).unwrap();
    let stdout = || Captured::get().stream("live", "stdout");
    wait_until("the first line", BOUND, || !stdout().is_empty());
    assert_eq!(stdout(), ["first"], "the second has no end yet");
    outcome(pool.submit(prints, (" half\n".to_owned(), String::new())).unwrap()).unwrap();
    wait_until("the second line", BOUND, || stdout().len() == 2);
    assert_eq!(stdout(), ["first", "second half"]);
}

#[test]
fn unflushed_output_arrives_when_the_worker_exits() {
    let pool = capturing("buffered").build().unwrap();
    let prints = |(): ()| stdout().write_all(b"still in the buffer").unwrap();
    outcome(pool.submit(prints, ()).unwrap()).unwrap();
    pool.shutdown().unwrap();
    assert_eq!(Captured::get().stream("buffered", "stdout"), ["still in the buffer"]);
}

#[test]
fn a_panicking_subscriber_loses_only_its_line() {
    let pool = capturing("poison").build().unwrap();
    let texts = (format!("before\n{POISON}\nafter\n"), String::new());
    outcome(pool.submit(prints, texts).unwrap()).unwrap();
    // The pool waits only a second for a subscriber, and a panic with a backtrace may take longer.
    wait_until("the line after the panic", BOUND, || {
        Captured::get().stream("poison", "stdout") == ["before", "after"]
    });
    pool.shutdown().unwrap();
    assert_eq!(Captured::get().stream("poison", "stdout"), ["before", "after"]);
}

#[test]
fn last_words_are_events_and_part_of_the_error() {
    fn dies(code: i32) {
        prints(("out of".to_owned(), "cheese\nno more cheese".to_owned()));
        exits(code);
    }
    let pool = capturing("last").build().unwrap();
    let error = outcome(pool.submit(dies, 3).unwrap()).unwrap_err();
    let TaskErrorKind::WorkerDied { stderr_tail, .. } = error.kind() else { panic!("{error:?}") };
    assert_eq!(stderr_tail, "cheese\nno more cheese");
    // Before the outcome, not some time after it.
    assert_eq!(Captured::get().stream("last", "stdout"), ["out of"]);
    assert_eq!(Captured::get().stream("last", "stderr"), ["cheese", "no more cheese"]);
}

#[test]
fn output_of_a_failed_start_is_captured_too() {
    let fails = |(): ()| -> Result<(), String> {
        prints(("looking for a model\n".to_owned(), "no model\n".to_owned()));
        Err("gave up".to_owned())
    };
    let pool = capturing("start").try_initializer(fails, ()).build().unwrap();
    let error = outcome(pool.submit(sleeps, 1).unwrap()).unwrap_err();
    assert!(error.to_string().contains("no model"), "{error}");
    assert_eq!(Captured::get().stream("start", "stdout"), ["looking for a model"; 5]);
    assert_eq!(Captured::get().stream("start", "stderr"), ["no model"; 5]);
}

#[test]
fn an_endless_line_arrives_in_parts_of_at_most_8_kib() {
    let pool = capturing("long").build().unwrap();
    let text = "é".repeat(20_000);
    outcome(pool.submit(prints, (text.clone(), String::new())).unwrap()).unwrap();
    pool.shutdown().unwrap();
    let pieces = Captured::get().stream("long", "stdout");
    assert!(pieces.iter().all(|piece| piece.len() <= 8 * 1024));
    assert_eq!(pieces.concat(), text);
}

#[test]
fn captured_or_discarded_output_stays_off_the_hosts_streams() {
    for mode in ["print-captured", "print-null"] {
        let output = Helper::new(env!("CARGO_BIN_EXE_host")).argument(mode).output();
        assert!(output.status.success(), "{mode}");
        assert_eq!((output.stdout.len(), output.stderr.len()), (0, 0), "{mode}");
    }
}

#[test]
fn discarded_output_still_yields_last_words() {
    let pool = builder(1).stdio(Stdio::Null).build().unwrap();
    assert_eq!(outcome(pool.submit(prints_a_mebibyte, ()).unwrap()).unwrap(), 2 << 20);
    let dies = |code: i32| {
        prints((String::new(), "farewell".to_owned()));
        exits(code);
    };
    let error = outcome(pool.submit(dies, 3).unwrap()).unwrap_err();
    assert!(error.to_string().contains("farewell"), "{error}");
}

#[test]
fn a_grandchild_holding_the_streams_delays_no_shutdown() {
    #[expect(clippy::zombie_processes, reason = "it outlives its parent, which is the point")]
    fn leaves_a_writer((): ()) -> u32 {
        let command = "echo started; echo started >&2; exec sleep 120";
        // In its own session, so that it survives the end of the worker's process group.
        let child = Command::new("setsid").args(["sh", "-c", command]).spawn().unwrap();
        child.id()
    }
    let _watchdog = Watchdog::new("a pool whose streams are held open", BOUND);
    let pool = capturing("held").build().unwrap();
    let grandchild = outcome(pool.submit(leaves_a_writer, ()).unwrap()).unwrap();
    wait_until("the grandchild's words", BOUND, || Captured::get().of_pool("held").len() == 2);
    pool.shutdown().unwrap();
    assert!(processes::is_alive(grandchild));
    processes::hit(grandchild, processes::Signal::KILL);
}

#[test]
fn stdin_is_empty_in_every_mode() {
    let read = |(): ()| std::io::read_to_string(std::io::stdin()).unwrap();
    for stdio in [Stdio::Inherit, Stdio::Null, Stdio::Capture] {
        let pool = builder(1).stdio(stdio).build().unwrap();
        assert_eq!(outcome(pool.submit(read, ()).unwrap()).unwrap(), "");
    }
}

#[test]
fn a_child_of_a_task_has_a_stdin_and_captured_output() {
    fn runs((): ()) -> bool {
        Command::new("sh").args(["-c", "cat; echo from below"]).status().unwrap().success()
    }
    let pool = capturing("program").build().unwrap();
    assert!(outcome(pool.submit(runs, ()).unwrap()).unwrap());
    pool.shutdown().unwrap();
    assert_eq!(Captured::get().stream("program", "stdout"), ["from below"]);
}
