//! What is kept of a panic, and what is not touched.

use std::panic::{panic_any, resume_unwind};

use super::*;

/// Runs a task that must panic.
fn panic_of(task: impl FnOnce()) -> PanicReport {
    install();
    run(task).expect_err("the task did not panic")
}

#[test]
fn a_report_has_message_place_and_backtrace() {
    let number = 7;
    let line = line!() + 1;
    let report = panic_of(|| panic!("bad number {number}"));
    assert_eq!(report.message, "bad number 7");
    let location = report.location.expect("a place");
    assert!(location.contains(&format!("tests.rs:{line}:")), "{location}");
    // Whoever runs the tests may have asked for no backtraces, as the user of a pool may.
    let wanted = env::var_os("RUST_BACKTRACE").is_none_or(|value| value != "0");
    let told = report.backtrace.contains("a_report_has_message_place_and_backtrace");
    assert_eq!(told, wanted, "{}", report.backtrace);
}

#[test]
fn literal_messages_and_other_payloads_are_told() {
    assert_eq!(panic_of(|| panic!("literal")).message, "literal");
    let report = panic_of(|| panic_any(17_u8));
    assert_eq!(report.message, "non-string payload");
    assert!(report.location.is_some());
}

#[test]
fn a_value_passes_through_and_the_next_panic_is_seen_again() {
    install();
    assert_eq!(run(|| 5).map_err(|report| report.message), Ok(5));
    assert_eq!(panic_of(|| panic!("after a value")).message, "after a value");
}

#[test]
fn a_payload_that_panics_when_it_is_dropped_is_survived() {
    struct Bomb(u8);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Bomb(self.0 - 1));
            }
        }
    }
    let report = panic_of(|| panic_any(Bomb(2)));
    assert_eq!(report.message, "non-string payload");
    assert!(
        report.location.is_some_and(|location| location.contains("tests.rs")),
        "the place is that of the first panic"
    );
}

#[test]
fn a_panic_that_the_task_caught_is_not_taken_for_a_later_one() {
    let report = panic_of(|| {
        let _ = panic::catch_unwind(|| panic!("caught"));
        resume_unwind(Box::new("raised without the hook"));
    });
    assert_eq!(report.message, "raised without the hook");
    assert_eq!((report.location, report.backtrace.as_str()), (None, ""));
}

#[test]
fn a_panic_that_the_task_passes_on_keeps_its_place() {
    let report = panic_of(|| {
        let caught = panic::catch_unwind(|| panic!("passed on")).expect_err("it panics");
        resume_unwind(caught);
    });
    assert_eq!(report.message, "passed on");
    assert!(report.location.is_some());
}

#[test]
fn only_the_thread_that_runs_a_task_is_captured_and_only_meanwhile() {
    let elsewhere = || std::thread::spawn(is_running).join().expect("no panic");
    assert!(!is_running());
    let inside = run(|| (is_running(), elsewhere()));
    assert!(matches!(inside, Ok((true, false))));
    assert!(!is_running());
    let _ = panic_of(|| panic!("ended by a panic"));
    assert!(!is_running());
}

#[test]
fn a_long_message_is_cut_at_a_character() {
    let report = panic_of(|| panic!("x{}", "ö".repeat(MESSAGE_LIMIT)));
    assert_eq!(report.message.len(), MESSAGE_LIMIT - 1);
    assert!(report.message.ends_with('ö'));
    assert!(report.location.is_some(), "a message that was cut still belongs to its note");
}
